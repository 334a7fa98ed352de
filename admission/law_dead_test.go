package admission

import (
	"slices"
	"strings"
	"time"
)

// fate is what failed attempts left of a life.
type fate struct {
	history []Attempt
	// place is that among the dead, 0 while it lives; died is when.
	place int
	died  Instant
	// origin is when it came due before it was redriven.
	redriven bool
	origin   Wall
}

func (x *life) fail(outcome Outcome, at Wall) {
	x.history = append(slices.Clone(x.history), Attempt{x.attempts, outcome, at, x.worker})
	if len(x.history) > 8 {
		x.history = x.history[1:]
	}
}

func (x *life) cameDue() Wall {
	if x.redriven {
		return x.origin
	}
	return x.first
}

// dead is the part of lives that is about the dead: they lie in the order of their
// deaths, and leave by age, a redrive, a purge, or as any other entry does.
type dead struct {
	graves map[string][]*life
	swept  map[string]int64
	deaths int
	// retention is that of each pool, of one that drains as it last was.
	retention map[string]time.Duration
	// cursors are what the cursors that were given out stand for.
	cursors map[DeadCursor]walk
}

// walk is where a walk along the graves goes on: after a place, up to another.
type walk struct {
	after, until int
	due          Wall
}

func (d *dead) begin() {
	d.graves, d.swept, d.cursors = map[string][]*life{}, map[string]int64{}, map[DeadCursor]walk{}
	d.retention = map[string]time.Duration{}
}

func (d *dead) bury(h *history, x *life) {
	d.deaths++
	x.state, x.place, x.died = entryDead, d.deaths, h.t
	d.graves[x.pool] = append(d.graves[x.pool], x)
}

func (d *dead) exhume(x *life) {
	d.graves[x.pool] = slices.DeleteFunc(d.graves[x.pool], func(y *life) bool { return x == y })
}

// sweeps follows what is too old, by the clock that no wall moves.
func (l *lives) sweeps(h *history) {
	for _, p := range h.policy.Pools {
		l.retention[p.Name] = firstOf(p.DeadRetention, 7*24*time.Hour)
	}
	for pool, graves := range l.graves {
		for _, x := range slices.Clone(graves) {
			if h.t.Sub(x.died) >= l.retention[pool] {
				l.forget(x.lifeKey)
				l.swept[pool]++
			}
		}
	}
}

// walk returns those that a filter means, no more than a limit, and checks the
// result's count and that it goes on where any were left.
func (d *dead) walk(h *history, pool string, f DeadFilter, limit int, from DeadCursor, r *DeadResult) (found []*life, at walk) {
	p := h.pools.byName(pool)
	if unknown := p == nil || f.Lane != "" && p.lane(f.Lane) == nil; unknown || r.Err != nil {
		want(h, "a pool or lane that is not there is an error", r.Err != nil, unknown)
		return nil, walk{}
	}
	at, more := walk{until: d.deaths}, false
	if from != (DeadCursor{}) {
		at = d.cursors[from]
	}
	for _, x := range d.graves[pool] {
		if x.place <= at.after || x.place > at.until {
			continue
		}
		if more = len(found) == limit; more {
			break
		}
		at.after = x.place
		last := x.history[len(x.history)-1].Outcome
		if (f.Tenant == "" || f.Tenant == x.tenant) && (f.Lane == "" || f.Lane == x.lane) &&
			strings.HasPrefix(x.key, f.KeyPrefix) && (f.Outcome == 0 || f.Outcome == last) {
			found = append(found, x)
		}
	}
	want(h, "dead entries found", r.Count, len(found))
	want(h, "more dead entries", r.Next != DeadCursor{}, more)
	return found, at
}

func (d *dead) redrive(h *history, l *lives, op *Redrive, r *DeadResult) {
	start := max(h.w, d.cursors[op.From].due)
	found, at := d.walk(h, op.Pool, op.Filter, op.Limit, op.From, r)
	due := func(n int) Wall {
		if op.PerSecond == 0 {
			return start
		}
		return start + Wall(int64(n)*1e9/op.PerSecond)
	}
	for n, x := range found {
		d.exhume(x)
		x.origin, x.redriven = x.cameDue(), true
		x.state, x.attempts, x.unstarted = entryQueued, 0, 0
		x.first, x.soonest, x.latest = due(n), due(n), due(n)
	}
	if op.PerSecond > 0 {
		at.due = due(len(found))
	}
	h.cursor(d, r, at)
}

func (d *dead) purge(h *history, l *lives, op *PurgeDead, r *DeadResult) {
	found, at := d.walk(h, op.Pool, op.Filter, op.Limit, op.From, r)
	for _, x := range found {
		l.forget(x.lifeKey)
	}
	h.cursor(d, r, at)
}

// cursor keeps a cursor for a call to come.
func (h *history) cursor(d *dead, r *DeadResult, at walk) {
	if r.Next != (DeadCursor{}) {
		d.cursors[r.Next] = at
	}
}
