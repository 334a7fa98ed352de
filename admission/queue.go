package admission

import "github.com/tidwall/btree"

// queue is the entries of one group in a route. They stand in State.line by their
// place in line: the first due time, then the order of arrival. Those that wait
// for a retry stand in State.delayed by when they come due again and return to
// their old place then.
//
// A queue whose head is due is ready. Time makes queues ready, not entries: a
// blast of a million entries becomes ready in one step and can't stand in front of
// the single entry that is due next. How many of a ready queue's entries are due
// is counted up afterwards, a bounded number in each log entry.
type queue struct {
	route *route
	group string
	// paused says that its group is: it comes due as ever, but is not served.
	paused bool
	num    uint64    // only of this process: keys of the indexes
	row    *queueRow // nil unless ready
	// queued counts the entries in line and delayed, retries the latter.
	queued, retries int64
	// ripe counts those in line up to row.ripe.
	ripe int64
	// sleeps is its key in lane.dormant or lane.ripening while it is in one.
	sleeps queueDue
	// headed is the place of its head while it is ready.
	headed place
	// at is its index in route.ready or demand.parked while it is ready, sibling that in
	// State.grouped.
	at, sibling int
}

// queueRow is what is replicated of a ready queue.
type queueRow struct {
	version uint32
	*queue
	// turn is its route's place in the ring, 0 if another queue keeps it.
	turn uint64
	// ripe is the place in line up to which entries are counted as due.
	ripe place
}

// queueItem keys a ready queue in State.dueQueues.
type queueItem struct {
	tenant uint64
	row    *queueRow
}

func (r *queueRow) item() queueItem { return queueItem{r.route.demand.tenant.num, r} }

func queueLess(a, b queueItem) bool {
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	in, other := a.row.route, b.row.route
	if in.demand != other.demand {
		return demandLess(in.demand, other.demand)
	}
	if in != other {
		return in.name < other.name
	}
	return a.row.group < b.row.group
}

// spots is queued entries by queue and place.
type spots = btree.BTreeG[spot]

// spot is an entry's key in State.line or State.delayed.
type spot struct {
	queue uint64
	at    place
	entry *entryRow
}

func spotLess(a, b spot) bool {
	if a.queue != b.queue {
		return a.queue < b.queue
	}
	return a.at.compare(b.at) < 0
}

// queueKey finds a queue by its names.
type queueKey struct {
	demand *demand
	route  string
	group  string
}

func (q *queue) key() queueKey { return queueKey{q.route.demand, q.route.name, q.group} }

// queueOf returns the queue of those names, made on first use and dropped with its
// last entry.
func (s *State) queueOf(key queueKey) *queue {
	q := s.queuesByName.get(key)
	if q == nil {
		s.locals++
		q = &queue{route: s.routeOf(key.demand, key.route), group: key.group, num: s.locals}
		q.route.queues++
		s.queuesByName.set(key, q)
		s.joinGroup(q)
	}
	return q
}

// dropQueue forgets a queue that has no entry, and its route with its last queue.
func (s *State) dropQueue(q *queue) {
	s.queuesByName.drop(q.key())
	s.leaveGroup(q)
	if q.route.queues--; q.route.queues == 0 {
		s.routes.drop(routeKey{q.route.demand, q.route.name})
	}
}

// firstIn returns the first entry of the queue in line or delayed.
func (q *queue) firstIn(tree *spots) (spot, bool) { return q.firstAfter(tree, place{first: beginning}) }

// firstAfter returns the first entry of the queue at or after a place.
func (q *queue) firstAfter(tree *spots, at place) (found spot, ok bool) {
	tree.Ascend(spot{queue: q.num, at: at}, func(s spot) bool {
		found, ok = s, s.queue == q.num
		return false
	})
	return found, ok
}

// firstInLine returns the first entry of the queue in line.
func (s *State) firstInLine(q *queue) (spot, bool) {
	if q.queued == q.retries {
		return spot{}, false
	}
	return q.firstIn(s.line)
}

// firstRetry returns the first entry of the queue in delayed.
func (s *State) firstRetry(q *queue) (spot, bool) {
	if q.retries == 0 {
		return spot{}, false
	}
	return q.firstIn(s.delayed)
}

// enqueue puts a queued entry into its queue. A retry waits until it is promoted,
// though it be due: so the order in which queues become ready depends on when
// that is, not on when it was found out.
func (s *State) enqueue(e *entryRow) {
	e.queue = s.queueOf(e.queue.key())
	e.delayed = e.due > e.first
	s.link(e)
	s.refresh(e.queue)
}

// link puts a queued entry into line or delayed.
func (s *State) link(e *entryRow) {
	q := e.queue
	q.queued++
	if e.delayed {
		q.retries++
		s.delayed.Set(spot{q.num, place{e.due, e.seq}, e})
		return
	}
	s.line.Set(spot{q.num, e.place(), e})
	if q.row != nil && e.place().compare(q.row.ripe) <= 0 {
		s.countDue(q, 1)
	}
}

// dequeue takes a queued entry out of its queue.
func (s *State) dequeue(e *entryRow) {
	q := e.queue
	s.unlink(e)
	s.refresh(q)
	if q.queued == 0 {
		s.dropQueue(q)
	}
}

// unlink takes the entry out of line or delayed.
func (s *State) unlink(e *entryRow) {
	q := e.queue
	q.queued--
	if e.delayed {
		q.retries--
		s.delayed.Delete(spot{queue: q.num, at: place{e.due, e.seq}})
		return
	}
	s.line.Delete(spot{queue: q.num, at: e.place()})
	if q.row != nil && e.place().compare(q.row.ripe) <= 0 {
		s.countDue(q, -1)
	}
}

// countDue keeps the counts of due entries.
func (s *State) countDue(q *queue, n int64) {
	q.ripe += n
	d := q.route.demand
	if q.paused {
		d.parkedDue += n
		if d.row.standing.held == Paused {
			s.writeDemand(d).standing.due += n
		}
		return
	}
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
