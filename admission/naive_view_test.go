package admission_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// heldRows are all demands of a pool that are held back at a moment, by tenant
// and lane, with what a NextDue left behind if call is one.
func (n *naive) heldRows(
	p *naivePool, at admission.Instant, w admission.Wall, call *naiveCall,
) []admission.HeldTenant {
	var rows []admission.HeldTenant
	for _, t := range p.tenants {
		for _, d := range t.demands {
			ripe, all := p.ripeOf(d, w), p.allRipe(d, w)
			limits := n.limits(p, t.id, d.lane, naiveWant{cost: 1}, at)
			if len(ripe) == 0 || p.lingers(d, w) {
				if len(ripe) == len(all) {
					continue
				}
				limits = []naiveLimit{pausedLimit(admission.ScopeTenant)} // their groups are paused
			}
			reason, wait := first(limits), millis(retryAfter(limits))
			if reason == admission.Paused {
				ripe = all
			}
			if reason == admission.ReasonNone && call != nil && call.asks(d.lane) {
				reason, wait = call.leftBehind(d), admission.Absent
			}
			if call != nil && call.asks(d.lane) && !call.admits(d.lane) {
				for _, own := range []admission.Reason{call.refused, admission.BatchOnly} {
					if own != admission.ReasonNone && (reason == admission.ReasonNone || own < reason) {
						reason, wait = own, admission.Absent
					}
				}
			}
			if reason == admission.ReasonNone {
				continue
			}
			rows = append(rows, admission.HeldTenant{
				Tenant: t.id, Lane: d.lane, Reason: reason, Due: int64(len(ripe)),
				OldestAge: age(ripe, w), RetryAfter: wait,
			})
		}
	}
	slices.SortFunc(rows, byTenant)
	return rows
}

func byTenant(a, b admission.HeldTenant) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Lane, b.Lane))
}

// leftBehind is why a call did not take an entry that nothing else held.
func (c *naiveCall) leftBehind(d *naiveDemand) admission.Reason {
	switch {
	case c.refused != admission.ReasonNone:
		return c.refused
	case c.closed:
		return admission.ReasonNone
	case c.capped(d):
		return admission.CycleCap
	case c.full():
		return admission.BatchFull
	}
	return admission.ReasonNone
}

// age is how long ago the oldest of some entries first came due.
func age(entries []*naiveEntry, w admission.Wall) time.Duration {
	var oldest time.Duration
	for _, e := range entries {
		oldest = max(oldest, w.Sub(e.first))
	}
	return oldest
}

func totals(rows []admission.HeldTenant) []admission.HeldTotal {
	var counts []admission.HeldTotal
	for reason := range admission.BatchFull + 1 {
		count := int64(0)
		for _, row := range rows {
			if row.Reason == reason {
				count++
			}
		}
		if count > 0 {
			counts = append(counts, admission.HeldTotal{Reason: reason, Tenants: count})
		}
	}
	return counts
}

// shedding is the state of a pool as it stands beside an answer: all held rows,
// or those of one tenant.
func (n *naive) shedding(
	at admission.Instant, w admission.Wall, pool, tenant string, call *naiveCall,
) admission.Shedding {
	s := admission.Shedding{At: at, Index: n.index, Revision: n.revision}
	p := n.pool(pool)
	if p == nil {
		return s
	}
	for _, l := range p.lanes {
		s.Lanes = append(s.Lanes, n.laneState(p, l, at, w))
	}
	rows := n.heldRows(p, at, w, call)
	s.Totals = totals(rows)
	s.Held = deleteIf(rows, func(row admission.HeldTenant) bool { return tenant != "" && row.Tenant != tenant })
	return s
}

// laneState counts what could be served but for the pool's own limits.
func (n *naive) laneState(p *naivePool, l *naiveLane, at admission.Instant, w admission.Wall) admission.LaneState {
	state := admission.LaneState{Lane: l.name, Yielding: l.yielding}
	state.Depth, state.OldestAge = n.depth(p, l.name, nil, at, w)
	return state
}

// health shows a pool.
func (n *naive) health(at admission.Instant, w admission.Wall, p *naivePool) admission.PoolHealth {
	h := admission.PoolHealth{
		Pool: p.policy.Name, MaxActive: p.policy.MaxActive,
		Active: n.active(p, func(string, int) bool { return true }),
		Held:   totals(n.heldRows(p, at, w, nil)), Skipped: p.skipped, Swept: p.swept, Draining: p.draining,
	}
	for rank, l := range p.lanes {
		h.Lanes = append(h.Lanes, admission.LaneHealth{
			LaneState: n.laneState(p, l, at, w), Paused: l.paused, Draining: l.draining,
			Waiting: n.use(p, l.name).Waiting,
			Active:  n.active(p, func(_ string, r int) bool { return r == rank }),
		})
	}
	for i, b := range p.buckets {
		if policy := p.policy.Buckets[i]; policy.Scope == admission.ScopePool {
			h.Buckets = append(h.Buckets, b.health(policy.Name, p.bucketTerms(i, ""), at))
		}
	}
	for _, t := range p.tenants {
		if t.known {
			h.Tenants++
		}
	}
	for _, e := range p.entries {
		if e.dead {
			h.Dead++
		} else {
			h.Entries++
		}
	}
	return h
}

func (b *naiveBucket) health(name string, terms naiveTerms, at admission.Instant) admission.BucketHealth {
	h := admission.BucketHealth{
		Bucket: name, Level: terms.capacity - b.used(terms, at), Capacity: terms.capacity,
		Paused: terms.blocked || b.paused(at), PausedFor: admission.Absent,
	}
	if left := b.pausedUntil.Sub(at); left > 0 && !b.byHand {
		h.PausedFor = millis(left)
	}
	return h
}

// tenantHealth shows a tenant of a pool.
func (n *naive) tenantHealth(at admission.Instant, p *naivePool, tenant string) admission.TenantHealth {
	h := admission.TenantHealth{
		Active: n.active(p, func(id string, _ int) bool { return id == tenant }),
	}
	if most := p.terms(tenant).MaxActive; most > 0 {
		h.Debt = max(0, h.Active-most)
	}
	for i, policy := range p.policy.Buckets {
		if policy.Scope == admission.ScopeTenant {
			terms := p.bucketTerms(i, tenant)
			level := terms.capacity - p.tenant(tenant).buckets[i].used(terms, at)
			h.Levels = append(h.Levels, admission.BucketLevel{Bucket: policy.Name, Level: level})
		}
	}
	return h
}

// deadline is when the first permit expires.
func (n *naive) deadline() (at admission.Instant, ok bool) {
	for _, p := range n.permits {
		if expires := p.expires.Add(n.offset); !ok || expires < at {
			at, ok = expires, true
		}
	}
	return at, ok
}

// nextDueIn is the time until the pool's next entry comes due, or Absent.
func (n *naive) nextDueIn(pool string, w admission.Wall) time.Duration {
	wait := time.Duration(admission.Absent)
	for _, e := range n.pool(pool).entries {
		if left := e.due.Sub(w); e.queued() && left > 0 && (wait == admission.Absent || left < wait) {
			wait = left
		}
	}
	return millis(wait)
}
