package admission_test

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// batch is how entries of a lane may share a permit.
func (p *naivePool) batch(lane string) admission.BatchPolicy {
	return p.policy.Lanes[p.rank(lane)].Batch
}

// admits says whether a call may have work of a lane by what it said of batches.
func (c *naiveCall) admits(lane string) bool { return c.op.Batch || !c.pool.batch(lane).Only }

// lingers says whether the due entries of a demand wait for more of them.
func (p *naivePool) lingers(d *naiveDemand, w admission.Wall) bool {
	terms, ripe := p.batch(d.lane), p.ripeOf(d)
	return terms.Linger > 0 && len(ripe) > 0 && int64(len(ripe)) < terms.Size && ripe[0].first.Add(terms.Linger) > w
}

// mayLinger says whether there are lanes whose entries wait for a whole batch.
func (n *naive) mayLinger() bool {
	return slices.ContainsFunc(n.pools, func(p *naivePool) bool {
		return slices.ContainsFunc(p.policy.Lanes, func(l admission.LanePolicy) bool { return l.Batch.Linger > 0 })
	})
}

// nextLinger is when the next entries have waited long enough for more of them.
func (p *naivePool) nextLinger(w admission.Wall) (end admission.Wall, ok bool) {
	for _, t := range p.tenants {
		for _, d := range t.demands {
			if !p.lingers(d, w) {
				continue
			}
			if at := p.ripeOf(d)[0].first.Add(p.batch(d.lane).Linger); !ok || at < end {
				end, ok = at, true
			}
		}
	}
	return end, ok
}

// roomIn is how many entries of a demand one permit of a call may be for: no more
// than there are tokens for.
func (n *naive) roomIn(call *naiveCall, d *naiveDemand) int64 {
	p := call.pool
	terms := p.batch(d.lane)
	if !call.op.Batch || terms.Size == 0 {
		return 1
	}
	room := min(terms.Size, int64(call.op.MaxItems-len(call.res.Claims)))
	for i, policy := range p.policy.Buckets {
		if policy.PerPermit {
			continue
		}
		b, terms, leave := p.buckets[i], p.bucketTerms(i, d.tenant.id), p.leave(d.lane, policy.Name)
		if policy.Scope == admission.ScopeTenant {
			b, leave = d.tenant.buckets[i], 0
		}
		room = min(room, terms.capacity-b.used(terms, n.t)-leave)
	}
	return room
}

// claim grants the head of a demand to a call, with what comes after it if they
// share a permit.
func (n *naive) claim(p *naivePool, turn naiveTurn, call *naiveCall) {
	room := n.roomIn(call, turn.d)
	var entries []*naiveEntry
	for int64(len(entries)) < room || len(entries) == 0 {
		e := n.head(p, turn.d)
		if e == nil {
			break
		}
		e.attempts++
		e.measure(p, n.w)
		e.claim = &naivePermit{} // it is in no queue any more
		turn.d.rotate(e.spec.Route)
		n.refresh(p, e)
		entries = append(entries, e)
	}
	whole := n.grant(p, turn, int64(len(entries)))
	whole.ttl = orElse(call.op.TTL, p.policy.PermitTTL)
	whole.expires = n.leaseNow().Add(whole.ttl)
	whole.worker, whole.node, whole.cost = call.op.WorkerID, call.op.Node.ID, 1
	call.taken[turn.d]++
	call.inLane[turn.d.lane]++
	if len(entries) == 1 {
		n.give(call, whole, entries[0], 0)
		return
	}
	whole.batch = true
	call.batches++
	for _, e := range entries {
		part := n.issue(p, turn, 1)
		part.whole, part.uncounted = whole, true
		part.ttl, part.expires, part.worker = whole.ttl, whole.expires, whole.worker
		for _, c := range whole.charged {
			c.amount = 1
			part.charged = append(part.charged, c)
		}
		n.give(call, part, e, call.batches)
	}
}

// give tells a call of an entry that it claims.
func (n *naive) give(call *naiveCall, permit *naivePermit, e *naiveEntry, batch int32) {
	permit.token.Nonce = call.op.Nonce + uint64(len(call.res.Claims))*0x9e3779b97f4a7c15
	permit.entry, e.claim = e, permit
	call.res.Claims = append(call.res.Claims, admission.Claim{
		Permit: n.holder(permit), Key: e.spec.Key, Category: e.spec.Category, Route: e.spec.Route,
		Group: e.spec.Group, DueAt: e.dueAt(), Attempt: e.attempts, CatchUp: e.left > 1, Batch: batch,
	})
}

// endWhole ends a batch's permit with the last of its parts.
func (n *naive) endWhole(part *naivePermit) {
	if !slices.ContainsFunc(n.permits, func(p *naivePermit) bool { return p.whole == part.whole }) {
		n.permits = deleteIf(n.permits, func(p *naivePermit) bool { return p == part.whole })
	}
}
