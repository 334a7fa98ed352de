package admission

// What sidecars hold of a bucket is counted in its state, and follows from the permits
// that are shares.

// lend counts a share among what its buckets lent.
func (s *State) lend(p *permitRow) {
	s.eachLent(p, func(_ *bucketSpec, b *bucketState) { b.lent += p.cost })
}

// lapse ends the lending of a share: its tokens refill from now on like all that were
// spent.
func (s *State) lapse(p *permitRow) {
	s.eachLent(p, func(spec *bucketSpec, b *bucketState) {
		b.settle(spec, s.t)
		b.lapse(spec, p.cost)
	})
}

// eachLent calls fn for every bucket of which the permit, if it is a share, holds tokens.
func (s *State) eachLent(p *permitRow, fn func(*bucketSpec, *bucketState)) {
	if p.wanted == 0 {
		return
	}
	s.eachCharged(p, func(spec *bucketSpec, b *bucketState, perPermit bool) {
		if !perPermit {
			fn(spec, b)
		}
	})
}

// lends says whether the share holds tokens of the bucket.
func (b *bucketSpec) lends(p *permitRow) bool {
	perPermit, ok := b.charged(p)
	return ok && !perPermit
}

// recountLent counts anew what the pool's buckets lent, after they changed: one that has
// forgotten which permits it charged has lent nothing to them any more.
func (s *State) recountLent(p *pool) {
	if p.shares.Len() == 0 {
		return
	}
	for i := range p.buckets {
		p.buckets[i].lent = 0
	}
	p.shares.Scan(func(e expiry) bool {
		t := s.permit(e.permit).demand.tenant
		row := s.writeTenant(t)
		for i := range row.buckets {
			row.buckets[i].lent = 0
		}
		return true
	})
	p.shares.Scan(func(e expiry) bool {
		s.lend(s.permit(e.permit))
		return true
	})
}

// firstShare returns when, on the lease clock, the first share of the bucket ends, or
// never where there is none.
func (s *State) firstShare(t *tenant, spec *bucketSpec) Instant {
	shares, first := t.pool.shares, never
	if spec.scope == ScopeTenant {
		shares = t.shares
	}
	if shares != nil {
		shares.Scan(func(e expiry) bool {
			if spec.lends(s.permit(e.permit)) {
				first = e.at
			}
			return first == never
		})
	}
	return first
}

func (t *tenant) addShare(e expiry) {
	t.pool.shares.Set(e)
	if t.shares == nil {
		t.shares = newTree(expiryLess)
	}
	t.shares.Set(e)
}

func (t *tenant) removeShare(e expiry) {
	t.pool.shares.Delete(e)
	if t.shares.Delete(e); t.shares.Len() == 0 {
		t.shares = nil
	}
}
