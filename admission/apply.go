package admission

import "slices"

// Apply decides one log entry and returns one Result for each of its operations,
// in their order.
//
// Within an entry time advances first; then come the operator's operations,
// releases and renewals, the permits that expire, what is scheduled, then what is
// asked for, in fair order, then the waits that end, and at last what takes tokens
// and no turn: Takes and shares, in their order. So holders are favoured, and what
// they free is given out in the same entry. All operations of an entry are concurrent
// to their callers: any order among them is one they could have seen.
func (s *State) Apply(e Entry) []Result {
	results := make([]Result, len(e.Ops))
	s.advance(&e)
	s.finishDrains()
	s.each(e.Ops, results, s.operate)
	s.each(e.Ops, results, s.settleLease)
	s.passTime()
	s.each(e.Ops, results, s.reindex)
	s.promoteAll()
	for _, p := range s.pools.list {
		s.endLingering(p)
	}
	s.settleSeats()
	s.decide(e.Ops, results)
	s.endWaits()
	s.each(e.Ops, results, s.takeLast)
	s.rest()
	for _, p := range s.pools.list {
		s.makeRoom(p)
	}
	return results
}

// each runs the operations that the stage is for.
func (s *State) each(ops []Op, results []Result, stage func(Op) Result) {
	for i, op := range ops {
		if r := stage(op); r != nil {
			results[i] = r
		}
	}
}

// advance moves time on to the entry's moment, gaps without a leader included.
func (s *State) advance(e *Entry) {
	s.index, s.positions, s.waitEnds = e.Index, 0, nil
	s.t, s.w = max(s.t, e.T), e.W
	for _, op := range e.Ops {
		if start, ok := op.(TermStart); ok { // what is forgotten in an entry goes by its one moment
			gap := max(start.Gap, 0)
			s.t = s.t.Add(gap)
			s.leaseOffset += gap
		}
	}
}

// operate runs what leaders and operators log.
func (s *State) operate(op Op) Result {
	switch op := op.(type) {
	case TermStart:
		s.detachAll()
	case ApplyPolicy:
		return s.applyPolicy(op)
	case *PutTenants:
		return s.putTenants(op)
	case Pause:
		return s.pause(op)
	case Detach:
		if w := s.waiter(op.Waiter); w != nil {
			s.detach(w)
		}
	}
	return nil
}

// settleLease runs what holders say.
func (s *State) settleLease(op Op) Result {
	switch op := op.(type) {
	case *Renew:
		return s.renew(op)
	case *Release:
		return s.release(op)
	case *Take:
		s.giveBack(op)
	}
	return nil
}

// takeLast runs what takes tokens and no turn.
func (s *State) takeLast(op Op) Result {
	switch op := op.(type) {
	case *Take:
		return s.take(op)
	case *LeaseShare:
		return s.leaseShare(op)
	}
	return nil
}

// passTime lets time alone do its work: permits expire, reports end, tokens come,
// what is old is forgotten.
func (s *State) passTime() {
	budget, sweeps := MaxExpiries, sweepLimit
	for _, p := range s.pools.list {
		budget = s.expire(p, budget)
		s.endReports(p)
		sweeps = s.sweep(p, sweeps)
		s.wake(p)
		s.forgetOld(p)
		s.forgetDone(p)
		s.forgetIdle(p)
	}
}

// reindex runs what producers say.
func (s *State) reindex(op Op) Result {
	switch op := op.(type) {
	case *Schedule:
		return s.schedule(op)
	case Unschedule:
		return s.unschedule(op)
	case *ReportDemand:
		return s.reportDemand(op)
	case *Redrive:
		return s.redrive(op)
	case *PurgeDead:
		return s.purge(op)
	}
	return nil
}

// contest is what is asked of one pool in an entry.
type contest struct {
	pool  *pool
	asks  []*ask
	polls []*poll
	// echoes are polls with the request id of one before them.
	echoes []*poll
}

// decide dispatches what is asked for and what waits in line, pool by pool.
func (s *State) decide(ops []Op, results []Result) {
	for i, op := range ops {
		switch op := op.(type) {
		case *Acquire:
			a, res := s.hear(op, s.t)
			results[i] = res
			if a != nil {
				s.contest(a.demand.tenant.pool).ask(s, a)
			} else if w := s.waiter(res.Decision.Waiter); w != nil {
				s.comeBack(w, op, res)
			}
		case *NextDue:
			q, res := s.attend(op)
			results[i] = res
			if q != nil {
				s.contest(q.pool).join(q)
			}
		}
	}
	s.settleSeats()
	for _, p := range s.pools.list {
		if p.waiting > 0 || p.yields {
			s.contest(p)
		}
	}
	for i := range s.contests {
		c := &s.contests[i]
		s.dispatch(c.pool, c.asks, c.polls)
		for _, q := range c.echoes {
			s.replayPoll(q)
		}
		clear(c.asks)
		clear(c.polls)
		clear(c.echoes)
	}
	s.contests = s.contests[:0]
	s.endGlances()
}

// comeBack is for an Acquire of which an earlier try is in line.
func (s *State) comeBack(w *waiter, op *Acquire, res *AcquireResult) {
	if op.MaxWait > 0 {
		s.attach(w, op.MaxWait)
	} else {
		s.lookIn(w, res)
	}
}

// ask adds an Acquire, with what waits behind it. One with the request id of one
// before it is a replay of that, or an error, and reports nothing.
func (c *contest) ask(s *State, a *ask) {
	same := func(other *ask) bool {
		return other.op.RequestID == a.op.RequestID && other.op.Tenant == a.op.Tenant
	}
	told := a.op.Backlog > 0 && !(a.op.RequestID != "" && slices.ContainsFunc(c.asks, same))
	if c.asks = append(c.asks, a); !told {
		return
	}
	if d := a.demand; d.row == nil { // another ask may have made it known
		a.demand = c.pool.tenant(d.tenant.id).demand(d.lane)
	}
	s.report(a.demand, a.op.Backlog, 0)
}

// join adds a poll. One that is sent twice in one entry is to claim once.
func (c *contest) join(q *poll) {
	same := func(other *poll) bool { return other.op.RequestID == q.op.RequestID }
	if q.op.RequestID != "" && slices.ContainsFunc(c.polls, same) {
		c.echoes = append(c.echoes, q)
		return
	}
	c.polls = append(c.polls, q)
}

// contest returns the pool's contest of this entry.
func (s *State) contest(p *pool) *contest {
	for i := range s.contests {
		if s.contests[i].pool == p {
			return &s.contests[i]
		}
	}
	if n := len(s.contests); n < cap(s.contests) { // its slices serve again
		s.contests = s.contests[:n+1]
		c := &s.contests[n]
		c.pool, c.asks, c.polls, c.echoes = p, c.asks[:0], c.polls[:0], c.echoes[:0]
		return c
	}
	s.contests = append(s.contests, contest{pool: p})
	return &s.contests[len(s.contests)-1]
}
