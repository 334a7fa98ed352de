package admission

import (
	"maps"
	"time"
)

// lives is the law of entries: each is queued, claimed or dead as what happened
// to it says, and goes only by being done or removed [I5]. A recurring one goes
// on instead, and leaves a letter of each occurrence that died. The law follows
// every entry from outside.
type lives struct {
	entries map[[3]string]*life
	claims  map[Token]*life
	letters map[letter]int
	skipped map[*pool]int64
	// at are the claims' ends as told to their holders, on the lease clock.
	leases leases
}

type life struct {
	state     entryState
	attempts  int32
	most      int32
	unstarted int
	first     Wall
	// soonest and latest bound when it is due next.
	soonest, latest Wall
	base, max       time.Duration
	claim           Token
	names           [3]string
	rhythm          rhythm
}

// letter is a dead occurrence of a recurring entry. A cadence may come to one
// time twice, where the wall steps back.
type letter struct {
	names [3]string
	first Wall
}

func (l *lives) see(h *history, e Entry, results []Result) {
	if l.entries == nil {
		l.entries, l.claims = map[[3]string]*life{}, map[Token]*life{}
		l.letters, l.skipped = map[letter]int{}, map[*pool]int64{}
	}
	before := map[Token]Instant{}
	for token := range l.claims {
		if p := l.leases.held[token]; p != nil {
			before[token] = p.until
		}
	}
	l.releases(h, e, results)
	l.leases.see(h, e, results)
	l.expiries(h, before)
	l.schedules(h, e, results)
	l.newClaims(h, e, results)
	l.compare(h)
}

// releases follows what workers said.
func (l *lives) releases(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		op, ok := op.(*Release)
		if !ok || results[i].(*ReleaseResult).Err != nil || results[i].(*ReleaseResult).Result != LeaseReleased {
			continue
		}
		if x := l.claims[op.Token]; x != nil {
			delete(l.claims, op.Token)
			l.end(x, op.Outcome, !op.Miss, h.w)
		}
	}
}

// end follows an attempt's end.
func (l *lives) end(x *life, outcome Outcome, hit bool, at Wall) {
	switch {
	case outcome == OutcomeDone && x.rhythm.recurs():
		x.recur(hit, at)
	case outcome == OutcomeDone:
		delete(l.entries, x.names)
	case outcome == OutcomeThrottled, outcome == OutcomeNotStarted && x.unstarted < 3:
		if x.attempts--; outcome == OutcomeNotStarted {
			x.unstarted++
		}
		x.state = entryQueued
	case outcome != OutcomeDead && x.attempts < x.most:
		wait := x.max
		if n := x.attempts - 1; n < 30 && x.base<<n < x.max {
			wait = x.base << n
		}
		x.state, x.soonest, x.latest = entryQueued, at.Add(wait/2), at.Add(wait)
	case x.rhythm.recurs():
		l.letters[letter{x.names, x.first}]++
		x.recur(false, at)
	default:
		x.state = entryDead
	}
}

// recur follows an occurrence's end: the next one is another.
func (x *life) recur(hit bool, at Wall) {
	x.first = x.rhythm.next(x.first, hit, at)
	x.state, x.attempts, x.unstarted = entryQueued, 0, 0
	x.soonest, x.latest = x.first, x.first
}

// expiries follows claims whose holder vanished.
func (l *lives) expiries(h *history, before map[Token]Instant) {
	now := h.t.Add(-l.leases.offset)
	for token, x := range l.claims {
		if p := l.leases.held[token]; p.ended == LeaseLost {
			delete(l.claims, token)
			l.end(x, OutcomeExpired, false, h.w.Add(-now.Sub(before[token])))
		}
	}
}

// schedules follows what producers said.
func (l *lives) schedules(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *Schedule:
			for k, row := range results[i].(*ScheduleResult).Entries {
				spec := op.Entries[k]
				key := [3]string{op.Pool, spec.Tenant, spec.Key}
				known := l.entries[key] != nil
				want(h, "schedule knows the entry", row.Status == ScheduleUnchanged || row.Status == ScheduleReplaced,
					known && row.Status != ScheduleError)
				if row.Status == Scheduled || row.Status == ScheduleReplaced {
					l.forget(key)
					l.entries[key] = h.begun(key, spec)
				}
			}
		case Unschedule:
			key := [3]string{op.Pool, op.Tenant, op.Key}
			r := results[i].(*UnscheduleResult)
			want(h, "unschedule knows the entry", r.Err == nil, l.entries[key] != nil)
			if x := l.entries[key]; x != nil {
				want(h, "unschedule knows the claim", r.WasClaimed, x.state == entryClaimed)
				l.forget(key)
			}
		}
	}
}

// forget drops an entry; a claim on it is cancelled.
func (l *lives) forget(key [3]string) {
	if x := l.entries[key]; x != nil {
		delete(l.claims, x.claim)
		delete(l.entries, key)
	}
}

func (h *history) begun(names [3]string, spec EntrySpec) *life {
	pool := h.poolPolicy(names[0])
	retry := pool.Retry
	x := &life{
		names: names, rhythm: pool.rhythm(spec),
		state: entryQueued, first: spec.DueAt, most: firstOf(spec.MaxAttempts, retry.MaxAttempts, 5),
		base: firstOf(retry.Base, time.Second), max: firstOf(retry.Max, time.Hour),
	}
	if spec.Relative {
		x.first = h.w.Add(spec.DueIn)
	}
	x.soonest, x.latest = x.first, x.first
	return x
}

// newClaims follows what polls were given.
func (l *lives) newClaims(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		r, ok := results[i].(*NextDueResult)
		if !ok || r.Replayed {
			continue
		}
		for _, c := range r.Claims {
			x := l.entries[[3]string{op.(*NextDue).Pool, c.Permit.Tenant, c.Key}]
			if x == nil || x.state != entryQueued {
				h.Fatalf("claimed what is not queued: %+v", c)
			}
			x.state, x.claim = entryClaimed, c.Permit.Token
			x.attempts++
			want(h, "attempt", c.Attempt, x.attempts)
			want(h, "first due time", c.DueAt, x.first)
			catchUp, lost := x.rhythm.claimed(c.DueAt, h.w)
			want(h, "catch-up", c.CatchUp, catchUp)
			l.skipped[h.pools.byName(x.names[0])] += lost
			want(h, "claimed when due", x.soonest <= h.highest, true) // it may have come due before the wall stepped back
			l.claims[x.claim] = x
		}
	}
}

// compare checks that the state has the same entries in the same places.
func (l *lives) compare(h *history) {
	for _, p := range h.pools.list {
		want(h, "skipped by "+p.name, p.skipped, l.skipped[p])
	}
	letters := map[letter]int{}
	live := 0
	h.entries.Scan(func(i entryItem) bool {
		e := i.row
		t := e.demand().tenant
		where := "entry " + t.pool.name + "/" + t.id + "/" + e.key
		if e.letter != 0 {
			letters[letter{[3]string{t.pool.name, t.id, e.key}, e.first}]++
			want(h, where+" letter's state", e.state, entryDead)
			return true
		}
		live++
		x := l.entries[[3]string{t.pool.name, t.id, e.key}]
		if x == nil {
			h.Fatalf("%s came from nowhere", where)
		}
		want(h, where+" state", e.state, x.state)
		want(h, where+" attempts", e.attempts, x.attempts)
		want(h, where+" first due", e.first, x.first)
		if e.state == entryQueued && (e.due < x.soonest || e.due > x.latest) {
			h.Errorf("%s is due at %d, want between %d and %d", where, e.due, x.soonest, x.latest)
		}
		if e.state == entryClaimed {
			want(h, where+" claim", e.claim, x.claim.key())
		}
		return true
	})
	want(h, "entries", live, len(l.entries))
	if !maps.Equal(letters, l.letters) {
		h.Errorf("letters %v, want %v", letters, l.letters)
	}
}
