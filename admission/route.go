package admission

import (
	"cmp"
	"container/heap"
	"math"
)

// A route is a tenant's sub-queue in a lane: those that have something due take
// turns in their demand's ring. Its entries stand in a queue for each group, so
// that a group can be paused by itself; among the queues that may be served the
// one whose head has the earliest place goes first, as if there were but one.
type route struct {
	demand *demand
	name   string
	// queues counts those that it has.
	queues int
	// ready is a heap of those that may be served, by their heads.
	ready readyQueues
	// turns is the ready queue whose row keeps the route's turn, nil while the
	// route is in no ring.
	turns *queue
	// next and prev link the ring.
	next, prev *route
	// headed is its key in State.heads while it is in the ring.
	headed head
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

// head is a key in State.heads, which finds each demand's oldest due entry: one
// for each route in a ring, and one for each ready queue of a paused group.
type head struct {
	demand uint64
	paused bool
	at     place
}

func headLess(a, b head) bool {
	if a.demand != b.demand {
		return a.demand < b.demand
	}
	if a.paused != b.paused {
		return b.paused
	}
	return a.at.compare(b.at) < 0
}

// routeKey finds a route by name.
type routeKey struct {
	demand *demand
	name   string
}

// routeOf returns the demand's route of that name, made on first use and dropped
// with its last queue.
func (s *State) routeOf(d *demand, name string) *route {
	key := routeKey{d, name}
	r := s.routes.get(key)
	if r == nil {
		r = &route{demand: d, name: name}
		s.routes.set(key, r)
	}
	return r
}

// offer lets a ready queue be served; one of a paused group only shows that it
// could be.
func (s *State) offer(q *queue) {
	r := q.route
	if q.paused {
		r.demand.parked++
		s.heads.Set(head{r.demand.num, true, q.headed})
		return
	}
	heap.Push(&r.ready, q)
	if r.turns == nil {
		r.turns = q
		if q.row.turn == 0 {
			s.seq++
			s.writeQueue(q).turn = s.seq
		}
		r.demand.ring.pushBack(r)
	}
	s.setHead(r)
}

// retract takes back an offer. The last one takes the route out of the ring.
func (s *State) retract(q *queue) {
	r := q.route
	if q.paused {
		r.demand.parked--
		s.heads.Delete(head{r.demand.num, true, q.headed})
		return
	}
	heap.Remove(&r.ready, q.at)
	if r.turns == q {
		s.passTurn(r)
	}
	s.setHead(r)
}

// passTurn has another queue keep the route's turn, or takes the route out of the
// ring if there is none.
func (s *State) passTurn(r *route) {
	was := s.writeQueue(r.turns)
	if len(r.ready) == 0 {
		r.turns = nil
		r.demand.ring.remove(r)
	} else {
		r.turns = r.ready[0]
		s.writeQueue(r.turns).turn = was.turn
	}
	was.turn = 0
}

// rotate sends the ring's head to its end.
func (s *State) rotate(r *route) {
	s.seq++
	s.writeQueue(r.turns).turn = s.seq
	r.demand.ring.remove(r)
	r.demand.ring.pushBack(r)
}

// movedHead keeps an offer true after the queue's head became another.
func (s *State) movedHead(q *queue, to place) {
	if q.headed == to {
		return
	}
	d, from := q.route.demand, q.headed
	q.headed = to
	if q.paused {
		s.heads.Delete(head{d.num, true, from})
		s.heads.Set(head{d.num, true, to})
		s.stand(d)
		return
	}
	heap.Fix(&q.route.ready, q.at)
	s.setHead(q.route)
}

// setHead keeps the route's key in heads true.
func (s *State) setHead(r *route) {
	at := head{}
	if len(r.ready) > 0 {
		at = head{r.demand.num, false, r.ready[0].headed}
	}
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

// readyQueues is a heap of queues by their heads.
type readyQueues []*queue

func (h readyQueues) Len() int           { return len(h) }
func (h readyQueues) Less(i, j int) bool { return h[i].headed.compare(h[j].headed) < 0 }
func (h readyQueues) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

func (h *readyQueues) Push(x any) {
	q := x.(*queue)
	q.at = len(*h)
	*h = append(*h, q)
}

func (h *readyQueues) Pop() any {
	old := *h
	last := len(old) - 1
	q := old[last]
	old[last] = nil
	*h = old[:last]
	return q
}
