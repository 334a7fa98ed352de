package admission

import (
	"slices"

	"github.com/tidwall/btree"
)

// Seats follow from the state: a source of demand is in an order exactly when its
// class says so. Whatever changes a demand marks it; the marked are seated
// together before anything is dispatched, so that their places among equals
// depend on what waits and not on the order in which the entry's operations were
// named.

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
		if d.stands() {
			s.unsettle(d)
		}
	}
}

// stands says whether the demand has or wants a seat.
func (d *demand) stands() bool {
	for src := range sourceCount {
		if d.row.seats[src].seat != unseated || d.has(src) {
			return true
		}
	}
	return d.row.standing.wants || d.lingers()
}

// entrant is a source that enters an order.
type entrant struct {
	at     place
	source source
	demand *demand
}

// settleSeats seats the marked demands: those that enter an order by their
// head's due or asked time, then by its place in line.
func (s *State) settleSeats() {
	if len(s.unsettled) == 0 {
		return
	}
	for _, d := range s.unsettled {
		if !d.unsettled { // forgotten since
			continue
		}
		d.unsettled, d.aside = false, false
		s.leaveSeats(d)
	}
	s.enter()
	clear(s.unsettled)
	s.unsettled = s.unsettled[:0]
}

// reseat seats the demand at once; within a dispatch the order of grants decides
// who comes first among equals.
func (s *State) reseat(d *demand) {
	s.leaveSeats(d)
	s.enter()
}

// leaveSeats seats what of the demand is in no order, and lines up what enters one.
func (s *State) leaveSeats(d *demand) {
	s.relinger(d)
	for src := range sourceCount {
		if src == fromEntries && d.aside {
			continue
		}
		to, wakeAt := s.classify(d, src)
		if to.ordered() && d.row.seats[src].seat != to && src < orderedSources {
			s.leaveSeat(d, src)
			s.entering = append(s.entering, entrant{s.headPlace(d, src), src, d})
			continue
		}
		s.seatAt(d, src, to, wakeAt)
	}
	s.stand(d)
}

// enter seats those that enter an order.
func (s *State) enter() {
	slices.SortFunc(s.entering, func(a, b entrant) int { return a.at.compare(b.at) })
	for _, e := range s.entering {
		to, wakeAt := s.classify(e.demand, e.source)
		s.seatAt(e.demand, e.source, to, wakeAt)
		s.stand(e.demand)
	}
	clear(s.entering)
	s.entering = s.entering[:0]
}

// seatAt moves a source to a seat. One that enters an order gets a place behind
// its equals; one that stays keeps its place.
func (s *State) seatAt(d *demand, src source, to seat, wakeAt Instant) {
	if to != d.row.seats[src].seat {
		s.leaveSeat(d, src)
		s.takeSeat(d, src, to)
	}
	s.setWake(d, src, wakeAt)
}

// leaveSeat takes a source out of wherever it sits.
func (s *State) leaveSeat(d *demand, src source) {
	from := d.row.seats[src].seat
	if from == unseated {
		return
	}
	if from.ordered() && src < orderedSources {
		c := &d.lane.classes[from.class()]
		s.raiseTag(d, from.class())
		c.orders[src].Delete(d.position(src))
		s.stir(c)
	}
	s.writeDemand(d).seats[src].seat = unseated
}

// leaveOrders takes every source of the demand out of its order: its tag is about
// to change.
func (s *State) leaveOrders(d *demand) {
	if d.row == nil {
		return
	}
	for src := range orderedSources {
		if d.row.seats[src].seat.ordered() {
			s.leaveSeat(d, src)
		}
	}
}

// takeSeat seats a source that has no seat.
func (s *State) takeSeat(d *demand, src source, to seat) {
	if to == unseated {
		return
	}
	if !to.ordered() || src >= orderedSources {
		s.writeDemand(d).seats[src].seat = to
		return
	}
	s.seq++
	s.raiseTag(d, to.class())
	own := &s.writeDemand(d).seats[src]
	own.seat, own.key, own.seq = to, d.row.tags[to.class()], s.seq
	if src == fromEntries {
		own.key -= d.lane.classes[to.class()].shift
	}
	s.enterOrder(d, src)
}

// enterOrder puts an ordered source at the position that its row says.
func (s *State) enterOrder(d *demand, src source) {
	k := d.row.seats[src].seat.class()
	d.lane.classes[k].orders[src].Set(d.position(src))
	s.overtaken = s.overtaken || d.lane.turn(k) < s.turn
}

// position returns the key of an ordered source.
func (d *demand) position(src source) position {
	own := &d.row.seats[src]
	return position{own.key, own.seq, d, src}
}

// wakeup is the place in a pool's wakeups of a source that waits for tokens.
type wakeup struct {
	at     Instant
	demand *demand
	source source
}

func wakeupLess(a, b wakeup) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	if a.demand != b.demand {
		return demandLess(a.demand, b.demand)
	}
	return a.source < b.source
}

// wakeups are those of the source: what waits for nobody's poll is kept apart,
// since time must move on for it.
func (p *pool) wakeups(src source) *btree.BTreeG[wakeup] {
	if src == fromWaiters || src == fromRateWaiters {
		return p.waiterRates
	}
	return p.rates
}

// setWake keeps the wakeups true; never takes the source out.
func (s *State) setWake(d *demand, src source, at Instant) {
	if at == never {
		at = 0
	}
	if at == d.row.seats[src].wakeAt {
		return
	}
	own := &s.writeDemand(d).seats[src]
	tree := d.tenant.pool.wakeups(src)
	if own.wakeAt != 0 {
		tree.Delete(wakeup{own.wakeAt, d, src})
	}
	if own.wakeAt = at; at != 0 {
		tree.Set(wakeup{at, d, src})
	}
}

// wakeLimit bounds the sources woken in one entry; the next goes on.
const wakeLimit = 2000

// wake marks the demands whose tokens have come.
func (s *State) wake(p *pool) {
	for _, tree := range []*btree.BTreeG[wakeup]{p.waiterRates, p.rates} {
		for range wakeLimit {
			next, ok := tree.Min()
			if !ok || next.at > s.t {
				break
			}
			s.setWake(next.demand, next.source, never)
			s.unsettle(next.demand)
		}
	}
}
