package admission

import "time"

// updateYields decides, once for each entry, which lanes take nothing new for the
// sake of those above them. asks are this entry's; those that would wait count as
// waiting.
func (s *State) updateYields(p *pool, asks []*ask) {
	if !p.yields {
		return
	}
	fresh := make([]int64, len(p.lanes))
	for _, a := range asks {
		if a.op.MaxWait > 0 && s.serviceable(a) {
			fresh[a.demand.lane.rank]++
		}
	}
	depth, age := int64(0), time.Duration(0)
	for _, l := range p.lanes {
		if l.yield != nil {
			l.yielding = l.yield.next(l.yielding, depth, age)
		}
		depth += l.depth + fresh[l.rank]
		if first, ok := l.oldest.Min(); ok {
			age = max(age, s.w.Sub(first.since))
		}
	}
}

// yieldStale says whether an entry of that moment would decide otherwise on some
// lane: what was above it may be gone since the last one, or have come.
func (p *pool) yieldStale(w Wall) bool {
	if !p.yields {
		return false
	}
	depth, age := int64(0), time.Duration(0)
	for _, l := range p.lanes {
		if l.yield != nil && l.yield.next(l.yielding, depth, age) != l.yielding {
			return true
		}
		depth += l.depth
		if first, ok := l.oldest.Min(); ok {
			age = max(age, w.Sub(first.since))
		}
	}
	return false
}

// setYield gives the lane its marks. One that has none does not yield.
func (l *lane) setYield(y *YieldPolicy) {
	if l.yield = nil; y == nil {
		l.yielding = false
		return
	}
	marks := y.withDefaults()
	l.yield = &marks
}

// serviceable says whether nothing of the tenant's own holds the ask.
func (s *State) serviceable(a *ask) bool {
	t := a.demand.tenant
	why, _ := t.rateReason(a.op.Cost, s.t)
	live, done := t.duplicate(a.op.DedupeKey, s.t)
	return why == ReasonNone && !t.paused() && !a.demand.lane.paused &&
		(a.op.RateOnly || a.demand.capReason() == ReasonNone) &&
		!live && !done && !t.lockBusy(a.op.LockKey, s.seq+1)
}

// next says whether a lane yields, given whether it did and what waits above:
// between the marks it goes on as it did.
func (y *YieldPolicy) next(yielding bool, depth int64, age time.Duration) bool {
	if y.Above != Absent && depth > y.Above || y.AboveAge > 0 && age > y.AboveAge {
		return true
	}
	low := (y.Above == Absent || depth <= y.Resume) && (y.AboveAge == 0 || age <= y.ResumeAge)
	return yielding && !low
}
