package admission

import (
	"fmt"
	"testing"
	"time"
)

// apply applies pools and returns the error's reason, or nothing.
func (s *story) policyError(expected int64, pools ...PoolPolicy) ErrorReason {
	s.Helper()
	r := s.do(ApplyPolicy{Policy: Policy{Pools: pools}, ExpectedRevision: expected})[0].(*PolicyResult)
	if r.Err == nil {
		return ""
	}
	return r.Err.Reason
}

// What is in use can't be taken away; nothing of such a policy comes into force.
func TestWhatIsInUseStays(t *testing.T) {
	full := PoolPolicy{
		Name: "p", Lanes: []LanePolicy{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Categories: map[string]string{"x": "a", "y": "b"},
	}
	less := func(change func(*PoolPolicy)) PoolPolicy {
		p := full
		p.MaxActive = 7
		change(&p)
		return p
	}
	for _, c := range []struct {
		name     string
		use      func(s *story)
		next     []PoolPolicy
		kind     string
		permits  string
		entries  string
		finished func(s *story)
	}{
		{
			"a pool with a permit", func(s *story) { s.granted("t") }, nil, "pool", "1", "0",
			func(s *story) { s.wait(time.Minute) },
		},
		{
			"a pool with an entry", func(s *story) { s.plan(in(time.Hour, "t", "k")) }, nil, "pool", "0", "1",
			func(s *story) { s.do(Unschedule{Pool: "p", Tenant: "t", Key: "k"}) },
		},
		{
			"a lane with a permit", func(s *story) { s.acquire(&Acquire{Pool: "p", Tenant: "t", Category: "y", Cost: 1}) },
			[]PoolPolicy{less(func(p *PoolPolicy) {
				p.Lanes, p.Categories = []LanePolicy{{Name: "a"}, {Name: "c"}}, map[string]string{"x": "a", "y": "a"}
			})},
			"lane", "1", "0", func(s *story) { s.wait(time.Minute) },
		},
		{
			"a lane with a dead entry", func(s *story) {
				s.plan(EntrySpec{Tenant: "t", Key: "k", Category: "y"})
				s.release(s.poll(1)[0].Permit.Token, with(OutcomeDead))
			},
			[]PoolPolicy{less(func(p *PoolPolicy) {
				p.Lanes, p.Categories = []LanePolicy{{Name: "a"}, {Name: "c"}}, map[string]string{"x": "a", "y": "a"}
			})},
			"lane", "0", "1", func(s *story) { s.do(Unschedule{Pool: "p", Tenant: "t", Key: "k"}) },
		},
		{
			"a category with an entry", func(s *story) { s.plan(EntrySpec{Tenant: "t", Key: "k", Category: "y", DueAt: birth.Add(time.Hour)}) },
			[]PoolPolicy{less(func(p *PoolPolicy) { p.Categories = map[string]string{"x": "a"} })},
			"category", "0", "1", func(s *story) { s.do(Unschedule{Pool: "p", Tenant: "t", Key: "k"}) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t, full)
			c.use(s)
			before := s.revision
			r := s.do(ApplyPolicy{Policy: Policy{Pools: c.next}, ExpectedRevision: AnyRevision})[0].(*PolicyResult)
			if r.Err == nil || r.Err.Reason != InUse {
				t.Fatalf("%+v, want IN_USE", r)
			}
			meta := map[string]string{}
			for i := 0; i < len(r.Err.Meta); i += 2 {
				meta[r.Err.Meta[i]] = r.Err.Meta[i+1]
			}
			want(t, "names what", meta[c.kind] != "", true)
			want(t, "permits", meta["permits"], c.permits)
			want(t, "entries", meta["entries"], c.entries)
			want(t, "revision", s.revision, before)
			want(t, "cap in force", s.pools.byName("p").maxActive, 0)
			c.finished(s)
			want(t, "error once it is not in use", s.policyError(AnyRevision, c.next...), "")
		})
	}
}

// A policy applies to the revision that its author saw, and an equal one is none.
func TestRevisions(t *testing.T) {
	p := PoolPolicy{Name: "p", MaxActive: 3}
	s := tell(t, p)
	want(t, "an older revision", s.policyError(0, p), RevisionConflict)
	r := s.do(ApplyPolicy{Policy: Policy{Pools: []PoolPolicy{p}}, ExpectedRevision: 1})[0].(*PolicyResult)
	want(t, "an equal policy", r.Err == nil && !r.Changed, true)
	want(t, "an equal policy's revision", r.Revision, 1)
	p.MaxActive = 4
	want(t, "the revision in force", s.policyError(1, p), "")
	want(t, "revision", s.revision, 2)
	p.MaxActive = -1
	want(t, "a rule broken", s.policyError(2, p), PolicyInvalid)
	want(t, "revision", s.revision, 2)
}

// Lanes keep what they hold when they change places; who goes first changes.
func TestLanesChangePlaces(t *testing.T) {
	lanes := []LanePolicy{{Name: "a"}, {Name: "b"}}
	policy := PoolPolicy{Lanes: lanes, Categories: map[string]string{"a": "a", "b": "b"}}
	s := tell(t, policy)
	for _, key := range []string{"1", "2"} {
		s.plan(EntrySpec{Tenant: "t", Key: "a" + key, Category: "a"}, EntrySpec{Tenant: "t", Key: "b" + key, Category: "b"})
	}
	s.do(Pause{Pool: "p", Kind: TargetLane, Name: "b"})
	want(t, "first", fmt.Sprint(keys(s.poll(1))), "[a1]")
	policy.Lanes = []LanePolicy{lanes[1], lanes[0]}
	s.put(policy)
	want(t, "a pause goes with its lane", fmt.Sprint(keys(s.poll(1))), "[a2]")
	s.do(Pause{Pool: "p", Kind: TargetLane, Name: "b", Resume: true})
	s.plan(EntrySpec{Tenant: "t", Key: "a3", Category: "a"})
	want(t, "then", fmt.Sprint(keys(s.poll(3))), "[b1 b2 a3]")
}

// Removing a tenant's override gives it the defaults and counts it among the
// strangers; its buckets keep what was used.
func TestRemovingAnOverride(t *testing.T) {
	policy := PoolPolicy{
		Buckets:   []BucketPolicy{{Name: "b", Scope: ScopeTenant, Capacity: 2, Refill: 1, Period: time.Hour}},
		Overrides: []TenantPolicy{{ID: "a", Buckets: map[string]BucketOverride{"b": {Capacity: 5}}, MaxActive: 9}},
		Defaults:  TenantPolicy{MaxActive: 3},
		Limits:    LimitsPolicy{Tenants: 1},
	}
	s := tell(t, policy)
	s.granted("a")
	s.granted("other") // the one stranger that may be
	policy.Overrides = nil
	s.put(policy)
	want(t, "strangers", s.pools.byName("p").strangers, 2)
	want(t, "level", s.Tenant(s.t, "p", "a").Levels[0].Level, 1)
	s.granted("a")
	s.shed("a", TenantRate)
	s.shed("new", Cardinality)
}

// A cap that shrinks leaves permits alone; nothing is granted until they are fewer.
func TestCapsShrink(t *testing.T) {
	policy := PoolPolicy{MaxActive: 4, Defaults: TenantPolicy{MaxActive: 3}}
	s := tell(t, policy)
	var held []Permit
	for range 3 {
		held = append(held, s.granted("a"))
	}
	policy.Defaults.MaxActive = 1
	s.put(policy)
	want(t, "debt", s.Tenant(s.t, "p", "a").Debt, 2)
	for _, p := range held {
		s.shed("a", TenantCap)
		want(t, "released", s.release(p.Token).Result, LeaseReleased)
	}
	s.granted("a")
}

// A bucket that is removed forgets; one that charges another way is settled by what
// each permit was charged.
func TestBucketsComeAndGo(t *testing.T) {
	bucket := BucketPolicy{Name: "b", Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Hour}
	level := func(s *story) int64 { return s.Health(s.t, s.w, "p")[0].Buckets[0].Level }
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{bucket}})
	p := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 4}).Permit
	q := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 4}).Permit
	bucket.PerPermit = true
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket}})
	want(t, "level when it charges another way", level(s), 2)
	one := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 4}).Permit
	want(t, "level after a permit of that time", level(s), 1)
	s.release(p.Token, func(r *Release) { r.ActualCost = 1 })
	want(t, "level after a permit from before was settled", level(s), 4)
	bucket.PerPermit = false
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket}})
	throttled := func(r *Release) {
		r.Outcome, r.ActualCost, r.RetryAfter, r.Bucket = OutcomeThrottled, 0, time.Minute, "b"
	}
	if r := s.release(one.Token, throttled); r.Err != nil {
		t.Errorf("a 429 on a permit from when it charged another way: %v", r.Err)
	}
	want(t, "level after the permit in between was settled", level(s), 4)
	want(t, "paused", s.Health(s.t, s.w, "p")[0].Buckets[0].Paused, true)
	bucket.Scope = ScopeTenant
	s.put(PoolPolicy{Buckets: []BucketPolicy{bucket}})
	want(t, "level in another scope", s.Tenant(s.t, "p", "a").Levels[0].Level, 10)
	s.release(q.Token, func(r *Release) { r.ActualCost = 9 })
	want(t, "level after another old permit", s.Tenant(s.t, "p", "a").Levels[0].Level, 10)
}

// A pool that is removed leaves nothing, and one that comes again under its name
// begins anew.
func TestPoolsComeAndGo(t *testing.T) {
	s := tell(t, PoolPolicy{})
	ask := &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id"}
	s.release(s.acquire(ask).Permit.Token)
	want(t, "error", s.policyError(AnyRevision, PoolPolicy{Name: "q"}), "")
	for what, n := range map[string]int{
		"tenants": s.tenants.Len(), "demands": s.demands.Len(), "requests": s.requests.Len(), "ended": s.ended.Len(),
	} {
		want(t, what, n, 0)
	}
	want(t, "acquire", s.do(ask)[0].(*AcquireResult).Err.Reason, PoolNotFound)
	s.put(PoolPolicy{})
	want(t, "replayed", s.acquire(ask).Replayed, false)
}

// What a policy drops is gone, though a wait in it ended just before in the same entry.
func TestAWaitEndsAsItsLaneOrPoolIsDropped(t *testing.T) {
	lane := []LanePolicy{{Name: "old"}}
	for name, next := range map[string]Policy{
		"lane": {Pools: []PoolPolicy{{Name: "p", MaxActive: 1, Lanes: []LanePolicy{{Name: "new"}}}}},
		"pool": {Pools: []PoolPolicy{{Name: "q", MaxActive: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, PoolPolicy{MaxActive: 1, Lanes: lane, Buckets: perSecond(ScopePool, 1)})
			s.release(s.granted("x").Token)
			wait := s.acquire(inLineFor("a", 1))
			s.Snapshot() // rows are written anew from here on
			results := s.do(Detach{Waiter: wait.Waiter}, ApplyPolicy{Policy: next, ExpectedRevision: AnyRevision})
			want(t, "waits that ended", len(s.Ended()), 1)
			want(t, "the policy is applied", results[1].(*PolicyResult).Err == nil, true)
			check(t, s.State)
			restored(t, s.State)
		})
	}
}
