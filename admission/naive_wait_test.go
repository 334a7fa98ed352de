package admission_test

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// How long a waiter that nobody listens for keeps its place.
const naiveAbsence = 5 * time.Second

// naiveWaiter is an Acquire in line. Its times are on the lease clock.
type naiveWaiter struct {
	key     admission.WaiterKey
	op      *admission.Acquire
	pool    *naivePool
	d       *naiveDemand
	seq     uint64
	askedAt admission.Wall
	until   admission.Instant
	// detached is when it ends unless somebody asks again, 0 while somebody
	// listens.
	detached admission.Instant
}

// waitersOf are the waiters of a pool that f selects, in the order in which they
// asked.
func (n *naive) waitersOf(p *naivePool, f func(*naiveWaiter) bool) []*naiveWaiter {
	chosen := deleteIf(n.waiters, func(w *naiveWaiter) bool { return w.pool != p || !f(w) })
	slices.SortFunc(chosen, func(a, b *naiveWaiter) int { return cmp.Compare(a.seq, b.seq) })
	return chosen
}

// queue are the waiters of a source that wait for their turn: those that
// somebody listens for and that don't wait for a lock.
func (n *naive) queue(d *naiveDemand, source int) []*naiveWaiter {
	var queue []*naiveWaiter
	for _, w := range n.waiters {
		if w.d == d && w.op.RateOnly == (source == rateSource) && w.detached == 0 && !n.atLock(w) {
			queue = append(queue, w)
		}
	}
	slices.SortFunc(queue, func(a, b *naiveWaiter) int { return cmp.Compare(a.seq, b.seq) })
	return queue
}

// wait puts an Acquire in line.
func (n *naive) wait(p *naivePool, ask *naiveAsk) {
	n.granted++
	n.seq++
	w := &naiveWaiter{
		key: admission.WaiterKey{Index: n.index, Position: n.granted}, op: ask.op, pool: p, d: ask.d,
		seq: n.seq, askedAt: n.w, until: n.leaseNow().Add(ask.op.MaxWait),
	}
	n.waiters = append(n.waiters, w)
	n.meet(p, ask.d.tenant)
	ask.res.Decision = admission.Decision{Waiter: w.key}
}

// attach answers an Acquire whose request id waits already.
func (n *naive) attach(p *naivePool, op *admission.Acquire, res *admission.AcquireResult) bool {
	for _, w := range n.waiters {
		if w.pool != p || w.op.Tenant != op.Tenant || op.RequestID == "" || w.op.RequestID != op.RequestID {
			continue
		}
		if bodyOf(w.op) != bodyOf(op) {
			res.Err = mismatch()
			return true
		}
		if op.MaxWait == 0 && w.detached != 0 {
			n.glances = append(n.glances, naiveGlance{w, w.detached})
		}
		w.detached, w.until = 0, max(w.until, n.leaseNow().Add(op.MaxWait))
		res.Decision.Waiter = w.key
		return true
	}
	return false
}

// naiveGlance is a place in line that somebody looked in at who does not wait.
type naiveGlance struct {
	w        *naiveWaiter
	detached admission.Instant
}

// endGlances tells who would not wait what came of his place.
func (n *naive) endGlances(ops []admission.Op, results []admission.Result) {
	for i, op := range ops {
		a, ok := op.(*admission.Acquire)
		if !ok || a.MaxWait > 0 {
			continue
		}
		d := &results[i].(*admission.AcquireResult).Decision
		for _, w := range n.waiters {
			if w.key == d.Waiter {
				*d = n.refusal(w).Decision
			}
		}
		for _, end := range n.ends {
			if end.Waiter == d.Waiter {
				*d = end.Result.Decision
				d.Replayed = d.Shed == nil
			}
		}
	}
	for _, g := range n.glances {
		g.w.detached = g.detached
	}
	n.glances = nil
	for _, p := range n.pools {
		n.seat(p)
	}
}

// detachAll is for a new term: whoever listened asked another leader.
func (n *naive) detachAll() {
	for _, w := range n.waiters {
		n.detach(w.key)
	}
}

func (n *naive) detach(key admission.WaiterKey) {
	for _, w := range n.waiters {
		switch {
		case w.key != key || w.detached != 0:
		case w.op.RequestID == "":
			n.endShed(w)
		default:
			w.detached = n.leaseNow().Add(naiveAbsence)
		}
	}
}

// endWaits ends the waits whose time is over.
func (n *naive) endWaits() {
	now := n.leaseNow()
	ends := func(w *naiveWaiter) admission.Instant {
		if w.detached != 0 {
			return min(w.until, w.detached)
		}
		return w.until
	}
	over := deleteIf(n.waiters, func(w *naiveWaiter) bool { return ends(w) > now })
	slices.SortStableFunc(over, func(a, b *naiveWaiter) int { return cmp.Compare(ends(a), ends(b)) })
	n.endTogether(over)
	for _, p := range n.pools {
		p.by = nil
		n.seat(p)
	}
}

// waiterHolds are what of its tenant's own holds the waiters of a source.
func (n *naive) waiterHolds(p *naivePool, d *naiveDemand, source int, at admission.Instant) []naiveLimit {
	w := n.queue(d, source)[0]
	limits := n.ownLimits(p, d.tenant.id, d.lane, wantOf(w.op), at)
	if len(limits) == 0 {
		limits = n.shortBefore(d, w.seq, at)
	}
	return limits
}

// review ends the waits of those whose policy has changed and that are refused by it
// however long they wait.
func (n *naive) review(p *naivePool, whose func(*naiveWaiter) bool) {
	lost := n.waitersOf(p, func(w *naiveWaiter) bool { // whoever it waits behind
		if !whose(w) {
			return false
		}
		own := n.limits(p, w.op.Tenant, w.d.lane, wantOf(w.op), n.t)
		return answered(append(own, n.duplicates(p, w.op, n.t)...))
	})
	n.endTogether(lost)
}

// endTogether ends waits, all told what held them before any ends.
func (n *naive) endTogether(all []*naiveWaiter) {
	told := make([]*admission.AcquireResult, len(all))
	for i, w := range all {
		told[i] = n.refusal(w)
	}
	for i, w := range all {
		n.end(w, told[i])
	}
}

// answered says whether a refusal is told at once: waiting helps against none of
// these limits.
func answered(limits []naiveLimit) bool {
	return slices.ContainsFunc(limits, func(l naiveLimit) bool {
		return l.reason != admission.Paused && l.reason <= admission.BatchOnly
	})
}

// waiterLimits are all that holds a waiter.
func (n *naive) waiterLimits(w *naiveWaiter, at admission.Instant) []naiveLimit {
	p := w.pool
	limits := n.limits(p, w.op.Tenant, w.d.lane, wantOf(w.op), at)
	limits = append(limits, n.duplicates(p, w.op, at)...)
	limits = append(limits, n.lockLimits(p, w.op, w.seq)...)
	before := n.shortBefore(w.d, w.seq, at)
	if by := n.reserver(p, at); by != nil && n.isBehind(w, by) {
		before = append(before, n.reserved(p, by, at)...)
	}
	return p.behind(limits, before, w.d.lane, w.op.Cost)
}

// isBehind says whether a waiter comes after the one that reserves.
func (n *naive) isBehind(w *naiveWaiter, by *naiveTurn) bool {
	if w.d == by.d {
		return w.seq > n.queue(by.d, by.source)[0].seq
	}
	class := n.share(w.pool, w.d)
	place := naiveTurn{w.pool.rank(w.d.lane), class, w.pool.tag(w.d, class), math.MaxUint64, w.d, slotSource, nil}
	return byTurn(place, *by) > 0
}

func (n *naive) endShed(w *naiveWaiter) { n.end(w, n.refusal(w)) }

// refusal says what holds a waiter.
func (n *naive) refusal(w *naiveWaiter) *admission.AcquireResult {
	limits := n.waiterLimits(w, n.t)
	if by := w.pool.by; len(limits) == 0 && by != nil && n.isBehind(w, by) {
		limits = w.pool.behind(nil, n.reserved(w.pool, by, n.t), w.d.lane, w.op.Cost)
	}
	shed := n.shed(w.d.lane, limits, n.t)
	if shed.RetryAfter == 0 { // nothing does but that nobody listened
		shed.RetryAfter = time.Millisecond
	}
	return &admission.AcquireResult{Decision: admission.Decision{Shed: shed}}
}

// end tells a waiter its result.
func (n *naive) end(w *naiveWaiter, res *admission.AcquireResult) {
	n.waiters = deleteIf(n.waiters, func(other *naiveWaiter) bool { return other == w })
	n.ends = append(n.ends, admission.WaitEnd{
		Waiter: w.key, Pool: w.pool.policy.Name, Tenant: w.op.Tenant, Result: res,
	})
	n.touch(w.pool, w.d.tenant)
}

// queueLimits are those of how many may wait.
func (n *naive) queueLimits(p *naivePool, tenant, lane string) []naiveLimit {
	var all []naiveLimit
	add := func(name string, scope admission.Scope, most int64, f func(*naiveWaiter) bool) {
		part := p.part(lane, most)
		if used := int64(len(n.waitersOf(p, f))); used >= part {
			all = append(all, naiveLimit{reason: admission.QueueFull, Limit: admission.Limit{
				Name: name, Scope: scope, Capacity: most, Used: used, Asked: 1, Reserve: most - part,
				RetryAfter: admission.Absent,
			}})
		}
	}
	add("limits.waiting", admission.ScopePool, p.policy.Limits.Waiting, func(*naiveWaiter) bool { return true })
	add("limits.waiting_per_tenant", admission.ScopeTenant, p.policy.Limits.WaitingPerTenant,
		func(w *naiveWaiter) bool { return w.op.Tenant == tenant })
	return all
}
