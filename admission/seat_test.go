package admission

import (
	"testing"
	"time"
)

// A tenant that waits for one bucket's tokens and for another's pause is told the
// pause once the tokens have come.
func TestReasonOfTheHeldIsTheOneInForce(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{
		{Name: "rate", Scope: ScopeTenant, Capacity: 1, Refill: 1, Period: time.Second},
		{Name: "provider", Scope: ScopeTenant, Capacity: 9, Refill: 1, Period: time.Second},
	}})
	p := s.granted("a")
	s.plan(in(0, "a", "k"))
	s.release(p.Token, with(OutcomeThrottled), func(r *Release) { r.Bucket, r.RetryAfter = "provider", time.Minute })
	held := func() HeldTenant { return s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1}).Held[0] }
	want(t, "reason at first", held().Reason, TenantRate)
	s.wait(2 * time.Second)
	want(t, "reason while only the pause is left", held().Reason, ProviderPaused)
	want(t, "retry after", held().RetryAfter, 58*time.Second)
	s.wait(58 * time.Second)
	want(t, "claims after the pause", len(s.poll(1)), 1)
}
