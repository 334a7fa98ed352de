package admission_test

import (
	"cmp"
	"math"
	"slices"

	"github.com/admitd/admit/admission"
)

// naivePoint is a place in line.
type naivePoint struct {
	first admission.Wall
	seq   uint64
}

func (p naivePoint) compare(q naivePoint) int {
	return cmp.Or(cmp.Compare(p.first, q.first), cmp.Compare(p.seq, q.seq))
}

func pointOf(e *naiveEntry) naivePoint { return naivePoint{e.first, e.seq} }

// byAge orders entries as they are served within a route.
func byAge(a, b *naiveEntry) int { return pointOf(a).compare(pointOf(b)) }

// naiveQueue is the entries of one group in a route.
type naiveQueue struct{ route, group string }

func queueOf(e *naiveEntry) naiveQueue { return naiveQueue{e.spec.Route, e.spec.Group} }

// naiveReady is a queue whose head was due when something last happened to it. Its
// entries are known as due up to a place in line. A wall clock that steps back
// changes neither.
type naiveReady struct {
	naiveQueue
	known naivePoint
}

// readyAt finds a queue among those that are ready, or returns -1.
func (d *naiveDemand) readyAt(q naiveQueue) int {
	return slices.IndexFunc(d.ready, func(r naiveReady) bool { return r.naiveQueue == q })
}

// knows says whether an entry in line is known as due.
func (d *naiveDemand) knows(e *naiveEntry) bool {
	i := d.readyAt(queueOf(e))
	return i >= 0 && pointOf(e).compare(d.ready[i].known) <= 0
}

// ripeOf are the entries of a demand that are known as due, oldest first.
func (p *naivePool) ripeOf(d *naiveDemand) []*naiveEntry {
	return deleteIf(p.allRipe(d), func(e *naiveEntry) bool { return p.groupPaused(e.tenant, e.spec.Group) })
}

// allRipe are the same, those of paused groups among them.
func (p *naivePool) allRipe(d *naiveDemand) []*naiveEntry {
	return deleteIf(p.inLine(d), func(e *naiveEntry) bool { return !d.knows(e) })
}

// inLine are the queued entries of a demand that wait for no retry, oldest first.
func (p *naivePool) inLine(d *naiveDemand) []*naiveEntry {
	line := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.tenant != d.tenant.id || e.lane != d.lane || !e.queued() || e.waits
	})
	slices.SortFunc(line, byAge)
	return line
}

// front is the entry of a demand that goes next: the oldest of the route whose turn
// it is. It is nil if there is none.
func (p *naivePool) front(d *naiveDemand) *naiveEntry {
	for _, route := range d.ring {
		for _, e := range p.ripeOf(d) {
			if e.spec.Route == route {
				return e
			}
		}
	}
	return nil
}

// head is the same of those that are still due.
func (n *naive) head(p *naivePool, d *naiveDemand) *naiveEntry {
	for {
		e := p.front(d)
		if e == nil || e.first <= n.w {
			return e
		}
		d.unready(p, queueOf(e))
	}
}

// promote lets routes take turns that have something due: the longest due first.
func (n *naive) promote() {
	for _, p := range n.pools {
		for _, t := range p.tenants {
			for _, d := range t.demands {
				for _, e := range p.dueOf(d, n.w) {
					if d.readyAt(queueOf(e)) < 0 {
						d.ready = append(d.ready, naiveReady{queueOf(e), naivePoint{first: math.MinInt64}})
						d.offer(p, e)
					}
					e.waits = false
				}
				d.learn(p, n.w)
			}
		}
	}
}

// learn gets to know what is due in the queues that are ready.
func (d *naiveDemand) learn(p *naivePool, w admission.Wall) {
	for _, e := range p.inLine(d) {
		if i := d.readyAt(queueOf(e)); i >= 0 && e.first <= w && !d.knows(e) {
			d.ready[i].known = pointOf(e)
		}
	}
}

// offer gives the route of an entry a turn, behind the others.
func (d *naiveDemand) offer(p *naivePool, e *naiveEntry) {
	if !p.groupPaused(e.tenant, e.spec.Group) && !slices.Contains(d.ring, e.spec.Route) {
		d.ring = append(d.ring, e.spec.Route)
	}
}

// dueOf are the queued entries of a demand that are due, by when they came due.
func (p *naivePool) dueOf(d *naiveDemand, w admission.Wall) []*naiveEntry {
	due := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.tenant != d.tenant.id || e.lane != d.lane || !e.queued() || e.comes() > w
	})
	slices.SortFunc(due, func(a, b *naiveEntry) int {
		return naivePoint{a.comes(), a.seq}.compare(naivePoint{b.comes(), b.seq})
	})
	return due
}

// comes is when a queued entry comes due. For one that came back due that is its
// place in line.
func (e *naiveEntry) comes() admission.Wall {
	if e.waits {
		return e.due
	}
	return e.first
}

// refresh looks again at the queue of an entry that came into it or left it.
func (n *naive) refresh(p *naivePool, e *naiveEntry) {
	d := p.tenant(e.tenant).demand(e.lane)
	if !slices.ContainsFunc(p.inLine(d), func(other *naiveEntry) bool {
		return queueOf(other) == queueOf(e) && other.first <= n.w
	}) {
		d.unready(p, queueOf(e))
	}
}

// requeued does so for an entry whose claim ended, if it is queued again.
func (n *naive) requeued(p *naivePool, e *naiveEntry) {
	if e.queued() {
		n.refresh(p, e)
	}
}

// unready takes a queue out of service.
func (d *naiveDemand) unready(p *naivePool, q naiveQueue) {
	d.ready = deleteIf(d.ready, func(r naiveReady) bool { return r.naiveQueue == q })
	d.prune(p)
}

// prune takes the routes out of the ring of which no queue may be served.
func (d *naiveDemand) prune(p *naivePool) {
	d.ring = deleteIf(d.ring, func(route string) bool {
		return !slices.ContainsFunc(d.ready, func(r naiveReady) bool {
			return r.route == route && !p.groupPaused(d.tenant.id, r.group)
		})
	})
}
