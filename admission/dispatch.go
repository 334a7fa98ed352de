package admission

import "container/heap"

// dispatch is the one algorithm: it answers the asks of an entry and serves the
// due entries that its polls have room for, in one order. Lanes go by rank;
// within a lane the entitled before those that borrow; within a class the lowest
// tag.
//
// Each grant costs a few tree operations. Demands that are held for a reason of
// their own are in no order and are never passed over: the cost depends neither
// on the backlog nor on how many are blocked.
type dispatch struct {
	*State
	polls []*poll
	// arrived is the last place given out before this dispatch.
	arrived uint64
}

// dispatch answers the asks and serves the polls of one pool.
func (s *State) dispatch(p *pool, asks []*ask, polls []*poll) {
	d := dispatch{State: s, polls: polls, arrived: s.seq}
	p.lineUp(asks)
	for _, l := range p.lanes {
		p.lines[l.rank].order()
		for k := range classCount {
			d.serve(l, k)
		}
	}
	s.settleSeats() // those set aside
	for _, q := range polls {
		s.conclude(q)
	}
}

// serve goes through one class of one lane until nothing in it can be served.
// Every ask is answered: one that does not fit is shed.
func (d *dispatch) serve(l *lane, k classKind) {
	lines := &l.pool.lines[l.rank]
	for {
		line := lines.first(k)
		next, due := d.nextDue(l, k)
		switch {
		case line == nil && !due:
			return
		case line != nil && (!due || line.before(next, d.arrived)):
			a := line.first
			a.demand = line.demand
			d.answer(a)
			lines.advance()
		default:
			d.serveDue(next.demand)
		}
	}
}

// nextDue returns the first demand in the order, if a poll has room for it and
// the pool lets one more entry of the lane pass.
func (d *dispatch) nextDue(l *lane, k classKind) (position, bool) {
	if !l.roomFor(1, d.t) {
		return position{}, false
	}
	first, any := position{}, false
	for _, q := range d.polls {
		if !q.wants(l) {
			continue
		}
		if at, ok := q.first(l, k); ok && (!any || positionLess(at, first)) {
			first, any = at, true
		}
	}
	return first, any
}

// serveDue gives the demand's next entry to the first poll that takes it. A
// demand whose cycle is full for every poll is set aside until the end.
func (d *dispatch) serveDue(dm *demand) {
	d.leaveSeat(dm)
	to := d.pollFor(dm)
	if to == nil {
		dm.aside = true
		d.unsettle(dm)
		return
	}
	if e, ok := d.head(dm); ok {
		d.claim(to, dm, e)
	}
	d.reseatTenant(dm.tenant)
	if dm.asking != nil { // the grant moved it in both orders
		heap.Fix(&dm.lane.pool.lines[dm.lane.rank], dm.asking.at)
	}
}

// pollFor returns the first poll that takes the demand's next entry, or nil.
func (d *dispatch) pollFor(dm *demand) *poll {
	for _, q := range d.polls {
		if q.takes(dm) && !d.nodeFull(q.op.Node, dm.tenant) {
			return q
		}
	}
	return nil
}

// head returns the demand's next entry: the head of the route whose turn it is.
// A wall clock that stepped back can leave routes in the ring whose head is not
// due any more; they go dormant again.
func (d *dispatch) head(dm *demand) (*entryRow, bool) {
	for !dm.ring.empty() {
		r := dm.ring.front
		if first, _ := r.firstIn(d.line); first.at.first <= d.w {
			return first.entry, true
		}
		d.unready(r)
	}
	return nil, false
}

// claim grants the entry's permit to the poll.
func (d *dispatch) claim(q *poll, dm *demand, e *entryRow) {
	d.rotate(dm.ring.front)
	d.dequeue(e)
	e = d.writeEntry(e)
	e.state = entryClaimed
	e.attempts++
	if e.recur != nil {
		next, skipped := e.recur.measure(e.first, d.w)
		e.recur = &next
		dm.tenant.pool.skipped += skipped
	}
	p := d.grant(dm, order{
		cost: 1, ttl: q.op.TTL, nonce: claimNonce(q.op.Nonce, len(q.tokens)), worker: q.op.WorkerID, node: q.op.Node.ID, entry: e.key,
	})
	e.claim = p.token.key()
	q.take(dm, p, d.claimOf(p, e))
}

// reseatTenant seats the tenant's demands anew after a grant; those set aside
// wait for the end of the dispatch.
func (s *State) reseatTenant(t *tenant) {
	for _, d := range t.demands {
		if !d.aside && (d.row.seat != unseated || !d.ring.empty()) {
			s.reseat(d)
		}
	}
}
