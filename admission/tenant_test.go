package admission

import (
	"fmt"
	"testing"
	"time"
)

// Tenants that came once leave nothing behind: no row, no index, no count.
func TestOneOffTenantsLeaveNothing(t *testing.T) {
	const tenants, batch = 100_000, 1000
	s := tell(t, PoolPolicy{
		Buckets: []BucketPolicy{{Name: "b", Scope: ScopeTenant, Capacity: 2, Refill: 1, Period: time.Second}},
		Limits:  LimitsPolicy{NewTenantsPerSecond: tenants},
	})
	s.quick = true
	for from := 0; from < tenants; from += batch {
		var asks []Op
		for i := range batch {
			asks = append(asks, &Acquire{Pool: "p", Tenant: fmt.Sprint("t", from+i), Cost: 1, TTL: time.Second})
		}
		for _, r := range s.do(asks...) {
			if shed := r.(*AcquireResult).Decision.Shed; shed != nil {
				t.Fatalf("shed %s", shed.Reason)
			}
		}
	}
	want(t, "tenants known", s.tenants.Len(), tenants)
	p := s.pools.byName("p")
	s.wait(time.Second)
	for range tenants/min(MaxExpiries, forgetLimit) + 1 {
		s.wait(time.Millisecond)
	}
	want(t, "strangers once all are found idle", p.strangers, 0)
	s.wait(spareTime)
	want(t, "tenants known when some are forgotten", s.tenants.Len(), tenants-forgetLimit)
	for range tenants/forgetLimit - 1 {
		s.wait(0)
	}
	for what, n := range map[string]int{
		"tenants": s.tenants.Len(), "demands": s.demands.Len(), "permits": s.permits.Len(), "holdings": s.holdings.Len(),
		"tenants by name": p.tenants.len(), "strangers": int(p.strangers), "idle": p.idle.Len(), "spare": p.spare.Len(), "expiries": p.expiries.Len(),
	} {
		want(t, what, n, 0)
	}
	check(t, s.State)
}

// A tenant is kept as long as anything tells it from a new one.
func TestTenantsAreKeptForAReason(t *testing.T) {
	policy := PoolPolicy{
		Buckets: []BucketPolicy{
			{Name: "slow", Scope: ScopeTenant, Capacity: 2, Refill: 1, Period: time.Hour},
			{Name: "once", Scope: ScopeTenant, Capacity: 9, OneShot: true},
		},
		Overrides: []TenantPolicy{{ID: "free", Buckets: map[string]BucketOverride{"once": {Capacity: 9}}}},
	}
	known := func(s *story, tenant string) bool { return s.pools.byName("p").tenants.get(tenant) != nil }
	t.Run("a used one_shot bucket is for ever", func(t *testing.T) {
		s := tell(t, policy)
		s.release(s.granted("a").Token)
		s.wait(1000 * time.Hour)
		want(t, "known", known(s, "a"), true)
		want(t, "level", s.Tenant(s.t, "p", "a").Levels[1].Level, 8)
	})
	policy.Buckets = policy.Buckets[:1]
	policy.Overrides = nil
	t.Run("a bucket that is not full yet", func(t *testing.T) {
		s := tell(t, policy)
		s.release(s.granted("a").Token)
		s.wait(time.Hour + spareTime - 1)
		want(t, "known before it is full for long", known(s, "a"), true)
		s.wait(1)
		want(t, "known when it is", known(s, "a"), false)
	})
	t.Run("a pause", func(t *testing.T) {
		s := tell(t, policy)
		s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a"})
		s.wait(1000 * time.Hour)
		s.shed("a", Paused)
		s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a", Resume: true})
		s.wait(spareTime + 1)
		want(t, "known after resume", known(s, "a"), false)
	})
	t.Run("a dead entry", func(t *testing.T) {
		s := tell(t, policy)
		s.plan(in(0, "a", "k"))
		s.release(s.poll(1)[0].Permit.Token, with(OutcomeDead))
		s.wait(1000 * time.Hour)
		want(t, "known", known(s, "a"), true)
		s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k"})
		s.wait(spareTime + 1)
		want(t, "known once it is removed", known(s, "a"), false)
	})
}

// Where only new tenants come to a pool that knows as many as it may, the idle
// ones must make room: also for a decision that is asked for without an entry.
func TestIdleTenantsMakeRoomForNewOnes(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{Tenants: 1}})
	s.release(s.granted("a").Token)
	if shed := s.shed("b", Cardinality); shed.RetryAfter != Absent {
		t.Errorf("retry after %s, want none", shed.RetryAfter)
	}
	ask := &Acquire{Pool: "p", Tenant: "b", Cost: 1}
	if d := s.Decide(s.t.Add(time.Hour), ask).Decision; d.Shed != nil {
		t.Errorf("decided an hour later: shed %s; nobody would ever log an entry that forgets a", d.Shed.Reason)
	}
	s.wait(time.Hour)
	s.granted("b")
}

// Whom the pool forgets before its tokens come is told no time where its place would be
// another's by then.
func TestWhoLosesItsPlaceIsToldNoTime(t *testing.T) {
	policy := PoolPolicy{Buckets: perSecond(ScopePool, 1), Limits: LimitsPolicy{Tenants: 3}}
	s := tell(t, policy)
	for _, tenant := range []string{"a", "b"} {
		s.granted(tenant)
		s.wait(time.Second)
	}
	s.release(s.granted("c").Token)
	want(t, "comes back in time", s.shed("c", PoolRate).RetryAfter, time.Second)
	policy.Limits.Tenants = 2
	s.put(policy)
	want(t, "comes back too late", s.shed("c", PoolRate).RetryAfter, Absent)
	s.wait(time.Second)
	s.shed("c", Cardinality)
}

// Whom the pool forgets before its tokens come is told when it may be new again.
func TestWhoIsForgottenTillThenIsToldWhenItMayBeNew(t *testing.T) {
	s := tell(t, PoolPolicy{
		Buckets: []BucketPolicy{{Name: "b", Scope: ScopePool, Capacity: 1, Refill: 10, Period: 6 * time.Second}},
		Limits:  LimitsPolicy{NewTenantsPerSecond: 1},
	})
	s.release(s.granted("a").Token)
	s.wait(spareTime - time.Second/2)
	s.granted("b")
	want(t, "retry after", s.shed("a", PoolRate).RetryAfter, time.Second)
	s.wait(999 * time.Millisecond)
	s.shed("a", Cardinality)
	s.wait(time.Millisecond)
	s.granted("a")
}
