package admission

import (
	"testing"
	"time"
)

// Waits that end together end a bounded number an entry, and nobody is forgotten.
func TestWaitsThatEndTogetherEndInParts(t *testing.T) {
	const waits = 2*endLimit + 10
	s := tell(t, PoolPolicy{MaxActive: 1, Limits: LimitsPolicy{WaitingPerTenant: 2 * waits}})
	s.quick = true
	s.granted("holder")
	var asks []Op
	for range waits {
		asks = append(asks, &Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Second})
	}
	s.do(asks...)
	s.wait(time.Second)
	for _, ended := range []int{endLimit, endLimit, 10, 0} {
		want(t, "waits that end", len(s.Ended()), ended)
		at, ok := s.State.Deadline()
		want(t, "an entry is due for the others", ok && at <= s.t, s.waiters.Len() > 0)
		s.wait(0)
	}
	check(t, s.State)
}

// What a permit did not use of a bucket that never refills serves who waits for it.
func TestSettlementServesWhoWaitsForOneShotTokens(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 2, Buckets: []BucketPolicy{{Name: "b", Scope: ScopePool, Capacity: 10, OneShot: true}}})
	first := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 6}).Permit
	second := s.granted("b")
	s.acquire(&Acquire{Pool: "p", Tenant: "c", Cost: 3, MaxWait: time.Minute})
	s.acquire(&Acquire{Pool: "p", Tenant: "d", Cost: 1, RateOnly: true})
	s.release(second.Token)
	want(t, "waits that end while tokens lack", len(s.Ended()), 0)
	if shed := s.acquire(&Acquire{Pool: "p", Tenant: "e", Cost: 1}).Shed; shed == nil {
		t.Error("passes who waits")
	}
	s.release(first.Token, func(r *Release) { r.ActualCost = 5 })
	want(t, "waits that end", len(s.Ended()), 1)
	want(t, "granted", s.Ended()[0].Result.Decision.Granted(), true)
}
