package admission

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// dies lets a worker take an entry that is due and give it up for good.
func (s *story) dies(specs ...EntrySpec) {
	s.Helper()
	s.plan(specs...)
	for _, c := range s.poll(len(specs)) {
		s.release(c.Permit.Token, with(OutcomeDead))
	}
}

// pool is the story's pool.
func (s *story) pool() *pool { return s.pools.byName("p") }

func (s *story) redrive(op Redrive) *DeadResult {
	s.Helper()
	op.Pool, op.Limit = "p", firstOf(op.Limit, MaxRedrive)
	return s.do(&op)[0].(*DeadResult)
}

// Of the attempts that failed the latest eight are remembered, of the one entry
// and of no other.
func TestHistoryOfFailedAttempts(t *testing.T) {
	s := tell(t, PoolPolicy{PermitTTL: time.Second, Retry: RetryPolicy{MaxAttempts: 12, Base: time.Second, Max: time.Second}})
	s.plan(in(0, "a", "k"))
	if e := s.found("a", "k"); e.past != nil {
		t.Errorf("a fresh entry has a history: %+v", e.past)
	}
	var all []Attempt
	for n := range int32(12) {
		r := s.do(&NextDue{Pool: "p", MaxItems: 1, WorkerID: fmt.Sprint("w", n)})[0].(*NextDueResult)
		want(t, "claims", len(r.Claims), 1)
		a := Attempt{Number: n + 1, Outcome: OutcomeFailed, EndedAt: s.w, WorkerID: fmt.Sprint("w", n)}
		if n%2 == 0 {
			s.release(r.Claims[0].Permit.Token, with(OutcomeFailed))
		} else { // the sweep comes late, the attempt ended when its time was up
			a.Outcome, a.EndedAt = OutcomeExpired, s.w.Add(time.Second)
			s.wait(2 * time.Second)
		}
		all = append(all, a)
		s.wait(time.Second)
	}
	e, err := s.GetEntry("p", "a", "k")
	if err != nil || !e.Dead || e.Claimed || e.DiedAt == 0 {
		t.Fatalf("%+v, %v; want it dead", e, err)
	}
	if !slices.Equal(e.History, all[4:]) {
		t.Errorf("history %v, want the latest of %v", e.History, all)
	}
	for name, of := range map[string][3]string{"pool": {"q", "a", "k"}, "tenant": {"p", "b", "k"}, "key": {"p", "a", "l"}} {
		if _, err := s.GetEntry(of[0], of[1], of[2]); err == nil {
			t.Errorf("found an entry of another %s", name)
		}
	}
}

// Work that is given back, and an occurrence that ends well, leave nothing.
func TestWhatLeavesNoHistory(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{{Name: "b", Scope: ScopePool, Capacity: 9, Refill: 9, Period: time.Second}}})
	s.plan(EntrySpec{Tenant: "a", Key: "k", Relative: true, Every: time.Hour})
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeNotStarted))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeThrottled), func(r *Release) { r.RetryAfter = 0 })
	want(t, "attempts given back", len(s.found("a", "k").history()), 0)
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	want(t, "attempts that failed", len(s.found("a", "k").history()), 1)
	s.wait(time.Second)
	s.release(s.poll(1)[0].Permit.Token)
	want(t, "attempts of the next occurrence", len(s.found("a", "k").history()), 0)
}

// The dead are kept for so long on the cluster's clock, and no step of the wall
// clock makes them older. A shorter retention holds at once.
func TestTheDeadAreSweptByAge(t *testing.T) {
	policy := PoolPolicy{DeadRetention: time.Hour}
	s := tell(t, policy)
	s.dies(in(0, "a", "1"))
	s.wait(time.Minute)
	s.dies(in(0, "b", "2"))
	s.entry(Entry{Index: s.index + 1, T: s.t, W: s.w.Add(365 * 24 * time.Hour)})
	want(t, "dead after the wall stepped", s.pool().graves.Len(), 2)
	s.wait(59*time.Minute - 1)
	want(t, "dead before the hour is over", s.pool().graves.Len(), 2)
	s.wait(1)
	want(t, "dead when it is", s.pool().graves.Len(), 1)
	want(t, "swept", s.Health(s.t, s.w, "p")[0].Swept, 1)
	policy.DeadRetention = time.Minute
	s.put(policy)
	want(t, "entries under a shorter retention", s.entries.Len(), 0)
	want(t, "swept", s.Health(s.t, s.w, "p")[0].Swept, 2)
}

// However many are too old, an entry of the log sweeps a bounded number.
func TestSweepsAreBounded(t *testing.T) {
	s := tell(t, PoolPolicy{DeadRetention: time.Minute})
	s.quick = true
	const each, all = MaxItems, 2*sweepLimit + 500
	for from := 0; from < all; from += each {
		var specs []EntrySpec
		for i := range min(each, all-from) {
			specs = append(specs, in(0, "a", fmt.Sprint("k", from+i)))
		}
		s.dies(specs...)
	}
	s.wait(time.Minute)
	for _, left := range []int{all - sweepLimit, all - 2*sweepLimit, 0} {
		want(t, "dead", s.pool().graves.Len(), left)
		s.wait(0)
	}
}

// What is redriven has all its attempts again and keeps its retry, its history and
// the time that it came due, but stands in line as if it were scheduled now.
func TestRedrive(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.plan(in(0, "a", "k"))
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	s.wait(time.Hour)
	s.plan(in(0, "a", "younger"))
	s.put(PoolPolicy{Retry: RetryPolicy{MaxAttempts: 9}})
	r := s.redrive(Redrive{})
	want(t, "redriven", *r, DeadResult{Count: 1})
	want(t, "dead", s.pool().graves.Len(), 0)
	want(t, "as it was scheduled", s.status(in(0, "a", "k")).Status, ScheduleUnchanged)
	claims := s.poll(2)
	want(t, "order", fmt.Sprint(keys(claims)), "[younger k]")
	want(t, "attempt", claims[1].Attempt, 1)
	want(t, "came due at", claims[1].DueAt, birth)
	s.release(claims[1].Permit.Token, with(OutcomeFailed))
	e, _ := s.GetEntry("p", "a", "k")
	want(t, "dead again after its one attempt", e.Dead, true)
	want(t, "attempts in its history", len(e.History), 2)
	want(t, "first due at", e.FirstDueAt, birth)
}

// The filter's fields hold together.
func TestRedriveAndPurgeFilter(t *testing.T) {
	policy := PoolPolicy{Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"x": "high"}}
	high := in(0, "a", "run-1")
	high.Category = "x"
	for _, c := range []struct {
		name   string
		filter DeadFilter
		want   string
	}{
		{"all", DeadFilter{}, "[a/run-1 a/run-2 b/run-1 b/z]"},
		{"a tenant", DeadFilter{Tenant: "b"}, "[b/run-1 b/z]"},
		{"a lane", DeadFilter{Lane: "high"}, "[a/run-1]"},
		{"keys", DeadFilter{KeyPrefix: "run-"}, "[a/run-1 a/run-2 b/run-1]"},
		{"an outcome", DeadFilter{Outcome: OutcomeExpired}, "[b/z]"},
		{"all of these", DeadFilter{Tenant: "b", Lane: "low", KeyPrefix: "run-", Outcome: OutcomeDead}, "[b/run-1]"},
		{"a tenant that is not known", DeadFilter{Tenant: "c"}, "[]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := tell(t, policy)
			s.dies(high, in(0, "a", "run-2"), in(0, "b", "run-1"))
			z := in(0, "b", "z")
			z.MaxAttempts = 1
			s.plan(z)
			s.poll(1)
			s.wait(time.Hour)
			listed, err := s.Snapshot().ListDead("p", c.filter, DeadPlace{}, 9)
			names := []string{}
			for _, e := range listed {
				names = append(names, e.Tenant+"/"+e.Key)
			}
			want(t, "listed", fmt.Sprint(names), c.want)
			want(t, "error", err, nil)
			redriven := s.redrive(Redrive{Filter: c.filter})
			want(t, "redriven", redriven.Count, len(names))
			for _, claim := range s.poll(9) {
				names = slices.DeleteFunc(names, func(n string) bool { return n == claim.Permit.Tenant+"/"+claim.Key })
				s.release(claim.Permit.Token, with(OutcomeDead))
			}
			want(t, "listed but not redriven", len(names), 0)
			purged := s.do(&PurgeDead{Pool: "p", Filter: DeadFilter{Tenant: c.filter.Tenant}, Limit: 9})[0].(*DeadResult)
			want(t, "left", s.entries.Len(), 4-purged.Count)
		})
	}
	s := tell(t, policy)
	for _, op := range []Op{&Redrive{Pool: "q"}, &Redrive{Pool: "p", Filter: DeadFilter{Lane: "z"}}, &PurgeDead{Pool: "q"}} {
		if r := s.do(op)[0].(*DeadResult); r.Err == nil {
			t.Errorf("%T %+v: no error", op, op)
		}
	}
}

// With a rate the entries come due one after the other, also over several calls.
func TestRedriveAtARate(t *testing.T) {
	s := tell(t, PoolPolicy{})
	for i := range 5 {
		s.dies(in(0, "a", fmt.Sprint(i)))
	}
	first := s.redrive(Redrive{Limit: 2, PerSecond: 4})
	want(t, "redriven", first.Count, 2)
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeDead)) // dies again after the first call
	s.redrive(Redrive{Limit: 2, PerSecond: 4, From: first.Next})
	second := s.redrive(Redrive{Limit: 2, PerSecond: 4, From: first.Next})
	want(t, "what is left of those that were dead then", *second, DeadResult{Count: 1})
	for i, due := range []time.Duration{0, 250, 500, 750, 500} {
		if e := s.found("a", fmt.Sprint(i)); i > 0 {
			want(t, fmt.Sprint(i, " is due"), e.due, birth.Add(due*time.Millisecond))
		}
	}
	want(t, "dead", s.pool().graves.Len(), 1)
}

// A call looks at a bounded number of graves, and says where to go on.
func TestRedriveLooksAtABoundedNumber(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.quick = true
	for i := range visitLimit + 10 {
		s.dies(in(0, "a", fmt.Sprint("k", i)))
	}
	s.dies(in(0, "b", "k"))
	none := s.redrive(Redrive{Filter: DeadFilter{Tenant: "b"}})
	want(t, "redriven at first", none.Count, 0)
	want(t, "redriven then", *s.redrive(Redrive{Filter: DeadFilter{Tenant: "b"}, From: none.Next}), DeadResult{Count: 1})
	for _, limit := range []int{-1, 0, MaxRedrive + 1} {
		got := s.do(&PurgeDead{Pool: "p", Limit: limit})[0].(*DeadResult)
		want(t, fmt.Sprint("purged with limit ", limit), got.Count, min(max(limit, 1), MaxRedrive))
	}
}

// An occurrence of a recurring entry is redriven beside the entry: it runs once,
// for its own boundary, and neither touches the other.
func TestRedriveAnOccurrence(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.plan(EntrySpec{Tenant: "a", Key: "k", Relative: true, Every: time.Hour})
	s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
	s.wait(time.Hour)
	s.redrive(Redrive{})
	claims := s.poll(3)
	want(t, "claims", fmt.Sprint(keys(claims)), "[k k]")
	want(t, "the next one's boundary", claims[0].DueAt, birth.Add(time.Hour))
	want(t, "the redriven one's boundary", claims[1].DueAt, birth)
	want(t, "the redriven one's attempt", claims[1].Attempt, 1)
	s.release(claims[1].Permit.Token, with(OutcomeFailed))
	want(t, "dead", s.pool().graves.Len(), 1)
	s.redrive(Redrive{})
	s.release(s.poll(1)[0].Permit.Token)
	s.release(claims[0].Permit.Token)
	want(t, "entries when both are done", s.entries.Len(), 1)
	want(t, "the next boundary", s.found("a", "k").due, birth.Add(2*time.Hour))
}

// Unschedule takes what was redriven of an entry along, and leaves its dead.
func TestUnscheduleWithRedrivenOccurrences(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.plan(EntrySpec{Tenant: "a", Key: "k", Relative: true, Every: time.Second})
	for range 3 {
		s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
		s.wait(time.Second)
	}
	s.redrive(Redrive{Limit: 2})
	claimed := s.poll(2)[1] // beside the entry itself
	r := s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k"})[0].(*UnscheduleResult)
	want(t, "was claimed", r.WasClaimed, true)
	want(t, "the redriven claim", s.release(claimed.Permit.Token).Result, LeaseCancelled)
	want(t, "entries", s.entries.Len(), 1)
	want(t, "dead", s.pool().graves.Len(), 1)
	again := s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k"})[0].(*UnscheduleResult)
	want(t, "again, with the dead alone", again.Err.Reason, EntryNotFound)
}

// Redriven occurrences count among those that are kept of a key, and are not
// dropped for one that dies.
func TestRedrivenOccurrencesAreKept(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, Retry: RetryPolicy{MaxAttempts: 1}})
	s.quick = true
	s.plan(EntrySpec{Tenant: "a", Key: "k", Relative: true, Every: time.Second, MaxAttempts: 1})
	for range keptLetters {
		s.release(s.poll(1)[0].Permit.Token, with(OutcomeFailed))
		s.wait(time.Second)
	}
	s.redrive(Redrive{})
	s.wait(time.Second)
	next := s.poll(1)[0] // the entry itself: it came due before them
	s.release(next.Permit.Token, with(OutcomeFailed))
	want(t, "occurrences and the entry", s.entries.Len(), keptLetters+1)
	want(t, "dead", s.pool().graves.Len(), 0)
	want(t, "swept", s.pool().swept, 1)
}
