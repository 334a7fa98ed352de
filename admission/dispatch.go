package admission

// dispatch is the one algorithm: it answers the asks of an entry, admits who
// waits in line, and serves the due entries that the polls have room for, in one
// order. Lanes go by rank; within a lane the entitled before those that borrow;
// within a class the lowest tag.
//
// Each grant costs a few tree operations. Demands that are held for a reason of
// their own are in no order and are never passed over: the cost depends neither
// on the backlog nor on how many are blocked.
type dispatch struct {
	*State
	polls []*poll
	// reserved says that holder lacks nothing but the pool's tokens: nothing that
	// comes after it passes.
	reserved bool
	holder   position
}

// dispatch answers the asks and serves the waiters and polls of one pool.
func (s *State) dispatch(p *pool, asks []*ask, polls []*poll) {
	s.updateYields(p, asks)
	d := dispatch{State: s, polls: polls}
	s.polled = len(polls) > 0
	p.lineUp(asks, s.seq)
	d.serveAll(p)
	p.reserved, p.reserver = d.reserved, d.holder
	s.settleSeats() // those set aside
	for _, q := range polls {
		s.conclude(q)
	}
}

// serveAll serves the turns. A grant can let somebody in whose turn has passed, one
// who waits for the lock that it frees: then the first turn comes again.
func (d *dispatch) serveAll(p *pool) {
	ordered := 0
	for d.turn = 0; d.turn < len(p.lanes)*int(classCount); d.turn++ {
		l, k := p.lanes[d.turn/int(classCount)], classKind(d.turn%int(classCount))
		if l.rank == ordered {
			p.lines[l.rank].order()
			ordered++
		}
		d.overtaken = false
		d.serve(l, k)
		if d.overtaken {
			d.turn = -1
		}
	}
	d.turn = 0
}

// serve goes through one class of one lane until nothing in it can be served, every
// ask being answered, or until somebody comes before it.
func (d *dispatch) serve(l *lane, k classKind) {
	lines := &l.pool.lines[l.rank]
	short := false // entries lack tokens
	for !d.overtaken {
		line := lines.first(k)
		next, any := d.next(l, k, short)
		switch {
		case line == nil && !any:
			return
		case line != nil && (!any || line.before(next)):
			a := line.first
			a.demand = line.demand
			d.answer(a)
			lines.advance()
		case !l.tokensFree(d.costOf(next), d.t):
			if next.source == fromEntries {
				short = true // and so do all after it
			} else {
				d.reserved, d.holder = true, next
			}
		case next.source == fromEntries:
			d.serveDue(next.demand)
		default:
			d.serveWaiter(next)
		}
	}
}

// next returns what is to be served next: the first waiter, or the first due
// entry that a poll has room for, unless entries are short of tokens.
func (d *dispatch) next(l *lane, k classKind, short bool) (first position, ok bool) {
	if d.reserved {
		return first, false
	}
	first, ok = l.firstWaiter(k)
	if !short && !l.yielding && l.slotFor(k) {
		if due, any := d.nextDue(l, k); any && (!ok || positionLess(due, first)) {
			return due.demand.waiterOr(due, k), true
		}
	}
	return first, ok
}

// waiterOr returns the position of the demand's waiter, which goes before its
// entries, if it has one in the class; else that of its entries.
func (d *demand) waiterOr(due position, k classKind) position {
	own := due
	for src := fromWaiters; src < orderedSources; src++ {
		if d.row.seats[src].seat == seatOf(k) && (own == due || positionLess(d.position(src), own)) {
			own = d.position(src)
		}
	}
	due.source = own.source
	return due
}

// nextDue returns the first due demand of the class that a poll has room for.
func (d *dispatch) nextDue(l *lane, k classKind) (first position, any bool) {
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

// serveWaiter grants what the first waiter at the position asked for.
func (d *dispatch) serveWaiter(at position) {
	dm := at.demand
	w := d.headWaiter(dm, at.source)
	if w == nil { // its lock was taken, or its job, by another grant
		d.reseat(dm)
		return
	}
	d.leaveOrders(dm)
	n := w.need()
	order := order{
		cost: w.cost, ttl: w.ttl, nonce: w.nonce, worker: w.worker,
		lock: n.lock, job: n.job, slotless: w.slotless, settle: w.settle,
	}
	told := d.endWait(w, Decision{})
	d.granted(d.grant(dm, order), w.requestID, w.digest, &told.Decision)
	d.moved(dm.tenant)
}

// serveDue gives the demand's next entry to the first poll that takes it. A
// demand whose cycle is full for every poll is set aside until the end.
func (d *dispatch) serveDue(dm *demand) {
	to := d.pollFor(dm)
	if to == nil {
		d.leaveSeat(dm, fromEntries)
		d.stand(dm)
		dm.aside = true
		d.unsettle(dm)
		return
	}
	if e, ok := d.head(dm); ok {
		d.leaveOrders(dm)
		d.claim(to, dm, e)
	}
	d.reseatTenant(dm.tenant)
	d.moved(dm.tenant)
}

// moved puts what the tenant asks for where its tags and classes are now.
func (d *dispatch) moved(t *tenant) {
	for _, dm := range t.demands {
		if dm.asking != nil {
			t.pool.lines[dm.lane.rank].moved(dm.asking)
		}
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

// head returns the demand's next entry: the first of the route whose turn it is.
// A wall clock that stepped back can leave queues ready whose head is not due any
// more; they go dormant again.
func (d *dispatch) head(dm *demand) (*entryRow, bool) {
	for !dm.ring.empty() {
		q := dm.ring.front.ready[0]
		if first, _ := d.firstInLine(q); first.at.first <= d.w {
			return first.entry, true
		}
		d.unready(q)
	}
	return nil, false
}

// claim grants the entry's permit to the poll, or one for a batch that begins with
// it.
func (d *dispatch) claim(q *poll, dm *demand, e *entryRow) {
	entries := []*entryRow{d.begin(dm, e)}
	for room := d.roomIn(q, dm); int64(len(entries)) < room; {
		e, ok := d.head(dm)
		if !ok {
			break
		}
		entries = append(entries, d.begin(dm, e))
	}
	if len(entries) > 1 {
		d.claimBatch(q, dm, entries)
		return
	}
	e = entries[0]
	p := d.grant(dm, order{
		cost: 1, ttl: q.op.TTL, nonce: claimNonce(q.op.Nonce, len(q.tokens)), worker: q.op.WorkerID, node: q.op.Node.ID, entry: e.key, letter: e.letter,
	})
	e.claim = p.token.key()
	q.count(dm)
	q.take(d.claimOf(holding{permit: p}, e))
}

// begin takes the entry out of its queue for another attempt.
func (d *dispatch) begin(dm *demand, e *entryRow) *entryRow {
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
	return e
}

// reseatTenant seats the tenant's demands anew after a grant; the entries of those
// set aside wait for the end of the dispatch.
func (s *State) reseatTenant(t *tenant) {
	for _, d := range t.demands {
		if d.stands() {
			s.reseat(d)
		}
	}
}
