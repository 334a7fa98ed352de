package admission

import "slices"

// A glance is an Acquire that would not wait, of which an earlier try is in line. It
// stands there for this one entry, and is told what came of it.
type glance struct {
	waiter *waiter
	// detached is until when the place was kept without anybody listening.
	detached Instant
}

// lookIn lets a waiter be served in this entry, though nobody may listen for it.
func (s *State) lookIn(w *waiter) {
	if !w.attached() {
		s.glances = append(s.glances, glance{w, w.row.detached})
		s.attach(w, 0)
	}
}

// endGlances answers them once everything is given out.
func (s *State) endGlances(ops []Op, results []Result) {
	for i, op := range ops {
		if a, ok := op.(*Acquire); ok && a.MaxWait == 0 {
			s.endGlance(results[i].(*AcquireResult))
		}
	}
	for _, g := range s.glances {
		if s.waiter(g.waiter.key) != nil {
			s.setDeadline(g.waiter, g.waiter.row.until, g.detached)
			s.goOut(g.waiter)
		}
	}
	clear(s.glances)
	s.glances = s.glances[:0]
	s.settleSeats()
}

// foresee replaces the place in line of an Acquire that would not wait by what it would
// be told at that moment: why it is refused, or nothing if it would be granted.
func (s *State) foresee(r *AcquireResult, op *Acquire, at Instant) {
	w := s.waiter(r.Decision.Waiter)
	if w == nil || op.MaxWait > 0 {
		return
	}
	r.Decision = Decision{}
	if x := s.examine(w.demand, w.need(), at); len(x.blocking) > 0 {
		r.Decision.Shed = x.shed()
	}
}

func (s *State) endGlance(r *AcquireResult) {
	key := r.Decision.Waiter
	if key == (WaiterKey{}) {
		return
	}
	if w := s.waiter(key); w != nil {
		r.Decision = s.refusalOf(w)
		return
	}
	i := slices.IndexFunc(s.waitEnds, func(end WaitEnd) bool { return end.Waiter == key })
	r.Decision = s.waitEnds[i].Result.Decision
	r.Decision.Replayed = r.Decision.Shed == nil
}
