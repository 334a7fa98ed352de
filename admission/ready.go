package admission

// refresh keeps all that depends on the route's entries true after they changed.
func (s *State) refresh(r *route) {
	if r.row != nil {
		if first, any := r.firstIn(s.line); !any || first.at.first > s.w {
			s.unready(r)
			return
		}
	}
	s.place(r)
}

// place keeps the route's keys in heads and among the dormant or ripening true.
func (s *State) place(r *route) {
	inLine, any := r.firstIn(s.line)
	if r.row == nil {
		s.sleep(r, s.headDue(r, inLine, any))
		return
	}
	s.setHead(r, head{r.demand.num, inLine.at})
	s.sleep(r, s.nextRipe(r))
}

// headDue returns when the dormant route's first entry comes due.
func (s *State) headDue(r *route, inLine spot, anyInLine bool) routeDue {
	if d, ok := r.firstIn(s.delayed); ok && (!anyInLine || d.at.compare(inLine.at) < 0) {
		return routeDue{d.at, r}
	}
	if anyInLine {
		return routeDue{inLine.at, r}
	}
	return routeDue{}
}

// nextRipe returns when the ready route's next uncounted entry comes due.
func (s *State) nextRipe(r *route) routeDue {
	after := r.row.ripe
	after.seq++
	inLine, ok := r.firstAfter(s.line, after)
	return s.headDue(r, inLine, ok)
}

// sleep keeps the route's key among the dormant or ripening true.
func (s *State) sleep(r *route, at routeDue) {
	if r.sleeps == at {
		return
	}
	p := r.demand.tenant.pool
	tree := p.dormant
	if r.row != nil {
		tree = p.ripening
	}
	if r.sleeps.route != nil {
		tree.Delete(r.sleeps)
	}
	if r.sleeps = at; at.route != nil {
		tree.Set(at)
	}
}

// ready puts a dormant route at the end of its demand's ring.
func (s *State) ready(r *route) {
	s.sleep(r, routeDue{})
	s.seq++
	r.row = &routeRow{version: s.version, route: r, turn: s.seq, ripe: place{first: beginning}}
	s.routes.Set(r.row)
	r.demand.ring.pushBack(r)
	s.unsettle(r.demand)
}

// unready takes the route out of the ring; it goes dormant if it has entries.
func (s *State) unready(r *route) {
	s.sleep(r, routeDue{})
	s.countDue(r, -r.ripe)
	s.setHead(r, head{})
	s.routes.Delete(r.row)
	r.demand.ring.remove(r)
	r.row = nil
	s.unsettle(r.demand)
	s.place(r)
}

// rotate sends the ring's head to its end.
func (s *State) rotate(r *route) {
	s.seq++
	s.writeRoute(r).turn = s.seq
	r.demand.ring.remove(r)
	r.demand.ring.pushBack(r)
}

// writeRoute returns the ready route's row for writing.
func (s *State) writeRoute(r *route) *routeRow {
	if r.row.version != s.version {
		row := *r.row
		row.version = s.version
		r.row = &row
		s.routes.Set(&row)
	}
	return r.row
}

// setHead keeps the route's key in heads true.
func (s *State) setHead(r *route, at head) {
	if r.headed == at {
		return
	}
	if r.headed.demand != 0 {
		s.heads.Delete(r.headed)
	}
	if r.headed = at; at.demand != 0 {
		s.heads.Set(at)
	}
	s.stand(r.demand)
}

// promoteLimit bounds the routes made ready, and the entries counted as due, in
// one log entry; the next goes on.
const promoteLimit = 2000

// promote makes routes ready whose head is due, oldest first, and goes on
// counting the due entries of those that are.
func (s *State) promote(p *pool) {
	for budget := promoteLimit; budget > 0; budget-- {
		next, ok := p.dormant.Min()
		if !ok || next.at.first > s.w {
			break
		}
		s.ready(next.route)
		s.ripen(next.route, 1)
	}
	for budget := promoteLimit; budget > 0; {
		next, ok := p.ripening.Min()
		if !ok || next.at.first > s.w {
			break
		}
		budget -= s.ripen(next.route, budget)
	}
}

// ripen counts up to budget entries of a ready route that have come due, and
// returns how many it did. Those that waited for a retry return to their place
// in line.
func (s *State) ripen(r *route, budget int) int {
	done := 0
	for ; done < budget; done++ {
		next := s.nextRipe(r)
		if next.route == nil || next.at.first > s.w {
			break
		}
		if back, ok := r.firstIn(s.delayed); ok && back.at == next.at {
			s.rejoin(back.entry)
		} else {
			s.writeRoute(r).ripe = next.at
			s.countDue(r, 1)
		}
	}
	s.refresh(r)
	s.unsettle(r.demand)
	return done
}

// rejoin moves an entry whose retry has come due from delayed into line.
func (s *State) rejoin(e *entryRow) {
	s.unlink(e)
	e = s.writeEntry(e)
	e.delayed = false
	s.link(e)
}
