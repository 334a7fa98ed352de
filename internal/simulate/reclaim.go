package simulate

import "fmt"

// claim is a unit that an entitled want waits for. It is owed within a number of
// grants of its lane, whatever the clock: for every other entitled one at most
// ceil(w_j/w) + 1 go before it.
type claim struct {
	bound int64
	gone  int64
	// rivals are those counted in the bound.
	rivals map[*want]bool
}

// promises checks what is promised to the entitled, where that is expected.
type promises struct {
	checked bool
	// units were owed and given; worst is the most that went before one, and
	// worstBound what could have.
	units             int64
	worst, worstBound int64
	late              string
	// passed tells of a grant that the entitled should have had.
	passed string
	// borrowed counts grants beyond what was preferred.
	borrowed int64
}

// owe keeps the claim of a want that came to be entitled or is so no longer.
func (r *run) owe(w *want) {
	if !r.promises.checked {
		return
	}
	entitled := &w.lane.contests[0]
	if w.in != entitled {
		w.claim = nil
		return
	}
	w.claim = &claim{rivals: map[*want]bool{}}
	for _, other := range entitled.members {
		if other != w {
			w.claim.add(w, other)
			if other.claim != nil {
				other.claim.add(other, w)
			}
		}
	}
}

func (c *claim) add(w, rival *want) {
	if !c.rivals[rival] {
		c.rivals[rival] = true
		c.bound += (rival.tenant.weight+w.tenant.weight-1)/w.tenant.weight + 1
	}
}

// present says whether somebody could take the want's demand when g was granted:
// those in line always, due work only by a poll.
func (w *want) present(g *grant) bool {
	return w.waiting > 0 || w.due > 0 && g.call != nil && g.call.takes(w.lane.name)
}

// spend books a grant to the claims of its lane, before the ledger has it.
func (r *run) spend(g *grant) {
	if !r.promises.checked {
		return
	}
	w := g.want
	for _, other := range w.lane.contests[0].members {
		if other != w && other.claim != nil && other.present(g) {
			other.claim.gone++
		}
	}
	if w.claim == nil {
		return
	}
	p := &r.promises
	p.units++
	if w.claim.gone > p.worst || p.units == 1 {
		p.worst, p.worstBound = w.claim.gone, w.claim.bound
	}
	if w.claim.gone > w.claim.bound && p.late == "" {
		p.late = fmt.Sprintf("%s waited for %d grants at %s, at most %d were to go before", w.tenant.id, w.claim.gone, short(r.now), w.claim.bound)
	}
	w.claim = nil
}

// reclaimed checks an entry when all of its grants are booked: who is entitled
// and still has demand was not to be passed by a borrowed grant of the lane, nor
// by any of a lane below.
func (r *run) reclaimed(l *ledger, grants []*grant) {
	if !r.promises.checked {
		return
	}
	for _, g := range grants {
		if g.want.lane.ledger != l {
			continue
		}
		if g.borrowed {
			r.promises.borrowed++
		}
		for _, ln := range l.lanes[:g.want.lane.rank+1] {
			if ln.yielding || ln == g.want.lane && !g.borrowed {
				continue
			}
			r.passes(g, ln)
		}
	}
}

func (r *run) passes(g *grant, ln *lane) {
	for _, w := range ln.contests[0].members {
		if w.present(g) && r.promises.passed == "" {
			r.promises.passed = fmt.Sprintf("%s got a permit at %s while %s, entitled, had demand in lane %s",
				g.want.tenant.id, short(r.now), w.tenant.id, ln.name)
		}
	}
}
