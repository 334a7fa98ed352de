package admission

// In a lane whose batches linger, a tenant's entries are no demand until there are
// enough of them for a whole batch, or the oldest has been due for that long. They
// have no seat until then, and a place in pool.lingering instead.

// lingerEnd is a demand's place in pool.lingering.
type lingerEnd struct {
	at     Wall
	demand *demand
}

func lingerEndLess(a, b lingerEnd) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return demandLess(a.demand, b.demand)
}

// lingers says whether the demand's entries wait for more of them.
func (d *demand) lingers() bool { return d.row.lingers != 0 }

// relinger decides anew until when the demand's entries wait for more of them.
func (s *State) relinger(d *demand) {
	until := Wall(0)
	if rules := d.lane.batch; rules.Linger > 0 && d.due < rules.Size && !d.ring.empty() {
		oldest, _ := d.oldestDue()
		if at := oldest.Add(rules.Linger); at > s.w {
			until = at
		}
	}
	s.setLinger(d, until)
}

// setLinger keeps pool.lingering true; 0 takes the demand out.
func (s *State) setLinger(d *demand, until Wall) {
	if until == d.row.lingers {
		return
	}
	row := s.writeDemand(d)
	lingering := d.tenant.pool.lingering
	if row.lingers != 0 {
		lingering.Delete(lingerEnd{row.lingers, d})
	}
	if row.lingers = until; until != 0 {
		lingering.Set(lingerEnd{until, d})
	}
}

// endLingering marks the demands that have waited long enough for more.
func (s *State) endLingering(p *pool) {
	for range wakeLimit {
		next, ok := p.lingering.Min()
		if !ok || next.at > s.w {
			return
		}
		s.relinger(next.demand)
		s.unsettle(next.demand)
	}
}
