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
	ready byHead[*queue]
	// turns is the ready queue whose row keeps the route's turn, nil while the
	// route is in no ring.
	turns *queue
	// next and prev link the ring.
	next, prev *route
	// headed is the place of its first head while it is in the ring, and top its index
	// in demand.heads.
	headed place
	top    int
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
		heap.Push(&r.demand.parked, q)
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
		heap.Remove(&r.demand.parked, q.at)
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
	q.headed = to
	if d := q.route.demand; q.paused {
		heap.Fix(&d.parked, q.at)
		s.stand(d)
		return
	}
	heap.Fix(&q.route.ready, q.at)
	s.setHead(q.route)
}

// setHead keeps the route's place among the heads of its demand true.
func (s *State) setHead(r *route) {
	d, was := r.demand, r.headed
	in := r.top < len(d.heads) && d.heads[r.top] == r
	switch {
	case len(r.ready) == 0 && !in:
		return
	case len(r.ready) == 0:
		heap.Remove(&d.heads, r.top)
		r.headed, r.top = place{}, 0
	case !in:
		r.headed = r.ready[0].headed
		heap.Push(&d.heads, r)
	default:
		if r.headed = r.ready[0].headed; r.headed == was {
			return
		}
		heap.Fix(&d.heads, r.top)
	}
	s.stand(d)
}

// headed is what has a first entry in line, and knows its index in a heap.
type headed interface {
	first() place
	put(index int)
}

func (q *queue) first() place  { return q.headed }
func (q *queue) put(index int) { q.at = index }
func (r *route) first() place  { return r.headed }
func (r *route) put(index int) { r.top = index }

// byHead is a heap by the first entries.
type byHead[T headed] []T

func (h byHead[T]) Len() int           { return len(h) }
func (h byHead[T]) Less(i, j int) bool { return h[i].first().compare(h[j].first()) < 0 }
func (h byHead[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].put(i)
	h[j].put(j)
}

// Push implements heap.Interface.
func (h *byHead[T]) Push(x any) {
	one := x.(T)
	one.put(len(*h))
	*h = append(*h, one)
}

// Pop implements heap.Interface.
func (h *byHead[T]) Pop() any {
	old, last := *h, len(*h)-1
	one := old[last]
	clear(old[last:])
	*h = old[:last]
	return one
}
