package simulate

import (
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

// contest is those who contend for what a lane gives: eligible, with demand, and
// of the same class (0 entitled, 1 borrowing). Among them grants are to go by
// weight.
type contest struct {
	members []*want
	weight  int64
	// perWeight is what one unit of weight was due so far: the sum of 1/weight
	// over the grants made while two or more contended.
	perWeight float64
	// grants counts them.
	grants int64
	// pairs is nil unless the bound between pairs is checked.
	pairs *pairs
}

// service is what a want got while others contended, and what was due to it by
// weight.
type service struct {
	got   int64
	due   float64
	since float64 // contest.perWeight when it entered
	place int     // in contest.members
	// grants counts those of its contests while it contended, entered
	// how many the present one had made before.
	grants, entered int64
}

// contend moves the want to a contest, or out of all.
func (w *want) contend(to *contest) {
	if w.in == to {
		return
	}
	if w.in != nil {
		w.in.leave(w)
	}
	if w.in = to; to != nil {
		to.enter(w)
	}
	w.lane.ledger.run.owe(w)
}

func (c *contest) enter(w *want) {
	if c.pairs != nil {
		c.pairs.enter(c.members, w)
	}
	w.service.since, w.service.entered, w.service.place = c.perWeight, c.grants, len(c.members)
	c.members = append(c.members, w)
	c.weight += w.tenant.weight
}

func (c *contest) leave(w *want) {
	w.service.due += float64(w.tenant.weight) * (c.perWeight - w.service.since)
	w.service.grants += c.grants - w.service.entered
	last := c.members[len(c.members)-1]
	c.members[w.service.place], last.service.place = last, w.service.place
	c.members[len(c.members)-1] = nil
	c.members = c.members[:len(c.members)-1]
	c.weight -= w.tenant.weight
}

// book books a grant to a member.
func (c *contest) book(w *want) {
	if len(c.members) < 2 {
		return
	}
	c.perWeight += 1 / float64(c.weight)
	c.grants++
	w.service.got++
	if c.pairs != nil {
		c.pairs.book(c.members, w)
	}
}

// pairs checks that over any interval in which two contend, their grants by
// weight differ by at most one unit of each: |S_i/w_i - S_j/w_j| <= 1/w_i + 1/w_j.
// It counts in whole numbers, S_i*w_j - S_j*w_i.
type pairs struct {
	run *run
	// rows[i][j] is the pair of the tenants numbered i and j, j < i.
	rows [][]pair
	// checked counts what was compared; worst is the greatest part of the bound
	// that was used.
	checked int64
	worst   float64
	breach  string
}

// pair is the course of one difference since both contend.
type pair struct{ at, least, most int64 }

// cell returns the pair, and whether a is the one whose grants raise it.
func (p *pairs) cell(a, b *want) (*pair, bool) {
	i, j := a.tenant.num, b.tenant.num
	up := i > j
	if !up {
		i, j = j, i
	}
	for len(p.rows) <= i {
		p.rows = append(p.rows, make([]pair, len(p.rows)))
	}
	return &p.rows[i][j], up
}

func (p *pairs) enter(members []*want, w *want) {
	for _, other := range members {
		cell, _ := p.cell(w, other)
		*cell = pair{}
	}
}

func (p *pairs) book(members []*want, w *want) {
	for _, other := range members {
		if other == w {
			continue
		}
		cell, up := p.cell(w, other)
		if up {
			cell.at += other.tenant.weight
		} else {
			cell.at -= other.tenant.weight
		}
		cell.least, cell.most = min(cell.least, cell.at), max(cell.most, cell.at)
		p.compare(w, other, cell.most-cell.least)
	}
}

func (p *pairs) compare(w, other *want, apart int64) {
	p.checked++
	bound := w.tenant.weight + other.tenant.weight
	p.worst = max(p.worst, float64(apart)/float64(bound))
	if apart > bound && p.breach == "" {
		p.breach = fmt.Sprintf("%s and %s were %.2f of the bound apart at %s", w.tenant.id, other.tenant.id,
			float64(apart)/float64(bound), short(p.run.now))
	}
}

func short(at admission.Instant) string { return time.Duration(at).String() }
