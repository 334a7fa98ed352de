package admission

import (
	"cmp"
	"math"

	"github.com/tidwall/btree"
)

// A route is a tenant's sub-queue in a lane. Its entries stand in State.line by
// their place in line: the first due time, then the order of arrival. Those that
// wait for a retry stand in State.delayed by when they come due again and return
// to their old place then.
//
// A route whose head is due is ready: it takes turns in its demand's ring. Time
// makes routes ready, not entries: a blast of a million entries becomes ready in
// one step and can't stand in front of the single entry that is due next. How
// many of a ready route's entries are due is counted up afterwards, a bounded
// number in each log entry.
type route struct {
	demand *demand
	name   string
	num    uint64    // only of this process: keys of the indexes
	row    *routeRow // nil unless ready
	// next and prev link the ring.
	next, prev *route
	// queued counts the entries in line and delayed.
	queued int64
	// ripe counts those in line up to row.ripe.
	ripe int64
	// sleeps is its key in pool.dormant or pool.ripening while it is in one.
	sleeps routeDue
	// headed is its key in State.heads while it is ready.
	headed head
}

// routeRow is what is replicated of a ready route.
type routeRow struct {
	version uint32
	*route
	// turn is its place in the ring.
	turn uint64
	// ripe is the place in line up to which entries are counted as due.
	ripe place
}

func routeRowLess(a, b *routeRow) bool {
	if a.demand != b.demand {
		return demandLess(a.demand.row, b.demand.row)
	}
	return a.name < b.name
}

// place is a place in line: earlier first due times first, then arrival.
type place struct {
	first Wall
	seq   uint64
}

func (p place) compare(q place) int {
	if c := cmp.Compare(p.first, q.first); c != 0 {
		return c
	}
	return cmp.Compare(p.seq, q.seq)
}

// beginning is before every wall time.
const beginning = Wall(math.MinInt64)

// spot is an entry's key in State.line or State.delayed.
type spot struct {
	route uint64
	at    place
	entry *entryRow
}

func spotLess(a, b spot) bool {
	if a.route != b.route {
		return a.route < b.route
	}
	return a.at.compare(b.at) < 0
}

// routesDue is routes by when they next have something due.
type routesDue = btree.BTreeG[routeDue]

// routeDue is a route's key in pool.dormant or pool.ripening.
type routeDue struct {
	at    place
	route *route
}

func routeDueLess(a, b routeDue) bool { return a.at.compare(b.at) < 0 }

// head is a ready route's key in State.heads, which finds each demand's oldest
// due entry.
type head struct {
	demand uint64
	at     place
}

func headLess(a, b head) bool {
	if a.demand != b.demand {
		return a.demand < b.demand
	}
	return a.at.compare(b.at) < 0
}

// routeKey finds a route by name.
type routeKey struct {
	demand *demand
	name   string
}

// routeOf returns the demand's route of that name, made on first use and dropped
// with its last entry.
func (s *State) routeOf(d *demand, name string) *route {
	key := routeKey{d, name}
	r := s.routesByName[key]
	if r == nil {
		s.locals++
		r = &route{demand: d, name: name, num: s.locals}
		s.routesByName[key] = r
	}
	return r
}

// firstIn returns the first entry of the route in line or delayed.
func (r *route) firstIn(tree *spots) (spot, bool) { return r.firstAfter(tree, place{first: beginning}) }

// firstAfter returns the first entry of the route at or after a place.
func (r *route) firstAfter(tree *spots, at place) (found spot, ok bool) {
	tree.Ascend(spot{route: r.num, at: at}, func(s spot) bool {
		found, ok = s, s.route == r.num
		return false
	})
	return found, ok
}

// enqueue puts a queued entry into its route.
func (s *State) enqueue(e *entryRow) {
	e.route = s.routeOf(e.route.demand, e.route.name)
	e.delayed = e.due > e.first && e.due > s.w
	s.link(e)
	s.refresh(e.route)
}

// link puts a queued entry into line or delayed.
func (s *State) link(e *entryRow) {
	r := e.route
	r.queued++
	if e.delayed {
		s.delayed.Set(spot{r.num, place{e.due, e.seq}, e})
		return
	}
	s.line.Set(spot{r.num, e.place(), e})
	if r.row != nil && e.place().compare(r.row.ripe) <= 0 {
		s.countDue(r, 1)
	}
}

// dequeue takes a queued entry out of its route.
func (s *State) dequeue(e *entryRow) {
	r := e.route
	s.unlink(e)
	s.refresh(r)
	if r.queued == 0 && r.row == nil {
		delete(s.routesByName, routeKey{r.demand, r.name})
	}
}

// unlink takes the entry out of line or delayed.
func (s *State) unlink(e *entryRow) {
	r := e.route
	r.queued--
	if e.delayed {
		s.delayed.Delete(spot{route: r.num, at: place{e.due, e.seq}})
		return
	}
	s.line.Delete(spot{route: r.num, at: e.place()})
	if r.row != nil && e.place().compare(r.row.ripe) <= 0 {
		s.countDue(r, -1)
	}
}

// countDue keeps the counts of due entries.
func (s *State) countDue(r *route, n int64) {
	r.ripe += n
	d := r.demand
	d.due += n
	if d.lane.batch.Linger > 0 {
		s.unsettle(d)
	}
	row := s.writeDemand(d)
	row.standing.due += n
	if row.seats[fromEntries].seat.ordered() {
		row.standing.depth += n
		d.lane.depth += n
	}
}
