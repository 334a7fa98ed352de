package admission

import "slices"

// Seats follow from the state: a demand is in an order exactly when its class
// says so. Whatever changes a demand marks it; the marked are seated together
// before anything is dispatched, so that their places among equals depend on
// what waits and not on the order in which the entry's operations were named.

// unsettle marks the demand to be seated anew.
func (s *State) unsettle(d *demand) {
	if !d.unsettled {
		d.unsettled = true
		s.unsettled = append(s.unsettled, d)
	}
}

// unsettleTenant marks every demand of the tenant that has or wants a seat.
func (s *State) unsettleTenant(t *tenant) {
	for _, d := range t.demands {
		if d.row.seat != unseated || !d.ring.empty() {
			s.unsettle(d)
		}
	}
}

// settleSeats seats the marked demands: those that enter an order by their
// head's due time, then by its place in line.
func (s *State) settleSeats() {
	if len(s.unsettled) == 0 {
		return
	}
	entering := s.unsettled[:0]
	for _, d := range s.unsettled {
		d.unsettled, d.aside = false, false
		to, wakeAt := d.classify(s.t)
		if to.ordered() && d.row.seat != to {
			entering = append(entering, d)
			continue
		}
		s.seatAt(d, to, wakeAt)
	}
	slices.SortFunc(entering, func(a, b *demand) int { return a.headPlace().compare(b.headPlace()) })
	for _, d := range entering {
		to, wakeAt := d.classify(s.t)
		s.seatAt(d, to, wakeAt)
	}
	clear(s.unsettled)
	s.unsettled = s.unsettled[:0]
}

// reseat seats the demand at once; within a dispatch the order of grants decides
// who comes first among equals.
func (s *State) reseat(d *demand) {
	to, wakeAt := d.classify(s.t)
	s.seatAt(d, to, wakeAt)
}

// seatAt moves the demand to a seat. One that enters an order gets a place
// behind its equals; one that stays keeps its place.
func (s *State) seatAt(d *demand, to seat, wakeAt Instant) {
	if to != d.row.seat {
		s.leaveSeat(d)
		s.takeSeat(d, to)
	} else if to.ordered() {
		s.relist(d)
	}
	s.setWake(d, wakeAt)
	s.noteWant(d, to != unseated)
}

// leaveSeat takes the demand out of wherever it sits.
func (s *State) leaveSeat(d *demand) {
	from := d.row.seat
	if from == unseated {
		return
	}
	if from.ordered() {
		c := &d.lane.classes[from.class()]
		c.order.Delete(d.position())
		s.stir(c)
		d.lane.depth -= d.due
		d.unlist()
	} else {
		d.lane.held[from.reason()]--
	}
	s.writeDemand(d).seat = unseated
}

// takeSeat seats a demand that has none.
func (s *State) takeSeat(d *demand, to seat) {
	if to == unseated {
		return
	}
	row := s.writeDemand(d)
	row.seat = to
	if !to.ordered() {
		d.lane.held[to.reason()]++
		return
	}
	s.seq++
	row.seq = s.seq
	row.tags[to.class()] = d.tagIn(to.class())
	s.enterOrder(d)
}

// enterOrder puts an ordered demand at the position that its row says.
func (s *State) enterOrder(d *demand) {
	d.lane.classes[d.row.seat.class()].order.Set(d.position())
	d.lane.depth += d.due
	s.relist(d)
}

// position returns the key of an ordered demand.
func (d *demand) position() position {
	return position{d.row.tags[d.row.seat.class()], d.row.seq, d}
}

// wakeup is the place in pool.rates of a demand that waits for tokens.
type wakeup struct {
	at     Instant
	demand *demand
}

func wakeupLess(a, b wakeup) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return demandLess(a.demand.row, b.demand.row)
}

// setWake keeps pool.rates true; never takes the demand out.
func (s *State) setWake(d *demand, at Instant) {
	if at == never {
		at = 0
	}
	if at == d.row.wakeAt {
		return
	}
	row := s.writeDemand(d)
	rates := d.tenant.pool.rates
	if row.wakeAt != 0 {
		rates.Delete(wakeup{row.wakeAt, d})
	}
	if row.wakeAt = at; at != 0 {
		rates.Set(wakeup{at, d})
	}
}

// wakeLimit bounds the demands woken in one entry; the next goes on.
const wakeLimit = 2000

// wake marks the demands whose tokens have come.
func (s *State) wake(p *pool) {
	for range wakeLimit {
		next, ok := p.rates.Min()
		if !ok || next.at > s.t {
			return
		}
		s.setWake(next.demand, never)
		s.unsettle(next.demand)
	}
}

// noteWant keeps pool.wanting true.
func (s *State) noteWant(d *demand, wants bool) {
	if wants == d.wants {
		return
	}
	d.wants = wants
	t := d.tenant
	if wants {
		if t.wanting++; t.wanting == 1 {
			t.pool.wanting.Set(t)
		}
	} else if t.wanting--; t.wanting == 0 {
		t.pool.wanting.Delete(t)
	}
}

// oldestDue is a demand's place in lane.oldest.
type oldestDue struct {
	due    Wall
	demand *demand
}

func oldestDueLess(a, b oldestDue) bool {
	if a.due != b.due {
		return a.due < b.due
	}
	return a.demand.tenant.num < b.demand.tenant.num
}

// relist keeps lane.oldest true for a demand that could be served.
func (s *State) relist(d *demand) {
	due, ok := d.oldestDue(s)
	if !ok {
		d.unlist()
		return
	}
	if d.listed.demand != nil && d.listed.due == due {
		return
	}
	d.unlist()
	d.listed = oldestDue{due, d}
	d.lane.oldest.Set(d.listed)
}

func (d *demand) unlist() {
	if d.listed.demand != nil {
		d.lane.oldest.Delete(d.listed)
		d.listed = oldestDue{}
	}
}
