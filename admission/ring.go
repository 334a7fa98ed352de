package admission

// ring is a demand's ready routes, which take turns: a circular list through the
// routes themselves.
type ring struct{ front *route }

func (g *ring) empty() bool { return g.front == nil }

func (g *ring) pushBack(r *route) {
	if g.front == nil {
		g.front, r.next, r.prev = r, r, r
		return
	}
	last := g.front.prev
	last.next, r.prev = r, last
	r.next, g.front.prev = g.front, r
}

func (g *ring) remove(r *route) {
	if r.next == r {
		g.front = nil
	} else {
		r.prev.next, r.next.prev = r.next, r.prev
		if g.front == r {
			g.front = r.next
		}
	}
	r.next, r.prev = nil, nil
}
