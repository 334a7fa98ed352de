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
	by := n.reserver(p, at)
	for _, t := range p.tenants {
		for _, d := range t.demands {
			ripe, lined := p.ripeOf(d), n.lined(d)
			row := admission.HeldTenant{Tenant: t.id, Lane: d.lane, Waiting: int64(len(lined)), RetryAfter: admission.Absent}
			reason := n.holds(p, d, by, at, w)
			if row.Reason = n.callReason(p, call, d, reason, w); row.Reason == admission.ReasonNone {
				continue
			}
			if row.Reason == reason && reason != admission.Paused {
				row.RetryAfter = n.heldFor(p, d, by, at, w)
			}
			if reason == admission.Paused {
				ripe = p.allRipe(d)
			}
			row.Due, row.OldestAge = int64(len(ripe)), age(ripe, w)
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, byTenant)
	return rows
}

// callReason is why a call left what otherwise is held for a reason, or none.
func (n *naive) callReason(
	p *naivePool, call *naiveCall, d *naiveDemand, reason admission.Reason, w admission.Wall,
) admission.Reason {
	serves, parked := p.offers(d, w)
	if call == nil || !call.asks(d) || !serves && !parked {
		return reason
	}
	for _, own := range n.leftBehind(call, d) {
		if reason == admission.ReasonNone || own < reason {
			reason = own
		}
	}
	return reason
}

// offers says whether entries of a demand may be served, and whether some may not
// because their group is paused.
func (p *naivePool) offers(d *naiveDemand, w admission.Wall) (serves, parked bool) {
	ripe := p.ripeOf(d)
	return len(ripe) > 0 && !p.lingers(d, w), len(ripe) < len(p.allRipe(d))
}

// lined are the waiters of a demand that somebody listens for.
func (n *naive) lined(d *naiveDemand) []*naiveWaiter {
	return deleteIf(n.waiters, func(w *naiveWaiter) bool { return w.d != d || w.detached != 0 })
}

// holds is why a demand is held back: for a reason of its own that holds a part of
// it, or for one of the pool's, which is the same for all of its class. All of the
// class in which somebody reserves the pool's tokens lacks what he lacks.
func (n *naive) holds(
	p *naivePool, d *naiveDemand, by *naiveTurn, at admission.Instant, w admission.Wall,
) admission.Reason {
	own, open, slot := n.stands(p, d, at, w)
	class := n.share(p, d)
	if len(own) > 0 {
		class, slot = entitled, false
	} else if !open {
		return admission.ReasonNone
	}
	limits := append(own, n.poolLimits(p, d, naiveWant{cost: 1, rateOnly: !slot}, at)...)
	if by != nil && p.classBehind(d.lane, class, by) {
		limits = append(limits, n.reserved(p, by, at)...)
	}
	return first(limits)
}

// stands returns what of its own holds a demand or a part of it, whether nothing of
// its own holds some part, and whether such a part needs a slot.
func (n *naive) stands(
	p *naivePool, d *naiveDemand, at admission.Instant, w admission.Wall,
) (own []naiveLimit, open, slot bool) {
	see := func(there, needsSlot bool, limits []naiveLimit) {
		own = append(own, limits...)
		open = open || there && len(limits) == 0
		slot = slot || there && len(limits) == 0 && needsSlot
	}
	serves, parked := p.offers(d, w)
	if serves || d.report.at(at) > 0 {
		see(true, true, n.ownLimits(p, d.tenant.id, d.lane, naiveWant{cost: 1}, at))
	}
	if parked && !serves {
		see(true, true, []naiveLimit{pausedLimit(admission.ScopeTenant)})
	}
	for _, source := range []int{slotSource, rateSource} {
		if len(n.queue(d, source)) > 0 {
			see(true, source == slotSource, n.waiterHolds(p, d, source, at))
		}
	}
	for _, waiter := range n.lined(d) {
		see(false, true, n.lockLimits(p, waiter.op, waiter.seq))
	}
	return own, open, slot
}

// reclaimWait counts a lane's demands that are entitled to a slot, and none is free, and
// tells how long the oldest has been there.
func (n *naive) reclaimWait(
	p *naivePool, lane string, at admission.Instant, w admission.Wall,
) (count int64, oldest time.Duration) {
	full := func(l naiveLimit) bool { return l.reason == admission.PoolCap }
	for _, t := range p.tenants {
		for _, d := range t.demands {
			own, _, slot := n.stands(p, d, at, w)
			if d.lane == lane && len(own) == 0 && slot && n.share(p, d) == entitled &&
				slices.ContainsFunc(n.poolLimits(p, d, naiveWant{cost: 1}, at), full) {
				_, age := n.servable(p, d, at, w)
				count, oldest = count+1, max(oldest, age)
			}
		}
	}
	return count, oldest
}

// borrowed counts a lane's permits that were beyond what their tenants are entitled to.
func (n *naive) borrowed(p *naivePool, lane string) (count int64) {
	for _, permit := range n.permits {
		if permit.pool == p && permit.lane == lane && permit.borrowed && !permit.uncounted {
			count++
		}
	}
	return count
}

// classBehind says whether a class is that in which somebody reserves or one behind.
func (p *naivePool) classBehind(lane string, class int, by *naiveTurn) bool {
	return cmp.Or(p.rank(lane)-by.rank, class-by.class) >= 0
}

// heldFor is when time alone lets one more of a demand be served: of its entries
// if it has any.
func (n *naive) heldFor(
	p *naivePool, d *naiveDemand, by *naiveTurn, at admission.Instant, w admission.Wall,
) time.Duration {
	want := naiveWant{cost: 1}
	var before []naiveLimit
	if serves, _ := p.offers(d, w); !serves {
		queue := append(n.queue(d, rateSource), n.queue(d, slotSource)...)
		if len(queue) == 0 {
			return admission.Absent
		}
		want, before = wantOf(queue[0].op), n.shortBefore(d, queue[0].seq, at)
	}
	if by != nil && by.d != d && p.classBehind(d.lane, n.share(p, d), by) {
		before = append(before, n.reserved(p, by, at)...)
	}
	limits := p.behind(n.limits(p, d.tenant.id, d.lane, want, at), before, d.lane, want.cost)
	if len(limits) == 0 {
		return admission.Absent
	}
	return millis(retryAfter(limits))
}

func byTenant(a, b admission.HeldTenant) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Lane, b.Lane))
}

// leftBehind is why a call itself did not take an entry of a demand.
func (n *naive) leftBehind(c *naiveCall, d *naiveDemand) (reasons []admission.Reason) {
	see := func(is bool, reason admission.Reason) {
		if is {
			reasons = append(reasons, reason)
		}
	}
	see(c.refused != admission.ReasonNone, c.refused)
	see(!c.admits(d.lane), admission.BatchOnly)
	see(n.nodeFull(c, d), admission.NodeCap)
	see(c.narrowed(d.lane), admission.CycleCap)
	see(!c.closed && c.capped(d), admission.CycleCap)
	see(!c.closed && c.full(), admission.BatchFull)
	return reasons
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
		Held:   totals(n.heldRows(p, at, w, nil)), Skipped: p.skipped, Swept: p.swept, Expired: p.expired, Draining: p.draining,
	}
	for rank, l := range p.lanes {
		reclaiming, since := n.reclaimWait(p, l.name, at, w)
		h.Lanes = append(h.Lanes, admission.LaneHealth{
			LaneState: n.laneState(p, l, at, w), Paused: l.paused, Draining: l.draining,
			Waiting: n.use(p, l.name).Waiting, Borrowed: n.borrowed(p, l.name), ReclaimWait: reclaiming, ReclaimAge: since,
			Active: n.active(p, func(_ string, r int) bool { return r == rank }),
		})
	}
	for i, b := range p.buckets {
		if policy := p.policy.Buckets[i]; policy.Scope == admission.ScopePool {
			h.Buckets = append(h.Buckets, b.health(policy.Name, p.bucketTerms(i, ""), at))
		}
	}
	if h.MaxActive > 0 {
		h.Debt = max(0, h.Active-h.MaxActive)
	}
	for _, t := range p.tenants {
		if t.known {
			h.TenantDebt += n.tenantHealth(at, p, t.id).Debt
			h.Tenants++
		}
	}
	h.Waiting = int64(len(n.waitersOf(p, func(*naiveWaiter) bool { return true })))
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
		Bucket: name, Level: terms.capacity - b.used(terms, at), Capacity: terms.capacity, Lent: b.lent,
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

// deadline is when a permit expires, a wait or a report ends or, at the latest, a
// waiter can be served.
func (n *naive) deadline() (at admission.Instant, ok bool) {
	see := func(t admission.Instant) {
		if !ok || t < at {
			at, ok = t, true
		}
	}
	for _, p := range n.permits {
		see(p.expires.Add(n.offset))
	}
	for _, w := range n.waiters {
		see(w.until.Add(n.offset))
		if w.detached != 0 {
			see(w.detached.Add(n.offset))
		}
	}
	for _, p := range n.pools {
		for _, t := range p.tenants {
			for _, d := range t.demands {
				if d.report.at(n.t) > 0 {
					see(d.report.until)
				}
				for _, source := range []int{slotSource, rateSource} {
					if wait := n.servedIn(d, source); wait != admission.Absent {
						see(n.t.Add(wait))
					}
				}
			}
		}
	}
	return at, ok
}

// servedIn is when time alone serves the first waiter of a source, or Absent.
func (n *naive) servedIn(d *naiveDemand, source int) time.Duration {
	queue := n.queue(d, source)
	if len(queue) == 0 {
		return admission.Absent
	}
	return retryAfter(n.waiterLimits(queue[0], n.t))
}

// nextDueIn is the time until the pool's next entry comes due, or Absent.
func (n *naive) nextDueIn(pool string, w admission.Wall) time.Duration {
	wait := time.Duration(admission.Absent)
	if due, ok := n.comesDue(n.pool(pool)); ok {
		wait = max(due.Sub(w), 0)
	}
	return millis(wait)
}

// comesDue is when the pool's next entry comes due that is not known as due.
func (n *naive) comesDue(p *naivePool) (due admission.Wall, ok bool) {
	for _, e := range p.entries {
		if !e.queued() || !e.waits && p.tenant(e.tenant).demand(e.lane).knows(e) {
			continue
		}
		if at := e.comes(); !ok || at < due {
			due, ok = at, true
		}
	}
	return due, ok
}

// due is when the wall clock brings something: an entry, or the end of the wait for
// a whole batch.
func (n *naive) due() (due admission.Wall, ok bool) {
	for _, p := range n.pools {
		at, any := p.nextLinger(n.w)
		if comes, more := n.comesDue(p); more && (!any || comes < at) {
			at, any = comes, true
		}
		if any && (!ok || at < due) {
			due, ok = at, true
		}
	}
	return due, ok
}
