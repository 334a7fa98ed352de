package admission

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCadenceDelays(t *testing.T) {
	c := &CadencePolicy{Base: 30 * time.Second, Factor: 2, Max: 5 * time.Minute}
	for misses, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		if got := c.delay(int32(misses)); got != want {
			t.Errorf("after %d misses: %v, want %v", misses, got, want)
		}
	}
	steady := &CadencePolicy{Base: time.Minute, Factor: 1, Max: time.Hour}
	if got := steady.delay(1 << 30); got != time.Minute {
		t.Errorf("a factor of 1 backs off to %v", got)
	}
	steep := &CadencePolicy{Base: MaxPeriod, Factor: 1000, Max: MaxPeriod}
	if got := steep.delay(1 << 30); got != MaxPeriod {
		t.Errorf("the steepest cadence backs off to %v", got)
	}
}

// Whenever a worker comes, how long it takes and whatever it says, each boundary
// of a grid is delivered in order, once and to the end, or is counted as skipped;
// and no more than 64 are caught up at a time.
func TestGridDeliversEachBoundaryOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const every = Wall(time.Second)
		r := recurrence{every: time.Duration(every)}
		now, boundary, skipped := Wall(0), Wall(0), int64(0)
		for range rapid.IntRange(1, 50).Draw(t, "claims") {
			now = max(now, boundary) + Wall(rapid.Int64Range(0, int64(200*every)).Draw(t, "late"))
			fresh := r.behind == 0
			next, lost := r.measure(boundary, now)
			if !fresh && (lost != 0 || next != r) {
				t.Fatalf("measured while catching up: %+v became %+v", r, next)
			}
			if next.behind < 0 || next.behind > catchUp || fresh && next.behind == 1 {
				t.Fatalf("%d boundaries to catch up", next.behind)
			}
			if resume := boundary + Wall(int64(next.behind)+lost)*every; fresh && next.behind > 0 && next.resume != resume {
				t.Fatalf("goes on at %d, want %d", next.resume, resume)
			}
			skipped += lost
			last := next.behind == 1
			var due Wall
			r, due = next.following(boundary, rapid.Bool().Draw(t, "hit"), now)
			if want := boundary + every; !last && due != want || last && due != next.resume {
				t.Fatalf("after %d comes %d", boundary, due)
			}
			boundary = due
			if boundary%every != 0 {
				t.Fatalf("%d is off the grid", boundary)
			}
		}
	})
}

func TestARetryCountsAsTheSameBoundary(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 3, Base: time.Minute, Max: time.Minute}})
	s.do(&Schedule{Pool: "p", Entries: []EntrySpec{{Tenant: "a", Key: "k", Relative: true, Every: time.Second}}})
	claim := func() Claim {
		t.Helper()
		r := s.do(&NextDue{Pool: "p", MaxItems: 1})[0].(*NextDueResult)
		if len(r.Claims) != 1 {
			t.Fatalf("%d claims at %v", len(r.Claims), s.w.Sub(birth))
		}
		return r.Claims[0]
	}
	report := func(c Claim, o Outcome) {
		t.Helper()
		s.do(&Release{Token: c.Permit.Token, Outcome: o, ActualCost: Absent, RetryAfter: Absent})
	}
	report(claim(), OutcomeFailed)
	s.wait(time.Minute)
	again := claim()
	if again.DueAt != birth || again.Attempt != 2 {
		t.Errorf("the retry is of %v, attempt %d", again.DueAt.Sub(birth), again.Attempt)
	}
	report(again, OutcomeDone)
	next := claim()
	if next.DueAt != birth.Add(time.Second) || next.Attempt != 1 || !next.CatchUp {
		t.Errorf("then comes %v, attempt %d, catch-up %v", next.DueAt.Sub(birth), next.Attempt, next.CatchUp)
	}
}

// A retry is a claim like any other: if nothing is being caught up it finds how
// far the grid has fallen behind since.
func TestARetryMeasuresTheGridAgain(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 9, Base: time.Hour, Max: time.Hour}})
	s.plan(EntrySpec{Tenant: "a", Key: "k", Relative: true, Every: time.Second})
	first := s.poll(1)[0]
	want(t, "the first is caught up", first.CatchUp, false)
	s.release(first.Permit.Token, with(OutcomeFailed))
	s.wait(time.Hour)
	skipped := func() int64 { return s.pools.byName("p").skipped }
	for boundary := range Wall(catchUp) {
		claim := s.poll(1)[0]
		want(t, "boundary", claim.DueAt, birth.Add(time.Duration(boundary)*time.Second))
		want(t, "more to catch up", claim.CatchUp, boundary < catchUp-1)
		want(t, "skipped", skipped(), 3601-catchUp)
		if boundary == catchUp-1 { // the last is in progress until it is done
			s.release(claim.Permit.Token, with(OutcomeFailed))
			s.wait(time.Hour)
			claim = s.poll(1)[0]
			want(t, "skipped by a retry of the last", skipped(), 3601-catchUp)
		}
		s.release(claim.Permit.Token)
	}
	want(t, "then goes on at", s.poll(1)[0].DueAt, birth.Add(3601*time.Second))
}

func TestDeadLettersOfOneEntryAreListedEach(t *testing.T) {
	s := tell(t, PoolPolicy{Retry: RetryPolicy{MaxAttempts: 1}})
	s.do(&Schedule{Pool: "p", Entries: []EntrySpec{{Tenant: "a", Key: "k", Relative: true, Every: time.Second}}})
	const dead = keptLetters + 3
	for range dead {
		r := s.do(&NextDue{Pool: "p", MaxItems: 1})[0].(*NextDueResult)
		s.do(&Release{Token: r.Claims[0].Permit.Token, Outcome: OutcomeFailed, ActualCost: Absent, RetryAfter: Absent})
		s.wait(time.Second)
	}
	if h := s.Health(s.t, s.w, "p")[0]; h.Dead != keptLetters {
		t.Errorf("%d dead letters are kept, want %d", h.Dead, keptLetters)
	}
	var seen []uint64
	var last ListedEntry
	for range dead {
		rows, err := s.Snapshot().ListDead("p", DeadFilter{}, last.Place, 1)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		last = rows[0]
		seen = append(seen, last.Place.Letter)
	}
	if len(seen) != keptLetters || !slices.IsSorted(seen) || last.DueAt != birth.Add((dead-1)*time.Second) {
		t.Errorf("letters %v, the last of %v; want the latest %d in order", seen, last.DueAt.Sub(birth), keptLetters)
	}
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k"})
	if h := s.Health(s.t, s.w, "p")[0]; h.Dead != keptLetters || h.Entries != 0 {
		t.Errorf("%d dead and %d entries after it was unscheduled, want the letters alone", h.Dead, h.Entries)
	}
}
