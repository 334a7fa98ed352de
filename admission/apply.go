package admission

// Apply decides one log entry and returns one Result for each of its operations,
// in their order.
//
// Within an entry time advances first; then come the operator's operations,
// releases and renewals, the permits that expire, what is scheduled, and at last
// what is asked for, in fair order. So holders are favoured, and what they free
// is given out in the same entry. All operations of an entry are concurrent to
// their callers: any order among them is one they could have seen.
func (s *State) Apply(e Entry) []Result {
	results := make([]Result, len(e.Ops))
	s.advance(&e)
	s.each(e.Ops, results, s.operate)
	s.each(e.Ops, results, s.settleLease)
	s.passTime()
	s.each(e.Ops, results, s.reindex)
	for _, p := range s.pools.list {
		s.promote(p)
	}
	s.settleSeats()
	s.decide(e.Ops, results)
	s.rest()
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

// advance moves time on to the entry's moment.
func (s *State) advance(e *Entry) {
	s.index, s.positions = e.Index, 0
	s.t, s.w = max(s.t, e.T), e.W
}

// operate runs what leaders and operators log.
func (s *State) operate(op Op) Result {
	switch op := op.(type) {
	case TermStart:
		gap := max(op.Gap, 0)
		s.t = s.t.Add(gap)
		s.leaseOffset += gap
	case ApplyPolicy:
		return s.applyPolicy(op)
	case Pause:
		return s.pause(op)
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
	}
	return nil
}

// passTime lets time alone do its work: permits expire, tokens come, what is old
// is forgotten.
func (s *State) passTime() {
	budget := expireLimit
	for _, p := range s.pools.list {
		budget = s.expire(p, budget)
		s.wake(p)
		s.forgetOld(p)
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
	}
	return nil
}

// contest is what is asked of one pool in an entry.
type contest struct {
	pool  *pool
	asks  []*ask
	polls []*poll
}

// decide dispatches what is asked for, pool by pool.
func (s *State) decide(ops []Op, results []Result) {
	var contests []contest
	at := func(p *pool) *contest {
		for i := range contests {
			if contests[i].pool == p {
				return &contests[i]
			}
		}
		contests = append(contests, contest{pool: p})
		return &contests[len(contests)-1]
	}
	for i, op := range ops {
		switch op := op.(type) {
		case *Acquire:
			a, res := s.hear(op, s.t)
			results[i] = res
			if a != nil {
				c := at(a.demand.tenant.pool)
				c.asks = append(c.asks, a)
			}
		case *NextDue:
			q, res := s.attend(op)
			results[i] = res
			if q != nil {
				c := at(q.pool)
				c.polls = append(c.polls, q)
			}
		}
	}
	for _, c := range contests {
		s.dispatch(c.pool, c.asks, c.polls)
	}
}
