package admission

// What needs a release is freed at the latest when a permit expires that holds it.

// held consults a limit that permits hold, the first of which ends at that time of
// the lease clock, or never where there is none.
func (x *examination) held(why Reason, l Limit, ends Instant) {
	x.consult(why, l, never)
	if why != ReasonNone {
		x.expires = min(x.expires, ends)
	}
}

// firstExpiry returns when the first of the permits ends that hold a slot in the
// lanes from rank down.
func (p *pool) firstExpiry(rank int) Instant {
	at := never
	for _, l := range p.lanes[rank:] {
		if first, any := l.slots.Min(); any {
			at = min(at, first.at)
		}
	}
	return at
}

// firstHolding is the same of one tenant.
func (s *State) firstHolding(t *tenant, rank int) Instant {
	at := never
	for _, d := range t.demands {
		if d.lane.rank < rank {
			continue
		}
		s.holdings.Ascend(expiry{demand: d.num, at: -1 << 63}, func(e expiry) bool {
			if e.demand == d.num {
				at = min(at, e.at)
			}
			return false
		})
	}
	return at
}

// lockEnds returns when the first of the permits ends that hold the tenant's key.
func (t *tenant) lockEnds(key string) Instant {
	if l := t.pool.locks.get(lockName{t, key}); l != nil {
		if first, any := l.permits.Min(); any {
			return first.at
		}
	}
	return never
}

// jobEnds returns when the permit ends that does the tenant's job.
func (s *State) jobEnds(t *tenant, key string) Instant {
	if j := t.pool.jobs.get(jobName{t.id, key}); j != nil && j.live {
		return s.permit(j.permit).expires
	}
	return never
}
