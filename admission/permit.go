package admission

import "time"

// permitKey is where in the log a permit was granted.
type permitKey struct {
	index    uint64
	position uint32
}

func (k permitKey) less(o permitKey) bool {
	if k.index != o.index {
		return k.index < o.index
	}
	return k.position < o.position
}

func (t Token) key() permitKey { return permitKey{t.Index, t.Position} }

// permitRow is a live permit.
type permitRow struct {
	version   uint32
	cancelled bool
	// buckets is the last id of the buckets that charged the permit.
	buckets uint32
	token   Token
	fence   int64
	demand  *demand
	granted Instant
	// expires is on the lease clock.
	expires Instant
	ttl     time.Duration
	cost    int64
	// entry is the key of the claimed entry, or empty, and letter which of its
	// occurrences.
	entry  string
	letter uint64
	worker string
	// node is whose part of the tenant's permits it counts in, or empty.
	node string
	// lock and job are the keys that it holds, or empty.
	lock, job string
	// uncounted says that it holds no slot.
	uncounted bool
	borrowed  bool
	// batch says that its entries are in parts of it.
	batch bool
	// wanted makes it a share of the sidecar that worker names: the tokens it asked for,
	// of which it holds cost. 0 for all others.
	wanted int64
}

// permitItem keys a permit in State.permits.
type permitItem struct {
	permitKey
	row *permitRow
}

func permitLess(a, b permitItem) bool { return a.less(b.permitKey) }

// expiry is a permit's key in pool.expiries; of a share in pool.shares and
// tenant.shares; and if it holds a slot in lane.slots and, under its demand, in
// State.holdings.
type expiry struct {
	demand uint64
	at     Instant
	permit permitKey
}

func expiryLess(a, b expiry) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.permit.less(b.permit)
}

func holdingLess(a, b expiry) bool {
	if a.demand != b.demand {
		return a.demand < b.demand
	}
	return expiryLess(a, b)
}

func (p *permitRow) expiry() expiry {
	return expiry{p.demand.num, p.expires, p.token.key()}
}

// lease returns the lease clock: cluster time less the gaps in which nobody led,
// so that no holder pays for time in which it could not renew.
func (s *State) lease() Instant { return s.t.Add(-s.leaseOffset) }

// permit returns the live permit, or nil.
func (s *State) permit(k permitKey) *permitRow {
	found, _ := s.permits.Get(permitItem{permitKey: k})
	return found.row
}

// writePermit returns the permit for writing.
func (s *State) writePermit(p *permitRow) *permitRow {
	if p.version == s.version {
		return p
	}
	row := *p
	row.version = s.version
	s.permits.Set(permitItem{row.token.key(), &row})
	return &row
}

// order is what a grant is to be like.
type order struct {
	cost      int64
	ttl       time.Duration
	nonce     uint64
	worker    string
	entry     string
	letter    uint64
	node      string
	lock, job string
	// slotless says that it takes tokens only; there is a permit to settle by only
	// if settle says so.
	slotless, settle bool
}

// grant charges everything and creates the permit. The demand must not be in an
// order, and whatever it consults must have been tested.
func (s *State) grant(d *demand, o order) *permitRow {
	s.registerDemand(d)
	kind := d.kind()
	s.charge(d, kind)
	s.takeTokens(d.tenant, o.cost)
	p := s.newPermit(d, o)
	p.buckets, p.borrowed = d.tenant.pool.bucketIDs, kind == borrowing
	if p.uncounted = o.slotless; o.slotless && !o.settle {
		p.token = Token{}
		s.noteIdle(d.tenant)
		return p
	}
	s.hold(p)
	return p
}

// newPermit makes a permit that nothing was charged for.
func (s *State) newPermit(d *demand, o order) *permitRow {
	s.grants++
	s.positions++
	ttl := firstOf(o.ttl, d.tenant.pool.permitTTL)
	return &permitRow{
		version: s.version,
		token:   Token{Epoch: s.epoch, Index: s.index, Position: s.positions, Nonce: o.nonce},
		fence:   int64(s.epoch)<<fenceBits | s.grants,
		demand:  d,
		granted: s.t,
		expires: s.lease().Add(ttl),
		ttl:     ttl, cost: o.cost, entry: o.entry, letter: o.letter, worker: o.worker, node: o.node, lock: o.lock, job: o.job,
	}
}

// fenceBits is where a fence's epoch begins.
const fenceBits = 48

// hold enters a live permit into the state. What is in use is counted here and in
// drop, nowhere else.
func (s *State) hold(p *permitRow) {
	s.permits.Set(permitItem{p.token.key(), p})
	s.addExpiry(p)
	s.lend(p)
	p.count(1)
	s.countOnNode(p, 1)
	t := p.demand.tenant
	s.takeLock(t, p.lock)
	s.takeJob(p)
	s.setIdle(t, 0, false)
}

// drop takes a permit out of the state, with its job done or not.
func (s *State) drop(p *permitRow, done bool) {
	s.permits.Delete(permitItem{permitKey: p.token.key()})
	s.removeExpiry(p)
	p.count(-1)
	s.countOnNode(p, -1)
	t := p.demand.tenant
	s.freeLock(t, p.lock)
	s.freeJob(t, p.job, done)
	s.unsettleTenant(t)
	s.noteIdle(t)
}

func (p *permitRow) count(n int64) {
	d := p.demand
	d.lane.permits += n
	d.tenant.permits += n
	if p.uncounted {
		return
	}
	if p.borrowed {
		d.lane.borrowed += n
	}
	debt := d.tenant.debt()
	d.active += n
	d.lane.active += n
	d.tenant.active += n
	d.tenant.pool.active += n
	d.tenant.pool.debt += d.tenant.debt() - debt
}

func (s *State) addExpiry(p *permitRow) {
	p.demand.tenant.pool.expiries.Set(p.expiry())
	if l := s.lockFor(p.demand.tenant, p.lock); l != nil {
		l.permits.Set(p.expiry())
	}
	if !p.uncounted {
		p.demand.lane.slots.Set(p.expiry())
		s.holdings.Set(p.expiry())
	}
	if p.wanted > 0 {
		p.demand.tenant.addShare(p.expiry())
	}
}

func (s *State) removeExpiry(p *permitRow) {
	p.demand.tenant.pool.expiries.Delete(p.expiry())
	if l := s.lockFor(p.demand.tenant, p.lock); l != nil {
		l.permits.Delete(p.expiry())
	}
	p.demand.lane.slots.Delete(p.expiry())
	s.holdings.Delete(p.expiry())
	if p.wanted > 0 {
		p.demand.tenant.removeShare(p.expiry())
	}
}

// takeTokens charges every bucket of the pool and of the tenant.
func (s *State) takeTokens(t *tenant, cost int64) {
	for i := range t.pool.buckets {
		b := &t.pool.buckets[i]
		b.settle(b.bucketSpec, s.t)
		b.take(b.charge(cost))
	}
	if len(t.share.buckets) == 0 {
		return
	}
	row := s.writeTenant(t)
	for i, spec := range t.share.buckets {
		row.buckets[i].settle(spec, s.t)
		row.buckets[i].take(spec.charge(cost))
	}
}

// view returns the permit as its holder sees it.
func (s *State) view(p *permitRow, now Instant) Permit {
	v := Permit{
		Token: p.token, Fence: p.fence, State: PermitLive,
		ExpiresIn: max(p.expires.Sub(now.Add(-s.leaseOffset)), 0),
		Pool:      p.demand.tenant.pool.name, Tenant: p.demand.tenant.id, Lane: p.demand.lane.name,
	}
	switch {
	case p.token == Token{}:
		v.State, v.ExpiresIn = PermitSpent, 0
	case p.cancelled:
		v.State = PermitCancelled
	}
	return v
}

// viewOf returns what a claim holds as its holder sees it.
func (s *State) viewOf(h holding, now Instant) Permit {
	v := s.view(h.permit, now)
	if h.part != nil {
		v.Token, v.Fence = h.part.token, h.part.fence
		if h.part.cancelled {
			v.State = PermitCancelled
		}
	}
	return v
}
