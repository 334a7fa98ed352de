package admission

import (
	"testing"
	"time"
)

// Who waits for more than a tenant's new numbers can ever give is told so at once.
func TestAPutEndsWhatItMakesImpossible(t *testing.T) {
	s := New()
	fair := BucketPolicy{Name: "fair", Scope: ScopeTenant, Capacity: 2, Refill: 1, Period: time.Second}
	p := PoolPolicy{Name: "p", MaxActive: 1, Buckets: []BucketPolicy{fair}}
	s.Apply(Entry{Index: 1, Ops: []Op{ApplyPolicy{Policy: Policy{Pools: []PoolPolicy{p}}, ExpectedRevision: AnyRevision}}})
	s.Apply(Entry{Index: 2, Ops: []Op{&Acquire{Pool: "p", Tenant: "other", Cost: 1}}})
	s.Apply(Entry{Index: 3, Ops: []Op{&Acquire{Pool: "p", Tenant: "a", Cost: 2, MaxWait: time.Minute}}})
	less := TenantPolicy{ID: "a", Buckets: map[string]BucketOverride{"fair": {Capacity: 1}}}
	s.Apply(Entry{Index: 4, Ops: []Op{&PutTenants{Pool: "p", Rows: []TenantPut{{Tenant: less}}}}})
	ends := s.Ended()
	if len(ends) != 1 || ends[0].Result.Decision.Shed == nil || ends[0].Result.Decision.Shed.Reason != NeverGrantable {
		t.Errorf("the waits that ended: %+v", ends)
	}
	check(t, s)
}

// Those whom a put makes impossible are each told when the pool's tokens would be there:
// none of them reserves them any more.
func TestWhatAPutMakesImpossibleReservesNothing(t *testing.T) {
	fair := BucketPolicy{Name: "fair", Scope: ScopeTenant, Capacity: 9, Refill: 1, Period: time.Second}
	s := tell(t, PoolPolicy{Buckets: append(perSecond(ScopePool, 3), fair)})
	s.acquire(&Acquire{Pool: "p", Tenant: "x", Cost: 2})
	s.acquire(inLineFor("a", 2))
	s.acquire(inLineFor("a", 2))
	barred := TenantPolicy{ID: "a", Buckets: map[string]BucketOverride{"fair": {Blocked: true}}}
	s.do(&PutTenants{Pool: "p", Rows: []TenantPut{{Tenant: barred}}})
	want(t, "waits that ended", len(s.Ended()), 2)
	for _, end := range s.Ended() {
		for _, limit := range end.Result.Decision.Shed.Blocking {
			if limit.Name == "rate" {
				want(t, "the pool's tokens come", limit.RetryAfter, time.Second)
			}
		}
	}
}
