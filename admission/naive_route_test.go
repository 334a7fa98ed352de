package admission_test

import (
	"cmp"
	"slices"

	"github.com/admitd/admit/admission"
)

// byAge orders entries as they are served within a route.
func byAge(a, b *naiveEntry) int {
	return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.seq, b.seq))
}

// ripeOf are the entries of a demand that may be claimed at a time, oldest first.
func (p *naivePool) ripeOf(d *naiveDemand, w admission.Wall) []*naiveEntry {
	return deleteIf(p.allRipe(d, w), func(e *naiveEntry) bool { return p.groupPaused(e.tenant, e.spec.Group) })
}

// allRipe are the same, those of paused groups among them.
func (p *naivePool) allRipe(d *naiveDemand, w admission.Wall) []*naiveEntry {
	ripe := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.tenant != d.tenant.id || e.lane != d.lane || !e.ripe(w)
	})
	slices.SortFunc(ripe, byAge)
	return ripe
}

// head is the entry of a demand that goes next: the oldest of the route whose
// turn it is. It is nil if there is none.
func (p *naivePool) head(d *naiveDemand, w admission.Wall) *naiveEntry {
	for _, route := range d.ring {
		for _, e := range p.ripeOf(d, w) {
			if e.spec.Route == route {
				return e
			}
		}
	}
	return nil
}

// promote lets routes take turns that have something due: the longest due first,
// and not too many in one entry.
func (n *naive) promote() {
	type route struct {
		d    *naiveDemand
		head *naiveEntry
	}
	var fresh []route
	for _, p := range n.pools {
		for _, t := range p.tenants {
			for _, d := range t.demands {
				d.prune(p, n.w)
				seen := slices.Clone(d.ring)
				for _, e := range p.dueOf(d, n.w) {
					if !slices.Contains(d.ready, queueOf(e)) {
						d.ready = append(d.ready, queueOf(e))
					}
					if !slices.Contains(seen, e.spec.Route) && !p.groupPaused(e.tenant, e.spec.Group) {
						seen = append(seen, e.spec.Route)
						fresh = append(fresh, route{d, e})
					}
				}
			}
		}
	}
	slices.SortFunc(fresh, func(a, b route) int { return byDue(a.head, b.head) })
	for _, r := range fresh[:min(len(fresh), naiveSweep)] {
		r.d.ring = append(r.d.ring, r.head.spec.Route)
	}
	for _, p := range n.pools {
		for _, e := range p.entries {
			e.waits = e.waits && e.due > n.w
		}
	}
}

// dueOf are the queued entries of a demand that are due, by when they came due.
func (p *naivePool) dueOf(d *naiveDemand, w admission.Wall) []*naiveEntry {
	due := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.tenant != d.tenant.id || e.lane != d.lane || !e.queued() || e.due > w
	})
	slices.SortFunc(due, byDue)
	return due
}

// byDue orders entries by when they came due, which for those that came back due
// is their place in line.
func byDue(a, b *naiveEntry) int {
	due := func(e *naiveEntry) admission.Wall {
		if e.waits {
			return e.due
		}
		return e.first
	}
	return cmp.Or(cmp.Compare(due(a), due(b)), cmp.Compare(a.seq, b.seq))
}

// naiveQueue is the entries of one group in a route.
type naiveQueue struct{ route, group string }

func queueOf(e *naiveEntry) naiveQueue { return naiveQueue{e.spec.Route, e.spec.Group} }

// prune takes the routes out of the ring that have nothing due but what came due
// in the present entry in another group, or is of a paused one.
func (d *naiveDemand) prune(p *naivePool, w admission.Wall) {
	ripe := p.allRipe(d, w)
	d.ready = deleteIf(d.ready, func(q naiveQueue) bool {
		return !slices.ContainsFunc(ripe, func(e *naiveEntry) bool { return queueOf(e) == q })
	})
	d.ring = deleteIf(d.ring, func(route string) bool {
		return !slices.ContainsFunc(d.ready, func(q naiveQueue) bool {
			return q.route == route && !p.groupPaused(d.tenant.id, q.group)
		})
	})
}
