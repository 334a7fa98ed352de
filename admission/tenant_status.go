package admission

import (
	"slices"
	"time"
)

// TenantStatus is how one tenant of a pool stands.
type TenantStatus struct {
	// Share is what holds for it, with nothing left open but caps that it does not
	// have.
	Share   TenantPolicy
	Source  ShareSource
	Paused  bool
	Active  int64
	Debt    int64
	Entries int64
	// Buckets are its own, in the order of the policy.
	Buckets []BucketHealth
	// Unknown says that the pool has no word of it: it is shown as it would begin.
	Unknown bool
}

// TenantStatus shows one tenant. One that is not known is shown as it would
// begin.
func (s *State) TenantStatus(at Instant, pool, tenant string) (TenantStatus, *Error) {
	p := s.pools.byName(pool)
	if p == nil {
		return TenantStatus{}, poolNotFound(pool)
	}
	t := p.tenant(tenant)
	if err := t.refused(); err != nil && !t.known() {
		return TenantStatus{}, err
	}
	return t.status(max(at, s.t)), nil
}

// ListTenants shows the first limit tenants after the id that the pool knows or
// has a word of.
func (s *State) ListTenants(at Instant, pool, after string, limit int) ([]TenantStatus, *Error) {
	p := s.pools.byName(pool)
	if p == nil {
		return nil, poolNotFound(pool)
	}
	var list []TenantStatus
	for id, ok := s.tenantAfter(p, after); ok && len(list) < limit; id, ok = s.tenantAfter(p, id) {
		list = append(list, p.tenant(id).status(max(at, s.t)))
	}
	return list, nil
}

// tenantAfter returns the first id after the given one that is known, overridden
// or put.
func (s *State) tenantAfter(p *pool, id string) (next string, ok bool) {
	from := id + "\x00"
	found := func(candidate string) bool {
		if !ok || candidate < next {
			next, ok = candidate, true
		}
		return false
	}
	p.named.Ascend(&tenant{id: from}, func(t *tenant) bool { return found(t.id) })
	s.puts.Ascend(&putRow{pool: p, tenant: TenantPolicy{ID: from}}, func(r *putRow) bool {
		return r.pool == p && found(r.tenant.ID)
	})
	if i, _ := slices.BinarySearch(p.overridden, from); i < len(p.overridden) {
		found(p.overridden[i])
	}
	return next, ok
}

func (t *tenant) status(now Instant) TenantStatus {
	sh := t.share
	st := TenantStatus{
		Share:  TenantPolicy{ID: t.id, Weight: sh.weight, PreferredActive: &sh.preferred, MaxActive: sh.maxActive, Lane: sh.lane.name},
		Source: sh.source, Paused: t.paused(), Active: t.active, Debt: t.debt(), Entries: t.entries,
		Unknown: !t.known() && t.strange(),
	}
	for rank, limit := range sh.laneMax {
		if limit > 0 {
			if st.Share.LaneMaxActive == nil {
				st.Share.LaneMaxActive = map[string]int64{}
			}
			st.Share.LaneMaxActive[t.pool.lanes[rank].name] = limit
		}
	}
	if len(sh.buckets) > 0 {
		st.Share.Buckets = make(map[string]BucketOverride, len(sh.buckets))
	}
	for i, spec := range sh.buckets {
		st.Share.Buckets[spec.name] = spec.numbers()
		state := t.bucket(i, now)
		st.Buckets = append(st.Buckets, state.health(spec, now))
	}
	return st
}

// debt is by how much the tenant's permits exceed its cap.
func (t *tenant) debt() int64 {
	if t.share.maxActive == 0 {
		return 0
	}
	return max(t.active-t.share.maxActive, 0)
}

func (b *bucketSpec) numbers() BucketOverride {
	return BucketOverride{Capacity: b.capacity, Refill: b.refill, Period: b.period, Blocked: b.blocked}
}

// health shows a settled bucket.
func (b *bucketState) health(spec *bucketSpec, now Instant) BucketHealth {
	h := BucketHealth{
		Bucket: spec.name, Level: spec.capacity - b.used, Capacity: spec.capacity, Lent: b.lent,
		Paused: spec.blocked || b.paused(now), PausedFor: Absent,
	}
	if !b.pausedByHand && now < b.pausedUntil {
		h.PausedFor = ceilMillis(time.Duration(b.pausedUntil - now))
	}
	return h
}
