package admission

import (
	"cmp"
	"slices"
	"time"
)

// lives is the law of entries: each is queued, claimed or dead as what happened
// to it says, and goes only by being done, removed or too old [I5]. A recurring
// one goes on instead, and leaves a letter of each occurrence that died. The law
// follows every entry from outside.
type lives struct {
	entries map[lifeKey]*life
	claims  map[Token]*life
	skipped map[*pool]int64
	dead
	// at are the claims' ends as told to their holders, on the lease clock.
	leases leases
}

// lifeKey names an entry, or with a letter one of its occurrences that died.
type lifeKey struct {
	pool, tenant, key string
	letter            uint64
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
	worker          string
	lifeKey
	lane   string
	seq    uint64 // as the state has it
	rhythm rhythm
	fate
}

func (l *lives) see(h *history, e Entry, results []Result) {
	if l.entries == nil {
		l.entries, l.claims = map[lifeKey]*life{}, map[Token]*life{}
		l.skipped = map[*pool]int64{}
		l.dead.begin()
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
	l.sweeps(h)
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
			l.end(h, x, op.Outcome, !op.Miss, h.w)
		}
	}
}

// end follows an attempt's end.
func (l *lives) end(h *history, x *life, outcome Outcome, hit bool, at Wall) {
	switch {
	case outcome == OutcomeDone && x.rhythm.recurs():
		x.recur(hit, at)
	case outcome == OutcomeDone:
		delete(l.entries, x.lifeKey)
	case outcome == OutcomeThrottled, outcome == OutcomeNotStarted && x.unstarted < 3:
		if x.attempts--; outcome == OutcomeNotStarted {
			x.unstarted++
		}
		x.state = entryQueued
	default:
		if outcome == OutcomeNotStarted {
			outcome = OutcomeFailed
		}
		x.fail(outcome, at)
		l.retry(h, x, outcome, at)
	}
}

// retry follows what comes of a failed attempt.
func (l *lives) retry(h *history, x *life, outcome Outcome, at Wall) {
	switch {
	case outcome != OutcomeDead && x.attempts < x.most:
		wait := x.max
		if n := x.attempts - 1; n < 30 && x.base<<n < x.max {
			wait = x.base << n
		}
		x.state, x.soonest, x.latest = entryQueued, at.Add(wait/2), at.Add(wait)
	case x.rhythm.recurs():
		letter := *x
		letter.letter, letter.rhythm = x.seq, rhythm{}
		l.entries[letter.lifeKey] = &letter
		l.bury(h, &letter)
		x.recur(false, at)
	default:
		l.bury(h, x)
	}
}

// recur follows an occurrence's end: the next one is another.
func (x *life) recur(hit bool, at Wall) {
	x.first = x.rhythm.next(x.first, hit, at)
	x.state, x.attempts, x.unstarted = entryQueued, 0, 0
	x.soonest, x.latest = x.first, x.first
	x.fate = fate{}
}

// expiries follows claims whose holder vanished.
func (l *lives) expiries(h *history, before map[Token]Instant) {
	now := h.t.Add(-l.leases.offset)
	var lost []Token
	for token := range l.claims {
		if l.leases.held[token].ended == LeaseLost {
			lost = append(lost, token)
		}
	}
	pool := func(token Token) int { // they come in turn
		return slices.IndexFunc(h.pools.list, func(p *pool) bool { return p.name == l.claims[token].pool })
	}
	slices.SortFunc(lost, func(a, b Token) int {
		return cmp.Or(cmp.Compare(pool(a), pool(b)), cmp.Compare(before[a], before[b]), cmp.Compare(a.Index, b.Index), cmp.Compare(a.Position, b.Position))
	})
	for _, token := range lost {
		x := l.claims[token]
		delete(l.claims, token)
		l.end(h, x, OutcomeExpired, false, h.w.Add(-now.Sub(before[token])))
	}
}

// schedules follows what producers said.
func (l *lives) schedules(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *Schedule:
			for k, row := range results[i].(*ScheduleResult).Entries {
				spec := op.Entries[k]
				key := lifeKey{pool: op.Pool, tenant: spec.Tenant, key: spec.Key}
				known := l.entries[key] != nil
				want(h, "schedule knows the entry", row.Status == ScheduleUnchanged || row.Status == ScheduleReplaced,
					known && row.Status != ScheduleError)
				if row.Status == Scheduled || row.Status == ScheduleReplaced {
					l.forget(key)
					l.entries[key] = h.begun(key, spec)
				}
			}
		case Unschedule:
			l.unschedule(h, op, results[i].(*UnscheduleResult))
		case *Redrive:
			l.redrive(h, l, op, results[i].(*DeadResult))
		case *PurgeDead:
			l.purge(h, l, op, results[i].(*DeadResult))
		}
	}
}

// unschedule takes an entry along with what was redriven of it.
func (l *lives) unschedule(h *history, op Unschedule, r *UnscheduleResult) {
	found, claimed := false, false
	for key, x := range l.entries {
		same := key.pool == op.Pool && key.tenant == op.Tenant && key.key == op.Key
		if same && (key.letter == 0 || x.state != entryDead) {
			found, claimed = true, claimed || x.state == entryClaimed
			l.forget(key)
		}
	}
	want(h, "unschedule knows the entry", r.Err == nil, found)
	want(h, "unschedule knows the claim", r.WasClaimed, claimed)
}

// forget drops an entry; a claim on it is cancelled.
func (l *lives) forget(key lifeKey) {
	if x := l.entries[key]; x != nil {
		delete(l.claims, x.claim)
		delete(l.entries, key)
		l.exhume(x)
	}
}

func (h *history) begun(key lifeKey, spec EntrySpec) *life {
	pool := h.poolPolicy(key.pool)
	retry := pool.Retry
	x := &life{
		lifeKey: key, rhythm: pool.rhythm(spec),
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
			letter := h.holder(c.Permit.Token).letter()
			x := l.entries[lifeKey{op.(*NextDue).Pool, c.Permit.Tenant, c.Key, letter}]
			if x == nil || x.state != entryQueued {
				h.Fatalf("claimed what is not queued: %+v", c)
			}
			x.state, x.claim, x.worker = entryClaimed, c.Permit.Token, op.(*NextDue).WorkerID
			x.attempts++
			want(h, "attempt", c.Attempt, x.attempts)
			want(h, "first due time", c.DueAt, x.cameDue())
			catchUp, lost := x.rhythm.claimed(c.DueAt, h.w)
			want(h, "catch-up", c.CatchUp, catchUp)
			l.skipped[h.pools.byName(x.pool)] += lost
			want(h, "claimed when due", x.soonest <= h.highest, true) // it may have come due before the wall stepped back
			l.claims[x.claim] = x
		}
	}
}

// compare checks that the state has the same entries in the same places.
func (l *lives) compare(h *history) {
	for _, p := range h.pools.list {
		want(h, "skipped by "+p.name, p.skipped, l.skipped[p])
		want(h, "swept by "+p.name, p.swept, l.swept[p.name])
	}
	h.entries.Scan(func(i entryItem) bool {
		e := i.row
		t := e.demand().tenant
		where := "entry " + t.pool.name + "/" + t.id + "/" + e.key
		x := l.entries[lifeKey{t.pool.name, t.id, e.key, e.letter}]
		if x == nil {
			h.Fatalf("%s came from nowhere", where)
		}
		x.seq, x.lane = e.seq, e.demand().lane.name
		want(h, where+" state", e.state, x.state)
		want(h, where+" attempts", e.attempts, x.attempts)
		want(h, where+" first due", e.first, x.first)
		want(h, where+" came due", e.cameDue(), x.cameDue())
		if !slices.Equal(e.history(), x.history) {
			h.Errorf("%s: history %v, want %v", where, e.history(), x.history)
		}
		if e.state == entryQueued && (e.due < x.soonest || e.due > x.latest) {
			h.Errorf("%s is due at %d, want between %d and %d", where, e.due, x.soonest, x.latest)
		}
		if e.state == entryClaimed {
			want(h, where+" claim", e.claim, x.claim.key())
		}
		return true
	})
	want(h, "entries", h.entries.Len(), len(l.entries))
}
