package admission

// share is what a tenant gets.
type share struct {
	source    ShareSource
	weight    int64
	preferred int64
	maxActive int64 // 0: no cap
	lane      *lane
	laneMax   []int64       // by rank, 0: no cap; nil if none has one
	buckets   []*bucketSpec // for each of pool.fairUse
}

// ShareSource is where a tenant's numbers come from.
type ShareSource uint8

// The sources.
const (
	FromDefault ShareSource = iota + 1
	FromPolicy
	FromPut
)

// shareOf returns what the pool gives the tenant: by its own row, else by the
// policy's override, else by the defaults.
func (p *pool) shareOf(id string) *share {
	if row := p.puts[id]; row != nil {
		return p.share(&row.tenant, p.defaults, FromPut)
	}
	if sh := p.overrides[id]; sh != nil {
		return sh
	}
	return p.defaults
}

// share returns the base with what the tenant has of its own. A part that names
// what the pool does not have, or that does not fit it any more, is left out: rows
// outlive policies.
func (p *pool) share(t *TenantPolicy, base *share, source ShareSource) *share {
	sh := *base
	sh.source = source
	sh.weight = firstOf(t.Weight, base.weight)
	sh.maxActive = firstOf(t.MaxActive, base.maxActive)
	if t.PreferredActive != nil {
		sh.preferred = *t.PreferredActive
	}
	if l := p.lane(t.Lane); l != nil && !l.draining {
		sh.lane = l
	}
	if len(t.LaneMaxActive) > 0 {
		sh.laneMax = make([]int64, len(p.lanes))
		for _, l := range p.lanes {
			sh.laneMax[l.rank] = t.LaneMaxActive[l.name]
		}
	}
	if len(t.Buckets) > 0 {
		sh.buckets = make([]*bucketSpec, len(p.fairUse))
		for i, spec := range p.fairUse {
			sh.buckets[i] = spec
			if o, ok := t.Buckets[spec.name]; ok {
				sh.buckets[i] = spec.override(o)
			}
		}
	}
	return &sh
}

// override returns the bucket with a tenant's own numbers, if they fit it.
func (b *bucketSpec) override(o BucketOverride) *bucketSpec {
	if _, wrong := o.misfit(b.blocked, b.oneShot); wrong != "" {
		return b
	}
	own := *b
	own.blocked = o.Blocked || b.blocked && o.Capacity == 0
	own.capacity = firstOf(o.Capacity, b.capacity)
	own.refill = firstOf(o.Refill, b.refill)
	own.period = firstOf(o.Period, b.period)
	return &own
}

// misfit says what a bucket of that kind expects of a tenant's own numbers instead
// of these, and in which field; nothing if they fit.
func (o BucketOverride) misfit(blocked, oneShot bool) (field, expected string) {
	switch {
	case o.Blocked && (o.Capacity != 0 || o.Refill != 0 || o.Period != 0):
		return ".blocked", "no capacity, refill or period beside it"
	case blocked && !o.Blocked && (o.Capacity == 0 || o.Refill == 0 || o.Period == 0):
		return "", "capacity, refill and period, since the bucket itself is blocked"
	case oneShot && (o.Refill != 0 || o.Period != 0):
		return "", "no refill or period, since the bucket is one_shot"
	}
	return "", ""
}

// laneFull says whether a cap of the tenant's on the lane, or on one above it
// that counts it in, lets it hold no more permits there.
func (t *tenant) laneFull(l *lane) bool {
	for rank := range t.share.laneMax[:min(l.rank+1, len(t.share.laneMax))] {
		if t.laneCapped(rank) {
			return true
		}
	}
	return false
}

// laneCapped says whether the tenant's cap on the lanes from rank down is reached.
func (t *tenant) laneCapped(rank int) bool {
	limit := t.share.laneMax[rank]
	return limit > 0 && t.activeFrom(rank) >= limit
}

// activeFrom counts the tenant's live permits in lanes of at least that rank.
func (t *tenant) activeFrom(rank int) int64 {
	n := int64(0)
	for _, d := range t.demands {
		if d.lane.rank >= rank {
			n += d.active
		}
	}
	return n
}
