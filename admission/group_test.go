package admission

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// of puts an entry into a group, and perhaps a route.
func of(group string, e EntrySpec, route ...string) EntrySpec {
	e.Group, e.Route = group, strings.Join(route, "")
	return e
}

// setGroup pauses or resumes a group of tenant "a".
func (s *story) setGroup(group string, resume bool) *Error {
	s.Helper()
	return s.do(Pause{Pool: "p", Kind: TargetGroup, Tenant: "a", Name: group, Resume: resume})[0].(*PauseResult).Err
}

func (s *story) claim(n int, wanted string) []Claim {
	s.Helper()
	claims := s.poll(n)
	want(s, "claims", fmt.Sprint(keys(claims)), wanted)
	return claims
}

// A paused group waits while the tenant's other work goes on, and another
// tenant's group of that name too. It is resumed where it would have been.
func TestAPausedGroupWaits(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(of("run", in(0, "a", "r1")), in(0, "a", "x1"), of("run", in(0, "a", "r2")), of("other", in(0, "a", "o1")),
		of("run", in(0, "b", "b1")), in(0, "a", "x2"))
	s.setGroup("run", false)
	s.setGroup("run", false)
	s.claim(3, "[x1 b1 o1]")
	s.setGroup("run", true)
	s.claim(9, "[r1 r2 x2]")
}

// Within a route entries go by their place in line whatever their groups; routes
// take turns whatever the groups, and a route keeps its turn when the group of
// its first entry is paused.
func TestGroupsKeepPlacesAndTurns(t *testing.T) {
	for _, c := range []struct{ pause, wanted string }{
		{"none", "[1 2 3 4 5 6]"},
		{"g", "[3 2 4 6]"},
		{"h", "[1 4 3 6 5]"},
	} {
		t.Run(c.pause, func(t *testing.T) {
			s := tell(t, PoolPolicy{})
			s.plan(of("g", in(0, "a", "1"), "r"), of("h", in(0, "a", "2"), "s"), of("", in(0, "a", "3"), "r"),
				of("", in(0, "a", "4"), "s"), of("g", in(0, "a", "5"), "r"), of("", in(0, "a", "6"), "s"))
			s.setGroup(c.pause, false)
			s.claim(9, c.wanted)
		})
	}
}

// The place in line of the entries, and the order in which routes take turns,
// are those of the first due time, also for routes that come back.
func TestAResumedGroupComesBackInOrder(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(of("g", in(0, "a", "1"), "r"))
	s.plan(of("g", in(0, "a", "2"), "s"))
	s.plan(of("g", in(0, "a", "3"), "t"))
	s.setGroup("g", false)
	s.plan(in(0, "a", "4"))
	s.setGroup("g", true)
	s.claim(9, "[4 1 2 3]")
}

// What is scheduled into a paused group, or comes back to it, waits as well.
// Permits that are out go on.
func TestWhatComesToAPausedGroupWaits(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{Base: time.Second}})
	s.setGroup("g", false)
	want(t, "a tenant with a paused group", s.pools.byName("p").tenants.len(), 1)
	s.setGroup("g", true)
	s.plan(of("g", in(0, "a", "back")), of("g", in(0, "a", "done")))
	claims := s.claim(9, "[back done]")
	s.setGroup("g", false)
	s.plan(of("g", in(0, "a", "new")), of("g", in(0, "a", "gone")), of("g", in(time.Second, "a", "soon")))
	want(t, "removed", s.do(Unschedule{Pool: "p", Tenant: "a", Key: "gone"})[0].(*UnscheduleResult).Err == nil, true)
	want(t, "failed", s.release(claims[0].Permit.Token, with(OutcomeFailed)).Result, LeaseReleased)
	want(t, "done", s.release(claims[1].Permit.Token).Result, LeaseReleased)
	s.wait(time.Second)
	s.claim(9, "[]")
	s.setGroup("g", true)
	s.claim(9, "[back new soon]")
}

// A tenant that has nothing due but entries of paused groups is held as PAUSED,
// with how many are due and since when. Otherwise they count for nothing.
func TestAPausedGroupIsShown(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(of("g", in(0, "a", "g1")), of("g", in(time.Second, "a", "g2")), of("g", in(time.Hour, "a", "g3")), in(2*time.Second, "a", "x"))
	s.setGroup("g", false)
	s.wait(2*time.Second - 1)
	show := func() string {
		v := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", Tenant: "a"})
		return fmt.Sprint(v.Held, v.Totals, v.Lanes)
	}
	held := HeldTenant{Tenant: "a", Lane: "default", Reason: Paused, Due: 2, OldestAge: 2*time.Second - 1, RetryAfter: Absent}
	want(t, "held", show(), fmt.Sprint([]HeldTenant{held}, []HeldTotal{{Paused, 1}}, []LaneState{{Lane: "default"}}))
	s.wait(1)
	want(t, "with other work", show(), fmt.Sprint([]HeldTenant(nil), []HeldTotal(nil), []LaneState{{Lane: "default", Depth: 1}}))
	s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a"})
	held.Due, held.OldestAge = 3, 2*time.Second
	want(t, "all paused", show(), fmt.Sprint([]HeldTenant{held}, []HeldTotal{{Paused, 1}}, []LaneState{{Lane: "default"}}))
	s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a", Resume: true})
	s.setGroup("g", true)
	s.claim(9, "[g1 g2 x]")
}

// Paused groups are remembered, with entries or without, and keep their tenant;
// they are as many as the limit says.
func TestPausedGroupsAreRememberedUpToALimit(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{PausedGroups: 2}})
	for i := range 3 {
		err := s.setGroup(fmt.Sprint("g", i), false)
		want(t, "refused", err != nil, i == 2)
		if err != nil {
			want(t, "why", fmt.Sprint(err, err.Meta), "LIMIT_REACHED: limits.paused_groups of pool p is 2, and it is reached [pool p limit limits.paused_groups capacity 2]")
		}
	}
	want(t, "again", s.setGroup("g1", false) == nil, true)
	s.wait(time.Hour)
	s.State = restored(t, s.State)
	s.plan(of("g1", in(0, "a", "k")))
	s.claim(1, "[]")
	want(t, "resumed", s.setGroup("g1", true) == nil, true)
	want(t, "room again", s.setGroup("g2", false) == nil, true)
	s.release(s.claim(1, "[k]")[0].Permit.Token)
	s.setGroup("g0", true)
	s.setGroup("g2", true)
	s.wait(spareTime + time.Second)
	want(t, "tenants left", s.tenants.Len(), 0)
}

// Nothing is left of paused groups when their pool goes.
func TestPausedGroupsGoWithTheirPool(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.setGroup("g", false)
	s.setGroup("h", false)
	s.do(ApplyPolicy{Policy: Policy{Pools: []PoolPolicy{{Name: "q"}}}, ExpectedRevision: AnyRevision})
	want(t, "paused groups", s.pausedGroups.Len(), 0)
	s.put(PoolPolicy{})
	s.plan(of("g", in(0, "a", "k")))
	s.claim(1, "[k]")
}

// Pausing costs by the group's queues: a group of many entries is held, shown and
// let go in one entry each, with all that was known of it.
func TestPausingCountsNoEntry(t *testing.T) {
	const n = 3 * promoteBudget
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{EntriesPerTenant: n}})
	s.quick = true
	var specs []EntrySpec
	for i := range n {
		specs = append(specs, of("g", in(0, "a", fmt.Sprint(i))))
	}
	s.plan(specs...)
	for s.pools.byName("p").lanes[0].depth < n {
		s.wait(0)
	}
	depth := func() int64 {
		return s.Shedding(s.t, s.w, SheddingQuery{Pool: "p"}).Lanes[0].Depth
	}
	due := func() string {
		v := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1})
		return fmt.Sprint(v.Held[0].Reason, v.Held[0].Due)
	}
	s.setGroup("g", false)
	want(t, "depth while held", depth(), 0)
	want(t, "held", due(), fmt.Sprint(Paused, n))
	s.setGroup("g", true)
	want(t, "depth when let go", depth(), n)
	check(t, s.State)
}

// The order in which routes become ready goes by when a retry came due, not by
// when it was found out that its permit had expired.
func TestRetriesBecomeReadyWhenTheyAreDue(t *testing.T) {
	for _, swept := range []time.Duration{time.Second, time.Hour} {
		t.Run(swept.String(), func(t *testing.T) {
			s := tell(t, PoolPolicy{Retry: RetryPolicy{Base: 10 * time.Second}, PermitTTL: time.Second})
			s.plan(of("", in(0, "a", "old"), "r"))
			s.claim(1, "[old]")
			s.plan(of("", in(2*time.Second, "a", "young"), "s"))
			s.wait(swept) // the permit expires; its retry is due after five seconds at least
			s.wait(time.Hour)
			s.claim(9, "[young old]")
		})
	}
}

// An entry of a paused group is explained by that, and by what goes before it
// once the group is let go.
func TestAnEntryOfAPausedGroupIsExplained(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "x"), of("g", in(0, "a", "g1")), of("h", in(0, "a", "h")), of("g", in(0, "a", "g2")))
	explain := func() string {
		e, err := s.Explain(s.t, s.w, &ExplainQuery{Request: Acquire{Pool: "p", Tenant: "a"}, Key: "g2"})
		if err != nil {
			t.Fatal(err)
		}
		if e.Shed == nil {
			return fmt.Sprint("ahead ", e.Entry.Ahead)
		}
		return fmt.Sprint(e.Shed.Reason, e.Shed.Blocking[0].Name)
	}
	want(t, "as it is", explain(), "ahead 3")
	s.setGroup("g", false)
	want(t, "paused", explain(), fmt.Sprint(Paused, "paused_group"))
}
