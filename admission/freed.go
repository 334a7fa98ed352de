package admission

// What needs a release is freed at the latest when a permit expires that holds it.

// expiryLook bounds the permits among which the one that frees a limit is looked
// for.
const expiryLook = 64

// earliestExpiry returns when, on the lease clock, the first of the permits expires
// that hold a blocking limit. It may be early where many others expire before.
func (x *examination) earliestExpiry() (at Instant, ok bool) {
	at = never
	for _, l := range x.blocking {
		if l.Holders == 0 {
			continue
		}
		if first, any := x.firstHolder(l); any && first < at {
			at, ok = first, true
		}
	}
	return at, ok
}

// firstHolder returns when the first of the permits expires that hold the limit,
// or the last one that was looked at.
func (x *examination) firstHolder(l Limit) (at Instant, ok bool) {
	if l.Name == "max_active" && l.Scope == ScopeTenant {
		first, any := x.state.firstHolding(x.demand.tenant)
		return first.at, any
	}
	looked := 0
	x.pool.expiries.Scan(func(e expiry) bool {
		looked++
		at, ok = e.at, true
		return looked < expiryLook && !x.heldBy(l, x.state.permit(e.permit))
	})
	return at, ok
}

// heldBy says whether the permit is one of those that hold the limit.
func (x *examination) heldBy(l Limit, p *permitRow) bool {
	own := p.demand.tenant == x.demand.tenant
	switch l.Name {
	case "lock_key":
		return own && p.lock == x.need.lock
	case "dedupe_key":
		return own && p.job == x.need.job
	case "lane_max_active":
		return own && !p.uncounted && x.demand.tenant.countsLane(p.demand.lane, l.Capacity)
	case "leave_slots":
		return !p.uncounted && x.pool.leaves(p.demand.lane, l.Reserve)
	}
	return !p.uncounted && (own || l.Scope != ScopeTenant)
}

// leaves says whether permits of the lane count in a reserve of so many slots.
func (p *pool) leaves(of *lane, reserve int64) bool {
	for _, above := range p.lanes[:of.rank+1] {
		if above.leaveSlots == reserve {
			return true
		}
	}
	return false
}

// countsLane says whether permits of the lane count in a cap of so many.
func (t *tenant) countsLane(of *lane, limit int64) bool {
	for rank, most := range t.share.laneMax {
		if rank <= of.rank && most == limit {
			return true
		}
	}
	return false
}

// firstHolding returns the tenant's permit that expires first.
func (s *State) firstHolding(t *tenant) (found expiry, ok bool) {
	s.holdings.Ascend(expiry{tenant: t.num, at: -1 << 63}, func(e expiry) bool {
		found, ok = e, e.tenant == t.num
		return false
	})
	return found, ok
}
