package admission

// Health shows the pool of that name, or every pool if it is empty, in the order
// of the policy. A pool that does not exist shows nothing.
func (s *State) Health(at Instant, w Wall, pool string) []PoolHealth {
	var rows []PoolHealth
	for _, p := range s.pools.list {
		if pool == "" || pool == p.name {
			rows = append(rows, s.poolHealth(p, max(at, s.t), w))
		}
	}
	return rows
}

func (s *State) poolHealth(p *pool, at Instant, w Wall) PoolHealth {
	v := s.shedView(p, at, w)
	h := PoolHealth{
		Pool: p.name, MaxActive: p.maxActive, Active: p.active, Waiting: p.waiting, Tenants: int64(p.tenants.len()),
		Entries: p.entries - int64(p.graves.Len()), Dead: int64(p.graves.Len()), Swept: p.swept, Skipped: p.skipped, Held: v.totals(),
		Expired: p.expired, TenantDebt: p.debt, Draining: p.draining,
	}
	if p.maxActive > 0 {
		h.Debt = max(p.active-p.maxActive, 0)
	}
	for _, l := range p.lanes {
		lh := LaneHealth{
			LaneState: l.state(w), Active: l.active, Borrowed: l.borrowed, Waiting: l.waiters, Paused: l.paused, Draining: l.draining,
		}
		if !l.slotFree() {
			lh.ReclaimWait, lh.ReclaimAge = l.open[entitled].slot, oldestAge(l.entitled, w)
		}
		h.Lanes = append(h.Lanes, lh)
	}
	for i := range p.buckets {
		b := &p.buckets[i]
		state := b.settled(b.bucketSpec, at)
		h.Buckets = append(h.Buckets, state.health(b.bucketSpec, at))
	}
	return h
}

// TenantHealth is how one tenant of a pool stands.
type TenantHealth struct {
	Active int64
	// Debt is by how much the tenant's permits exceed its cap.
	Debt int64
	// Levels are the tokens in its own buckets, in the order of the policy.
	Levels []BucketLevel
}

// BucketLevel is how many tokens a bucket holds.
type BucketLevel struct {
	Bucket string
	Level  int64
}

// Tenant shows one tenant of a pool. One that is not known shows full buckets.
func (s *State) Tenant(at Instant, pool, tenant string) TenantHealth {
	p := s.pools.byName(pool)
	if p == nil {
		return TenantHealth{}
	}
	t := p.tenant(tenant)
	h := TenantHealth{Active: t.active, Debt: t.debt()}
	for i, spec := range t.share.buckets {
		h.Levels = append(h.Levels, BucketLevel{spec.name, spec.capacity - t.bucket(i, max(at, s.t)).used})
	}
	return h
}
