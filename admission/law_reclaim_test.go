package admission

import "slices"

// reclaims is the law that while an entitled tenant has demand in a lane, nothing
// borrowed is granted there and nothing below [I9]. Who is left with demand at the
// end of an entry had it throughout the dispatch, for grants only take: so no such
// grant was made in it.
//
// Demand are those who wait and are listened for, and due entries that a call of
// this entry could still be given: what no call asks for, or a call may take no
// more of (by its lanes, limits, node or cycle), is none. What something of the
// tenant's own holds is no demand either, nor is what stands in a lane that yields
// or is paused. Who needs a slot stands in nobody's way who needs none.
type reclaims struct{}

// leftOver is demand that an entry left.
type leftOver struct {
	tenant, lane string
	slotless     bool
}

func (reclaims) see(h *history, e Entry, results []Result) {
	if h.w < h.highest { // what is due can't be recounted
		return
	}
	for _, p := range h.pools.list {
		r := h.recount(p.name)
		grants := slices.DeleteFunc(slices.Clone(h.grants), func(g given) bool { return g.Pool != p.name || g.shared || g.turnless() })
		classes := h.classesOf(r.policy, grants)
		for _, d := range r.leftEntitled(e, results) {
			h.tally["entitled demand left over"]++
			for i, g := range grants {
				below := r.policy.rank(g.Lane) - r.policy.rank(d.lane)
				inItsWay := g.takesSlot() || d.slotless
				if inItsWay && (below > 0 || below == 0 && classes[i] == borrowing) {
					h.Errorf("%s was granted in %s, class %d, while %s is entitled to more in %s: %+v", g.Tenant, g.Lane, classes[i], d.tenant, d.lane, g.op)
				}
			}
		}
	}
}

// leftEntitled returns the demand of entitled tenants that the entry left.
func (r *recount) leftEntitled(e Entry, results []Result) (left []leftOver) {
	if r.policy.Shadow {
		return nil
	}
	for key, w := range r.h.waits {
		row := r.h.waiter(key)
		if w.op.Pool != r.policy.Name || !row.attached() || w.op.LockKey != "" || r.lostWait(w.op.Tenant) {
			continue
		}
		lane := row.demand.lane.name
		if r.wants(w.op.Tenant, lane, w.op.Cost, w.op.RateOnly) && r.firstOfItsOwn(key, w, lane) {
			left = append(left, leftOver{w.op.Tenant, lane, w.op.RateOnly})
		}
	}
	due, _ := r.due()
	for key := range due {
		if r.wants(key[0], key[1], 1, false) && r.askedFor(key, e, results) {
			left = append(left, leftOver{tenant: key[0], lane: key[1]})
		}
	}
	return left
}

// wants says whether nothing of the tenant's own holds a permit of that cost to
// which it is entitled.
func (r *recount) wants(tenant, lane string, cost int64, slotless bool) bool {
	if !r.policy.entitled(r.active, tenant, lane) || r.pool.lane(lane).yielding {
		return false
	}
	why := r.reasonFor(tenant, lane, cost)
	return why == ReasonNone || why == PoolCap || why == PoolRate
}

// lostWait says whether a wait of the tenant ended without a permit: what that
// held up was held up during the dispatch.
func (r *recount) lostWait(tenant string) bool {
	return slices.ContainsFunc(r.h.Ended(), func(end WaitEnd) bool {
		return end.Pool == r.policy.Name && end.Tenant == tenant && end.Result.Decision.Shed != nil
	})
}

// firstOfItsOwn says whether the tenant has no earlier wait in the lane.
func (r *recount) firstOfItsOwn(key WaiterKey, w *wait, lane string) bool {
	for other, o := range r.h.waits {
		if o.op.Pool == w.op.Pool && o.op.Tenant == w.op.Tenant && r.h.waiter(other).demand.lane.name == lane && other.compare(key) < 0 {
			return false
		}
	}
	return true
}

// askedFor says whether a call of the entry could still be given an entry of the
// tenant and lane.
func (r *recount) askedFor(key [2]string, e Entry, results []Result) bool {
	ids := map[string]bool{}
	for i, op := range e.Ops {
		op, ok := op.(*NextDue)
		if !ok || op.Pool != r.policy.Name {
			continue
		}
		res := results[i].(*NextDueResult)
		again := op.RequestID != "" && ids[op.RequestID]
		ids[op.RequestID] = true
		if !again && res.Err == nil && !res.Replayed && r.asks(key, res) && r.callReason(key, ReasonNone, res) == ReasonNone {
			return true
		}
	}
	return false
}
