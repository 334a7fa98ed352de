package admission

import (
	"testing"
	"time"
)

func TestSpentTokensKeepNoTenant(t *testing.T) {
	s := newBench(PoolPolicy{})
	s.apply(0, &Acquire{Pool: "p", Tenant: "passing", Cost: 1, RateOnly: true, Backlog: Absent})
	s.apply(spareTime + time.Second)
	want(t, "tenants", s.tenants.Len(), 0)
}

func TestATermForgetsNobodyInItsOwnEntry(t *testing.T) {
	s := newBench(PoolPolicy{MaxActive: 1, PermitTTL: time.Hour})
	s.apply(0, &Acquire{Pool: "p", Tenant: "holder", Cost: 1, Backlog: Absent})
	got := s.apply(0, &Acquire{Pool: "p", Tenant: "passing", Cost: 1, MaxWait: time.Minute, Backlog: Absent})
	s.apply(0, Detach{got[0].(*AcquireResult).Decision.Waiter}, TermStart{Gap: time.Second})
	restored(t, s.State)
	s.apply(spareTime + time.Second)
	want(t, "tenants", s.tenants.Len(), 1)
}

// A blocked bucket refills as ever: it keeps nobody for good.
func TestABlockedBucketKeepsNoTenant(t *testing.T) {
	pool := PoolPolicy{Buckets: []BucketPolicy{{Name: "b", Scope: ScopeTenant, Capacity: 5, Refill: 1, Period: time.Second}}}
	s := tell(t, pool)
	s.release(s.granted("passing").Token)
	pool.Overrides = []TenantPolicy{{ID: "passing", Buckets: map[string]BucketOverride{"b": {Blocked: true}}}}
	s.put(pool)
	s.wait(time.Second)
	want(t, "tenants", s.tenants.Len(), 0)
}
