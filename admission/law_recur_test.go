package admission

import "time"

// rhythm is how an entry comes back, worked out from what was told of it.
type rhythm struct {
	every   time.Duration
	cadence CadencePolicy
	// left are the boundaries to deliver before the grid is looked at again, the
	// present one included; lost are skipped after them.
	left, lost int64
	misses     int
}

func (r *rhythm) recurs() bool { return r.every > 0 || r.cadence.Name != "" }

// rhythm is what a spec means under the policy.
func (p *PoolPolicy) rhythm(spec EntrySpec) rhythm {
	r := rhythm{every: spec.Every}
	for _, c := range p.Cadences {
		if c.Name == spec.Cadence {
			r.cadence = c
			r.cadence.Factor, r.cadence.Max = firstOf(c.Factor, 2), firstOf(c.Max, time.Hour)
		}
	}
	return r
}

// claimed follows a claim of a boundary: is it caught up, and how many are lost
// there and then?
func (r *rhythm) claimed(boundary, now Wall) (catchUp bool, lost int64) {
	if r.every > 0 && r.left == 0 {
		for at := boundary; at <= now; at = at.Add(r.every) {
			if r.left < 64 {
				r.left++
			} else {
				r.lost++
			}
		}
		if lost = r.lost; r.left == 1 {
			r.left = 0 // nothing to catch up: a retry looks again
		}
	}
	return r.left > 1, lost
}

// next follows the end of an occurrence.
func (r *rhythm) next(first Wall, hit bool, at Wall) Wall {
	if r.every > 0 {
		first = first.Add(r.every)
		if r.left = max(r.left-1, 0); r.left == 0 {
			first = first.Add(time.Duration(r.lost) * r.every)
			r.lost = 0
		}
		return first
	}
	if r.misses++; hit {
		r.misses = 0
	}
	delay := r.cadence.Base
	for range r.misses {
		delay = min(delay*time.Duration(r.cadence.Factor), r.cadence.Max)
	}
	return at.Add(delay)
}

// grids is the law of fixed grids as workers see it: what they are given of an
// entry are boundaries of its grid in order, none again that was done or died,
// and one that never comes is counted as skipped.
type grids struct {
	grids   map[[3]string]*grid
	claims  map[Token]*grid
	missing map[*pool]int64
}

type grid struct {
	every  time.Duration
	anchor Wall
	// last is the boundary that came last, if any came; over says that it can't
	// come again.
	last       Wall
	came, over bool
}

func (l *grids) see(h *history, e Entry, results []Result) {
	if l.grids == nil {
		l.grids, l.claims, l.missing = map[[3]string]*grid{}, map[Token]*grid{}, map[*pool]int64{}
	}
	for i, op := range e.Ops {
		if op, ok := op.(*Release); ok && results[i].(*ReleaseResult).Result == LeaseReleased && results[i].(*ReleaseResult).Err == nil {
			if g := l.claims[op.Token]; g != nil {
				g.over = op.Outcome == OutcomeDone || op.Outcome == OutcomeDead
			}
		}
	}
	for i, op := range e.Ops {
		op, ok := op.(*Schedule)
		if !ok {
			continue
		}
		for k, row := range results[i].(*ScheduleResult).Entries {
			if spec := op.Entries[k]; row.Status == Scheduled || row.Status == ScheduleReplaced {
				l.grids[[3]string{op.Pool, spec.Tenant, spec.Key}] = h.grid(spec)
			}
		}
	}
	for i, op := range e.Ops {
		if r, ok := results[i].(*NextDueResult); ok && !r.Replayed {
			for _, c := range r.Claims {
				if h.holder(c.Permit.Token).letter() == 0 { // what is redriven comes again
					l.claim(h, op.(*NextDue).Pool, c)
				}
			}
		}
	}
	for _, p := range h.pools.list {
		if l.missing[p] > p.skipped {
			h.Errorf("pool %s: %d boundaries never came, %d are counted", p.name, l.missing[p], p.skipped)
		}
	}
}

func (h *history) grid(spec EntrySpec) *grid {
	g := &grid{every: spec.Every, anchor: spec.DueAt}
	if spec.Relative {
		g.anchor = h.w.Add(spec.DueIn)
	}
	return g
}

func (l *grids) claim(h *history, pool string, c Claim) {
	g := l.grids[[3]string{pool, c.Permit.Tenant, c.Key}]
	if g.every == 0 {
		return
	}
	where := "grid of " + c.Key
	want(h, where+": distance from its anchor", c.DueAt.Sub(g.anchor)%g.every, 0)
	switch next := g.last.Add(g.every); {
	case !g.came:
		want(h, where+": the first", c.DueAt, g.anchor)
	case c.DueAt == g.last:
		want(h, where+": comes again after its end", g.over, false)
	case c.DueAt < next:
		h.Errorf("%s: %d came after %d", where, c.DueAt, g.last)
	default:
		l.missing[h.pools.byName(pool)] += int64(c.DueAt.Sub(next) / g.every)
	}
	g.came, g.over, g.last = true, false, c.DueAt
	l.claims[c.Permit.Token] = g
}
