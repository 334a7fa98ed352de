package admission_test

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// reserver is the first waiter, if it lacks tokens of the pool and nothing else.
func (n *naive) reserver(p *naivePool, at admission.Instant) *naiveTurn {
	for _, turn := range p.seated() {
		if turn.source == dueSource {
			continue
		}
		head := n.headOf(p, turn.d, turn.source)
		if head == nil { // it has just ended
			return nil
		}
		limits := n.poolLimits(p, turn.d, head.want, at)
		switch {
		case !onlyTokens(limits):
		case n.classOf(p, turn.d, turn.source) != turn.d.places[turn.source].class: // not since this entry
			return nil
		case len(limits) == 0:
			return nil
		default:
			return &turn
		}
	}
	return nil
}

// reserved are the tokens that a waiter reserves.
func (n *naive) reserved(p *naivePool, by *naiveTurn, at admission.Instant) []naiveLimit {
	if by == nil {
		return nil
	}
	cost := n.headOf(p, by.d, by.source).want.cost
	return n.bucketLimits(p, by.d.tenant.id, by.d.lane, admission.ScopePool, cost, at)
}

// onlyTokens says whether limits are all of tokens of the pool.
func onlyTokens(limits []naiveLimit) bool {
	return !slices.ContainsFunc(limits, func(l naiveLimit) bool { return !l.bucket || l.Scope != admission.ScopePool })
}

// shortBefore are the tenant's own tokens that a waiter of a demand lacks who came
// before a place in line.
func (n *naive) shortBefore(d *naiveDemand, seq uint64, at admission.Instant) []naiveLimit {
	for _, source := range []int{slotSource, rateSource} {
		queue := n.queue(d, source)
		if len(queue) == 0 || queue[0].seq >= seq {
			continue
		}
		w := queue[0]
		if limits := n.bucketLimits(w.pool, w.op.Tenant, d.lane, admission.ScopeTenant, w.op.Cost, at); len(limits) > 0 {
			return limits
		}
	}
	return nil
}

// behind adds to limits the tokens that somebody before lacks. When those are
// there is not foretold.
func (p *naivePool) behind(limits, before []naiveLimit, lane string, cost int64) []naiveLimit {
	for _, r := range before {
		same := func(l naiveLimit) bool { return l.bucket && l.Name == r.Name && l.Scope == r.Scope }
		if i := slices.IndexFunc(limits, same); i >= 0 {
			limits[i].RetryAfter = admission.Absent
			limits[i].reason = min(limits[i].reason, r.reason)
			continue
		}
		r.Asked, r.RetryAfter, r.frees = cost, admission.Absent, nil
		if i := slices.IndexFunc(p.policy.Buckets, func(b admission.BucketPolicy) bool { return b.Name == r.Name }); p.policy.Buckets[i].PerPermit {
			r.Asked = 1
		}
		if r.Scope == admission.ScopePool {
			r.Reserve = p.leave(lane, r.Name)
		}
		limits = append(limits, r)
	}
	return limits
}
