package admission

import (
	"fmt"
	"testing"
	"time"
)

// An entry given back unstarted costs no attempt, three times; the fourth counts
// as a failure.
func TestNotStartedIsFreeThreeTimes(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.plan(in(0, "a", "k"))
	for range 4 {
		claims := s.poll(1)
		want(t, "claims", len(claims), 1)
		want(t, "attempt", claims[0].Attempt, 1)
		s.release(claims[0].Permit.Token, with(OutcomeNotStarted))
	}
	dead, err := s.Snapshot().ListDead("p", DeadFilter{}, DeadPlace{}, 9)
	if err != nil || len(dead) != 1 || dead[0].History[0].Outcome != OutcomeFailed {
		t.Errorf("dead: %+v, %v", dead, err)
	}
}

// A throttled entry is due again at once and has all its attempts; the bucket that
// was named pauses, for everybody.
func TestThrottledEntriesStayDue(t *testing.T) {
	s := tell(t, PoolPolicy{
		Buckets: []BucketPolicy{
			{Name: "one", Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Second},
			{Name: "two", Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Second},
		},
		Retry: RetryPolicy{MaxAttempts: 1},
	})
	s.plan(in(0, "a", "k"))
	token := s.poll(1)[0].Permit.Token
	wrong := s.release(token, with(OutcomeThrottled))
	if wrong.Err == nil || wrong.Err.Field != "bucket" {
		t.Fatalf("no bucket named of two: %+v, want an error", wrong)
	}
	want(t, "a wrong call leaves the permit", s.permits.Len(), 1)
	s.release(token, with(OutcomeThrottled), func(r *Release) { r.Bucket, r.RetryAfter = "two", 3*time.Second })
	shed := s.shed("b", ProviderPaused)
	want(t, "blocking limits", len(shed.Blocking), 1)
	want(t, "blocking limit", shed.Blocking[0].Name, "two")
	want(t, "retry after", shed.RetryAfter, 3*time.Second)
	s.wait(3 * time.Second)
	claims := s.poll(1)
	want(t, "claims after the pause", len(claims), 1)
	want(t, "attempt", claims[0].Attempt, 1)
}

// Of one entry, releases come before the expiry sweep, and what they free is given
// out in it; a renewal at that moment is too late.
func TestTheMomentOfExpiry(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, PermitTTL: time.Second})
	p := s.granted("a")
	s.shed("b", PoolCap)
	e := Entry{Index: s.index + 1, T: s.t.Add(time.Second), W: s.w, Ops: []Op{
		&Acquire{Pool: "p", Tenant: "b", Cost: 1},
		&Renew{Tokens: []Token{p.Token}},
		&Release{Token: p.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent},
	}}
	results := s.entry(e)
	want(t, "renewed at its time", results[1].(*RenewResult).Renewals[0].Result, LeaseLost)
	want(t, "released at its time", results[2].(*ReleaseResult).Result, LeaseReleased)
	want(t, "the slot is given out", results[0].(*AcquireResult).Decision.Shed == nil, true)
}

// Time without a leader is credited to who holds a permit; buckets refill in it.
func TestAGapWithoutALeader(t *testing.T) {
	s := tell(t, PoolPolicy{
		PermitTTL: 10 * time.Second,
		Buckets:   []BucketPolicy{{Name: "b", Scope: ScopePool, Capacity: 1, Refill: 1, Period: time.Minute}},
	})
	p := s.granted("a")
	s.wait(4 * time.Second)
	s.do(TermStart{Gap: time.Hour})
	want(t, "cluster time", s.t, Instant(time.Hour+4*time.Second))
	s.release(s.granted("a").Token) // refilled
	r := s.do(&Renew{Tokens: []Token{p.Token}, TTL: time.Second})[0].(*RenewResult)
	want(t, "time left", r.Renewals[0], Renewal{LeaseRenewed, 6 * time.Second})
	at, _ := s.State.Deadline()
	want(t, "deadline", at, s.t.Add(6*time.Second))
	s.wait(6*time.Second - 1)
	want(t, "permits before the end", s.permits.Len(), 1)
	s.wait(1)
	want(t, "permits after it", s.permits.Len(), 0)
}

// A renewal never takes time away, and leaves the permit's own ttl as it was.
func TestRenewalsOnlyAddTime(t *testing.T) {
	s := tell(t, PoolPolicy{PermitTTL: 10 * time.Second})
	p := s.granted("a")
	renew := func(ttl time.Duration) Renewal {
		return s.do(&Renew{Tokens: []Token{p.Token}, TTL: ttl})[0].(*RenewResult).Renewals[0]
	}
	want(t, "with a shorter ttl", renew(time.Second), Renewal{LeaseRenewed, 10 * time.Second})
	want(t, "with a longer ttl", renew(time.Minute), Renewal{LeaseRenewed, time.Minute})
	s.wait(55 * time.Second)
	want(t, "with the permit's own", renew(0), Renewal{LeaseRenewed, 10 * time.Second})
}

// Settling an estimate touches the buckets that charged the permit, by what they
// charged: not one that came later, nor one that is new under an old name.
func TestSettlementTouchesOnlyWhatWasCharged(t *testing.T) {
	bucket := func(name string, perPermit bool) BucketPolicy {
		return BucketPolicy{Name: name, Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Hour, PerPermit: perPermit}
	}
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{bucket("stays", false), bucket("goes", false), bucket("counts", true)}})
	p := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 6}).Permit
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket("stays", false), bucket("counts", true)}})
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket("stays", false), bucket("goes", false), bucket("counts", true), bucket("new", false)}})
	s.acquire(&Acquire{Pool: "p", Tenant: "b", Cost: 4})
	s.release(p.Token, func(r *Release) { r.ActualCost = 1 })
	levels := map[string]int64{}
	for _, b := range s.Health(s.t, s.w, "p")[0].Buckets {
		levels[b.Bucket] = b.Level
	}
	want(t, "levels", fmt.Sprint(levels), fmt.Sprint(map[string]int64{"stays": 5, "goes": 6, "counts": 8, "new": 6}))
}

// No entry ends more permits than its bound; until their turn they still count.
func TestExpiryIsBounded(t *testing.T) {
	s := tell(t, PoolPolicy{PermitTTL: time.Second})
	s.quick = true
	var asks []Op
	for range MaxExpiries + 10 {
		asks = append(asks, &Acquire{Pool: "p", Tenant: "a", Cost: 1})
	}
	s.do(asks...)
	s.wait(time.Second)
	want(t, "permits after one entry", s.permits.Len(), 10)
	check(t, s.State)
	s.wait(0)
	want(t, "permits after two", s.permits.Len(), 0)
}
