package admission

// What a NextDue that is answered left is told with the call's own reasons beside
// those of pool and tenant.

// asked says whether the call that is answered asked for the demand.
func (v *shedView) asked(d *demand) bool {
	return v.askedLane(d.lane) && (v.call.op.Tenant == "" || v.call.op.Tenant == d.tenant.id)
}

func (v *shedView) askedLane(l *lane) bool {
	return v.call != nil && l.rank < len(v.call.lanes) && v.call.lanes[l.rank]
}

// callReason returns why the call left the demand that otherwise is held for why.
func (v *shedView) callReason(d *demand, why Reason) Reason {
	if !v.asked(d) || !d.has(fromEntries) {
		return why
	}
	if v.nodeFull(v.call.op.Node, d.tenant) {
		why = firstReason(why, NodeCap)
	}
	if why == ReasonNone && v.call.refused == ReasonNone && v.cycleCapped(d) {
		return CycleCap
	}
	return v.laneCallReason(d.lane, why)
}

// laneCallReason returns why the call left what is held for why in the lane,
// whosever it is.
func (v *shedView) laneCallReason(l *lane, why Reason) Reason {
	why = firstReason(why, v.call.refused)
	if l.batch.Only && !v.call.op.Batch {
		why = firstReason(why, BatchOnly)
	}
	switch {
	case why != ReasonNone:
		return why
	case v.call.left[l.rank] <= 0:
		return CycleCap
	case v.call.full:
		return BatchFull
	}
	return ReasonNone
}

func (v *shedView) cycleCapped(d *demand) bool {
	for _, key := range v.call.cycleCapped {
		if key == (demandKey{d.tenant.num, d.lane.name}) {
			return true
		}
	}
	return false
}

// callTotals moves to the call's reasons those with entries that it left in the lane.
func (v *shedView) callTotals(l *lane, n *[reasonCount]heldCount) {
	if !v.askedLane(l) {
		return
	}
	var moved [reasonCount]int64
	seen := map[*demand]bool{}
	move := func(d *demand) {
		if d.row == nil || !d.has(fromEntries) || seen[d] {
			return
		}
		seen[d] = true
		why := v.reason(d)
		n[why].all--
		n[why].entries--
		moved[v.callReason(d, why)]++
	}
	if v.call.op.Tenant != "" {
		move(v.pool.tenant(v.call.op.Tenant).demand(l))
	} else {
		v.fullOn(v.call.op.Node, v.pool, func(t *tenant) { move(t.demand(l)) })
		for _, key := range v.call.cycleCapped {
			if key.lane == l.name {
				move(v.demandOf(key))
			}
		}
		for why, count := range n {
			n[why].all -= count.entries
			moved[v.laneCallReason(l, Reason(why))] += count.entries
		}
	}
	for why, count := range moved {
		n[why].all += count
	}
}

// demandOf returns the demand that a result names.
func (v *shedView) demandOf(key demandKey) *demand {
	found, ok := v.State.tenants.Get(tenantItem{num: key.tenant})
	if !ok || found.row.pool.lane(key.lane) == nil {
		return &demand{}
	}
	return found.row.demand(found.row.pool.lane(key.lane))
}
