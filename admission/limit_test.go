package admission

import (
	"fmt"
	"testing"
	"time"
)

// A tenth of each limit that lanes use is kept for the top lane: a flood in the
// lower one is refused before the limit, and the top lane has the rest.
func TestTheTopLaneHasATenthOfEachLimit(t *testing.T) {
	lanes := []LanePolicy{{Name: "high"}, {Name: "low"}}
	categories := map[string]string{"h": "high", "l": "low"}
	named := []TenantPolicy{{ID: "a"}}
	acquire := func(change func(op *Acquire, n string)) func(s *story, lane, n string) Reason {
		return func(s *story, lane, n string) Reason {
			op := &Acquire{Pool: "p", Tenant: "a", Category: lane, Cost: 1}
			change(op, n)
			return shedOf(s.acquire(op))
		}
	}
	waits := acquire(func(op *Acquire, _ string) { op.MaxWait = time.Minute })
	for limit, c := range map[string]struct {
		policy PoolPolicy
		// ask asks for one thing more in a lane, and says why it was refused.
		ask  func(s *story, lane, n string) Reason
		want Reason
	}{
		"entries":            {PoolPolicy{Limits: LimitsPolicy{Entries: 20, EntriesPerTenant: 100}}, planOne, QueueFull},
		"entries_per_tenant": {PoolPolicy{Limits: LimitsPolicy{EntriesPerTenant: 20}}, planOne, QueueFull},
		"tenants": {PoolPolicy{Limits: LimitsPolicy{Tenants: 20}}, acquire(func(op *Acquire, n string) { op.Tenant = "t" + n }),
			Cardinality},
		"new_tenants_per_second": {PoolPolicy{Limits: LimitsPolicy{NewTenantsPerSecond: 20}},
			acquire(func(op *Acquire, n string) { op.Tenant = "t" + n }), Cardinality},
		"request_ids": {PoolPolicy{Limits: LimitsPolicy{RequestIDs: 20}}, acquire(func(op *Acquire, n string) { op.RequestID = n }),
			Cardinality},
		"dedupe_keys": {PoolPolicy{Limits: LimitsPolicy{DedupeKeys: 20}}, acquire(func(op *Acquire, n string) { op.DedupeKey = n }),
			Cardinality},
		"waiting":            {PoolPolicy{MaxActive: 1, Limits: LimitsPolicy{Waiting: 20}}, waits, QueueFull},
		"waiting_per_tenant": {PoolPolicy{MaxActive: 1, Limits: LimitsPolicy{WaitingPerTenant: 20}}, waits, QueueFull},
	} {
		t.Run(limit, func(t *testing.T) {
			c.policy.Lanes, c.policy.Categories, c.policy.Overrides = lanes, categories, named
			s := tell(t, c.policy)
			if c.policy.MaxActive > 0 {
				s.granted("a")
			}
			taken := 0
			fill := func(lane string) {
				for ; ; taken++ {
					if why := c.ask(s, lane, fmt.Sprint(taken)); why != ReasonNone {
						want(t, "refused in "+lane, why, c.want)
						return
					}
				}
			}
			fill("l")
			want(t, "taken by the lower lane", taken, 18)
			fill("h")
			want(t, "taken by both", taken, 20)
			for _, use := range s.Limits(s.t, "p") {
				if use.Limit == limit {
					want(t, "told as", use, LimitUse{limit, 20, 20})
				}
			}
		})
	}
}

func planOne(s *story, lane, n string) Reason {
	spec := in(time.Hour, "a", n)
	spec.Category = lane
	return s.plan(spec)[0].Reason
}

func shedOf(d Decision) Reason {
	if d.Shed == nil {
		return ReasonNone
	}
	return d.Shed.Reason
}

// What a limit keeps for the top lane is told with the refusal.
func TestARefusalTellsTheTenth(t *testing.T) {
	s := tell(t, PoolPolicy{
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, MaxActive: 1,
		Limits: LimitsPolicy{Waiting: 10, WaitingPerTenant: 10, RequestIDs: 10, DedupeKeys: 10},
	})
	s.granted("a")
	for n := range 9 {
		s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute, DedupeKey: fmt.Sprint(n)})
	}
	d := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute})
	want(t, "shed", fmt.Sprint(d.Shed.Blocking[1:]), fmt.Sprint([]Limit{
		{Name: "limits.waiting", Scope: ScopePool, Capacity: 10, Used: 9, Asked: 1, Reserve: 1, RetryAfter: Absent},
		{Name: "limits.waiting_per_tenant", Scope: ScopeTenant, Capacity: 10, Used: 9, Asked: 1, Reserve: 1, RetryAfter: Absent},
	}))
	d = s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, DedupeKey: "new"})
	want(t, "shed", fmt.Sprint(d.Shed.Blocking[1:]), fmt.Sprint([]Limit{
		{Name: "limits.dedupe_keys", Scope: ScopePool, Capacity: 10, Used: 9, Asked: 1, Reserve: 1, RetryAfter: Absent},
	}))
}

// A poll counts as of the highest lane that it asks for.
func TestPollsOfTheTopLaneHaveTheTenth(t *testing.T) {
	s := tell(t, PoolPolicy{
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Limits: LimitsPolicy{RequestIDs: 10},
	})
	for n := range 10 {
		s.plan(in(0, "a", fmt.Sprint(n)))
		lanes := []string{"low"}
		if n == 9 {
			refused := s.do(&NextDue{Pool: "p", MaxItems: 1, RequestID: "low", Lanes: lanes})[0].(*NextDueResult)
			want(t, "claims of the lower lane's", len(refused.Claims), 0)
			want(t, "why", refused.refused, Cardinality)
			lanes = nil
		}
		r := s.do(&NextDue{Pool: "p", MaxItems: 1, RequestID: fmt.Sprint(n), Lanes: lanes})[0].(*NextDueResult)
		want(t, "claims", len(r.Claims), 1)
	}
}

// The most that any tenant has goes up and down with it.
func TestPeak(t *testing.T) {
	var p peak
	has := []int64{0, 0, 0}
	for _, step := range []struct {
		tenant int
		by     int64
		most   int64
	}{{0, 1, 1}, {1, 1, 1}, {1, 1, 2}, {0, 1, 2}, {1, -1, 2}, {0, -1, 1}, {2, 1, 1}, {0, -1, 1}, {1, -1, 1}, {2, -1, 0}} {
		was := has[step.tenant]
		has[step.tenant] += step.by
		p.move(was, has[step.tenant])
		want(t, fmt.Sprint("most of ", has), p.most, step.most)
	}
	want(t, "counts kept", len(p.tenants), 0)
}
