package admission

// A glance is an Acquire that would not wait, of which an earlier try is in line. It
// stands there for this one entry, and is told what came of it.
type glance struct {
	result *AcquireResult
	waiter *waiter
	// detached is until when the place was kept without anybody listening, or 0.
	detached Instant
}

// lookIn lets a waiter be served in this entry, though nobody may listen for it.
func (s *State) lookIn(w *waiter, r *AcquireResult) {
	s.glances = append(s.glances, glance{r, w, w.row.detached})
	if !w.attached() {
		s.attach(w, 0)
	}
}

// endGlances answers them once everything is given out.
func (s *State) endGlances() {
	if len(s.glances) == 0 {
		return
	}
	for _, g := range s.glances {
		if g.waiter.end == nil {
			g.result.Decision = s.refusalOf(g.waiter)
			continue
		}
		g.result.Decision = g.waiter.end.Decision
		g.result.Decision.Replayed = g.result.Decision.Shed == nil
	}
	for _, g := range s.glances {
		if g.detached != 0 && g.waiter.end == nil {
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
