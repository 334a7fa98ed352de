package admission

import (
	"fmt"
	"testing"
	"time"
)

// blast schedules n entries due at one moment, each in the route that name gives.
func (s *story) blast(n int, due Wall, route func(i int) (tenant, route string)) {
	s.Helper()
	var specs []EntrySpec
	for i := range n {
		tenant, r := route(i)
		specs = append(specs, EntrySpec{Tenant: tenant, Route: r, Key: fmt.Sprint("k", i), DueAt: due, Category: "bulk"})
		if len(specs) == 1000 || i == n-1 {
			s.plan(specs...)
			specs = specs[:0:0]
		}
	}
}

// However many entries come due at one instant, and however they are spread over
// tenants and routes, no entry of the log makes more of them ready than its bound,
// and a login code that comes due just after is claimed at once.
func TestABlastComesDueInBoundedSteps(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int64
		route func(i int) (string, string)
	}{
		{"one route", 100_000, func(int) (string, string) { return "big", "" }},
		{"a thousand routes of a tenant", 20_000, func(i int) (string, string) { return "big", fmt.Sprint(i % 1000) }},
		{"a route of each of a thousand tenants", 20_000, func(i int) (string, string) { return fmt.Sprint("t", i%1000), "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := c.n
			s := tell(t, PoolPolicy{
				Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"otp": "high", "bulk": "low"},
				Limits: LimitsPolicy{EntriesPerTenant: 2 * n, NewTenantsPerSecond: 2 * n},
			})
			s.quick = true
			due := s.w.Add(time.Second)
			s.blast(int(n), due, c.route)
			s.plan(EntrySpec{Tenant: "small", Key: "code", Category: "otp", DueAt: due + 1})
			low := s.pools.byName("p").lane("low")
			s.entry(Entry{Index: s.index + 1, T: s.t.Add(time.Second), W: due + 1})
			counted := low.depth
			const most = promoteBudget
			want(t, "counted in the first entry within the bound", counted > 0 && counted <= most, true)
			want(t, "claimed", fmt.Sprint(keys(s.poll(1))), "[code]")
			for steps := int64(0); low.depth < n; steps++ {
				before := low.depth
				s.wait(0)
				if grown := low.depth - before; grown <= 0 || grown > most || steps > n {
					t.Fatalf("%d more were counted in one entry", grown)
				}
			}
			want(t, "ready", s.dueQueues.Len() > 0, true)
			check(t, s.State)
			checkPrompt(t, s.State)
		})
	}
}

// Where every entry has a route of its own, those due first become ready first,
// at most the bound in one log entry, and none is left behind.
func TestRoutesBecomeReadyInDueOrder(t *testing.T) {
	s := tell(t, PoolPolicy{Lanes: []LanePolicy{{Name: "low"}}, Categories: map[string]string{"bulk": "low"}, Limits: LimitsPolicy{NewTenantsPerSecond: 1_000_000}})
	s.quick = true
	const perEntry = promoteBudget / moveCost
	const n = 2*perEntry + 5
	s.blast(n, s.w.Add(time.Second), func(i int) (string, string) { return fmt.Sprint("t", i), "" })
	s.plan(EntrySpec{Tenant: "later", Key: "k", Category: "bulk", DueAt: s.w.Add(time.Second + 1)})
	for _, ready := range []int{perEntry, 2 * perEntry, n + 1, n + 1} {
		s.wait(2 * time.Second)
		want(t, "ready", s.dueQueues.Len(), ready)
		later := s.pools.byName("p").tenants.get("later")
		want(t, "the last one is ready", !later.demands[0].ring.empty(), ready > n)
	}
	check(t, s.State)
}

// Routes of a tenant take turns, and each goes by due time, then arrival.
func TestRoutesTakeTurns(t *testing.T) {
	s := tell(t, PoolPolicy{})
	at := func(d time.Duration, key, route string) EntrySpec {
		spec := in(d, "a", key)
		spec.Route = route
		return spec
	}
	s.plan(at(0, "r1", "r"), at(0, "r2", "r"), at(0, "r3", "r"), at(time.Second, "s2", "s"), at(0, "s1", "s"))
	want(t, "first turns", fmt.Sprint(keys(s.poll(3))), "[r1 s1 r2]")
	s.wait(time.Second)
	want(t, "next turns", fmt.Sprint(keys(s.poll(3))), "[r3 s2]")
}

// An entry that is retried keeps its place in line from when it first came due.
func TestRetriesKeepTheirPlace(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{Base: time.Second}})
	s.plan(in(0, "a", "first"))
	s.plan(in(0, "a", "second"), in(0, "a", "third"))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	want(t, "meanwhile", fmt.Sprint(keys(s.poll(1))), "[second]")
	s.wait(time.Second)
	want(t, "then", fmt.Sprint(keys(s.poll(9))), "[first third]")
}

// When the wall steps back, what came due is not claimed until it is due again;
// what stays due is, and nothing is stranded.
func TestTheWallStepsBack(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(10*time.Second, "a", "1"), in(11*time.Second, "a", "2"), in(0, "b", "1"))
	s.wait(11 * time.Second)
	step := func(d time.Duration) { s.entry(Entry{Index: s.index + 1, T: s.t, W: s.w.Add(d)}) }
	step(-5 * time.Second)
	want(t, "claims after a step back", fmt.Sprint(keys(s.poll(9))), "[1]")
	step(4 * time.Second)
	want(t, "claims at 10 s", fmt.Sprint(keys(s.poll(9))), "[1]")
	step(time.Second)
	want(t, "claims at 11 s", fmt.Sprint(keys(s.poll(9))), "[2]")
}

// The same with retries: the delay is the wall's too.
func TestTheWallStepsBackOverARetry(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{Base: 10 * time.Second}})
	s.plan(in(0, "a", "k"))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	s.entry(Entry{Index: s.index + 1, T: s.t.Add(time.Second), W: s.w.Add(-time.Hour)})
	want(t, "claims an hour earlier", len(s.poll(1)), 0)
	s.wait(time.Hour)
	want(t, "claims back at the beginning", len(s.poll(1)), 0)
	s.wait(10 * time.Second)
	want(t, "claims after the delay", len(s.poll(1)), 1)
}
