package admission

import (
	"testing"
	"time"
)

// A wait that ends is told what held it; one whose tokens come between the last
// entry and its end is granted.
func TestAWaitThatEndsWasHeld(t *testing.T) {
	s := New()
	rate := BucketPolicy{Name: "rate", Scope: ScopePool, Capacity: 3, Refill: 1, Period: time.Second}
	p := Policy{Pools: []PoolPolicy{{Name: "p", Buckets: []BucketPolicy{rate}}}}
	at := func(index uint64, t time.Duration, ops ...Op) []WaitEnd {
		s.Apply(Entry{Index: index, T: Instant(t), Ops: ops})
		return s.Ended()
	}
	at(1, 0, ApplyPolicy{Policy: p, ExpectedRevision: AnyRevision}, &Acquire{Pool: "p", Tenant: "other", Cost: 3})
	at(2, 0, &Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: 1500 * time.Millisecond})
	ends := at(3, 2*time.Second)
	if len(ends) != 1 || !ends[0].Result.Decision.Granted() {
		t.Errorf("its token came in time: %+v", ends)
	}
	// The second of one line waits behind the first, which takes all there is.
	at(4, 2*time.Second, &Acquire{Pool: "p", Tenant: "a", Cost: 3, MaxWait: time.Minute})
	at(5, 2*time.Second, &Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Millisecond})
	ends = at(6, 2*time.Second+time.Millisecond)
	if len(ends) != 1 || ends[0].Result.Decision.Shed == nil || ends[0].Result.Decision.Shed.Reason != PoolRate {
		t.Errorf("it waited behind its own: %+v", ends)
	}
	check(t, s)
}
