package admission

import "math"

// The first in the order that lacks nothing but the pool's tokens reserves them:
// whatever comes after it would take them too, and waits until it is served, ends
// or goes. So a big request is not passed by small ones for ever. Only waiters
// keep a reservation from one log entry to the next; it is not stored, since it
// follows from who waits.

// reservation returns who reserves the pool's tokens at that moment, if anybody
// does.
func (s *State) reservation(p *pool, now Instant) (holder position, ok bool) {
	first, waits := p.firstWaiter()
	if !waits || s.outdated(first) {
		return first, false
	}
	return first, !first.demand.lane.tokensFree(s.costOf(first), now)
}

// outdated says whether a waiter has just ended, or belongs elsewhere since an operation
// of this entry: who comes first is known again once all are seated anew.
func (s *State) outdated(p position) bool {
	if s.headWaiter(p.demand, p.source) == nil {
		return true
	}
	if !p.demand.unsettled {
		return false
	}
	to, _ := s.classify(p.demand, p.source)
	return to != p.demand.row.seats[p.source].seat
}

// firstWaiter returns the first waiter of the pool that lacks at most its tokens.
func (p *pool) firstWaiter() (first position, ok bool) {
	if p.waiting == 0 {
		return first, false
	}
	for _, l := range p.lanes {
		for k := range classCount {
			if first, ok := l.firstWaiter(k); ok {
				return first, true
			}
		}
	}
	return first, false
}

// firstWaiter returns the first waiter of the class that lacks at most tokens of
// the pool.
func (l *lane) firstWaiter(k classKind) (first position, ok bool) {
	if l.yielding {
		return first, false
	}
	c := &l.classes[k]
	first, ok = c.orders[fromRateWaiters].Min()
	if p, any := c.orders[fromWaiters].Min(); any && l.slotFor(k) && (!ok || positionLess(p, first)) {
		return p, true
	}
	return first, ok
}

// costOf returns the cost of what stands at a position.
func (s *State) costOf(p position) int64 {
	if w := s.headWaiter(p.demand, p.source); w != nil {
		return w.cost
	}
	return 1
}

// passed says whether something new of the demand's would come after a position.
func (d *demand) passed(p position) bool {
	return positionAfter(position{tag: d.tagIn(d.kind()), seq: math.MaxUint64, demand: d}, p)
}

// goesAfter says whether what the demand needs comes after who stands at a
// position, which may be a waiter of its own.
func (s *State) goesAfter(d *demand, n need, p position) bool {
	if d != p.demand {
		return d.passed(p)
	}
	first := s.headWaiter(d, p.source) // nil where it has just ended
	return first != nil && n.seq > first.seq
}

// positionAfter says whether a position comes after another of its pool.
func positionAfter(p, o position) bool {
	if p.demand.lane != o.demand.lane {
		return p.demand.lane.rank > o.demand.lane.rank
	}
	if k, of := p.demand.kind(), o.demand.kind(); k != of {
		return k > of
	}
	return positionLess(o, p)
}

// lacks says whether the position's cost is more than the bucket gives to its
// lane at that moment.
func (s *State) lacks(p position, bucket int, now Instant) Reason {
	b := &p.demand.tenant.pool.buckets[bucket]
	state := b.settled(b.bucketSpec, now)
	return state.refusal(b.bucketSpec, b.charge(s.costOf(p)), p.demand.lane.leaveTokens[bucket], PoolRate, now)
}
