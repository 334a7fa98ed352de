package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// depth is what a lane could serve but for the pool's own limits, and how long
// the oldest of it has been there.
func (n *naive) depth(
	p *naivePool, lane string, asks []*naiveAsk, at admission.Instant, w admission.Wall,
) (depth int64, oldest time.Duration) {
	for _, t := range p.tenants {
		for _, d := range t.demands {
			if d.lane != lane {
				continue
			}
			more, age := n.servable(p, d, at, w)
			depth, oldest = depth+more, max(oldest, age)
		}
	}
	for _, ask := range asks {
		if ask.d.lane == lane && n.willWait(p, ask) {
			depth++
		}
	}
	return depth, oldest
}

// servable is depth of one demand.
func (n *naive) servable(p *naivePool, d *naiveDemand, at admission.Instant, w admission.Wall) (depth int64, oldest time.Duration) {
	if !p.lingers(d, w) && !ownLimit(n.ownLimits(p, d.tenant.id, d.lane, naiveWant{cost: 1}, at)) {
		ripe := p.ripeOf(d)
		depth += int64(len(ripe))
		oldest = max(oldest, age(ripe, w))
	}
	for _, source := range []int{slotSource, rateSource} {
		queue := n.queue(d, source)
		if len(queue) > 0 && len(n.waiterHolds(p, d, source, at)) == 0 {
			depth += int64(len(queue))
			oldest = max(oldest, w.Sub(queue[0].askedAt))
		}
	}
	return depth + n.reported(p, d, at), oldest
}

// willWait says whether an Acquire of this entry is demand: one that waits if it
// has to, and that nothing of its tenant's own holds.
func (n *naive) willWait(p *naivePool, ask *naiveAsk) bool {
	op := ask.op
	limits := append(n.ownLimits(p, op.Tenant, ask.d.lane, wantOf(op), n.t), n.lockLimits(p, op, n.seq+1)...)
	limits = append(limits, n.duplicates(p, op, n.t)...)
	return !ask.over && op.MaxWait > 0 && !ownLimit(limits) && !answered(limits)
}

// yield lets each lane yield, or no longer, by what those above it have.
func (n *naive) yield(p *naivePool, asks []*naiveAsk) {
	for rank, yielding := range n.yields(p, asks, n.t, n.w) {
		p.lanes[rank].yielding = yielding
	}
}

// yields says whether any lane may yield.
func (p *naivePool) yields() bool {
	return slices.ContainsFunc(p.policy.Lanes, func(l admission.LanePolicy) bool { return l.Yield != nil })
}

// yieldsStale says whether an entry of that moment that brings no demand would let
// another lane yield, or one no longer.
func (n *naive) yieldsStale(p *naivePool, at admission.Instant, w admission.Wall) bool {
	for rank, yielding := range n.yields(p, nil, at, w) {
		if p.lanes[rank].yielding != yielding {
			return true
		}
	}
	return false
}

// yields says which lanes yield at that moment.
func (n *naive) yields(p *naivePool, asks []*naiveAsk, at admission.Instant, w admission.Wall) []bool {
	all := make([]bool, len(p.lanes))
	for rank, l := range p.lanes {
		terms := p.policy.Lanes[rank].Yield
		if terms == nil {
			continue
		}
		var depth int64
		var oldest time.Duration
		for _, above := range p.lanes[:rank] {
			more, old := n.depth(p, above.name, asks, at, w)
			depth, oldest = depth+more, max(oldest, old)
		}
		byDepth, byAge := terms.Above != admission.Absent, terms.AboveAge > 0
		above := byDepth && depth > terms.Above || byAge && oldest > terms.AboveAge
		low := (!byDepth || depth <= terms.Resume) && (!byAge || oldest <= terms.ResumeAge)
		all[rank] = above || l.yielding && !low
	}
	return all
}
