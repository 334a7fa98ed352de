package admission

import (
	"hash/fnv"
	"math"
)

// tenant is a unit of fairness in a pool. Its identity is stable while it is
// known; what is replicated of it stands in row.
type tenant struct {
	pool *pool
	id   string
	num  uint64
	hash uint32
	row  *tenantRow // nil while only looked at, see pool.tenant

	share   *share
	demands []*demand // in the order of their lanes' names
	active  int64
	permits int64 // those that hold no slot included
	entries int64 // dead ones included
	waiting int64 // Acquires in line
	reports int64 // live reports of demand
	wanting int   // demands with a seat
	// pausedGroups counts its rows in State.pausedGroups.
	pausedGroups int
}

// tenantRow is what is replicated of a tenant.
type tenantRow struct {
	version uint32
	*tenant
	paused  bool
	buckets []bucketState // for each of pool.fairUse
	// idleAt is its key in pool.idle, or 0 when it is not there.
	idleAt Instant
}

func tenantLess(a, b *tenantRow) bool { return a.num < b.num }

func hashLess(a, b *tenant) bool {
	if a.hash != b.hash {
		return a.hash < b.hash
	}
	return a.num < b.num
}

func nameLess(a, b *tenant) bool { return a.id < b.id }

func hashOf(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// tenant returns the tenant of that id. One that is not known is made up for
// looking at and leaves no trace unless it is registered.
func (p *pool) tenant(id string) *tenant {
	if t := p.tenants.get(id); t != nil {
		return t
	}
	return &tenant{pool: p, id: id, share: p.shareOf(id)}
}

// known says whether the tenant leaves a trace already.
func (t *tenant) known() bool { return t.row != nil }

// strange says whether the pool has no word of the tenant's own.
func (t *tenant) strange() bool { return t.share.source == FromDefault }

// countStranger counts a known tenant in or out, if the pool has no word of it.
func (p *pool) countStranger(t *tenant, n int64) {
	if t.strange() {
		p.strangers += n
	}
}

// idleBy says whether a tenant may be forgotten by that moment.
func (p *pool) idleBy(now Instant) bool {
	first, ok := p.idle.Min()
	return ok && first.at <= now
}

// register makes the tenant known.
func (s *State) register(t *tenant) {
	if t.known() {
		return
	}
	s.admitNewcomer(t)
	s.seq++
	s.adopt(t, &tenantRow{version: s.version, tenant: t, buckets: make([]bucketState, len(t.pool.fairUse))}, s.seq)
}

// adopt enters a tenant with its row into the state.
func (s *State) adopt(t *tenant, row *tenantRow, num uint64) {
	t.num, t.hash, t.row = num, hashOf(t.id), row
	t.pool.tenants.set(t.id, t)
	t.pool.named.Set(t)
	t.pool.countStranger(t, 1)
	s.tenants.Set(row)
}

// write returns the tenant's row for writing.
func (s *State) writeTenant(t *tenant) *tenantRow {
	if t.row.version != s.version {
		row := *t.row
		row.version = s.version
		row.buckets = append([]bucketState(nil), row.buckets...)
		t.row = &row
		s.tenants.Set(&row)
	}
	return t.row
}

// bucket returns the settled state of the tenant's i-th bucket.
func (t *tenant) bucket(i int, now Instant) bucketState {
	if !t.known() {
		return bucketState{}
	}
	return t.row.buckets[i].settled(t.share.buckets[i], now)
}

// paused says whether an operator paused the tenant.
func (t *tenant) paused() bool { return t.known() && t.row.paused }

// activeUpTo counts the tenant's live permits in lanes of at most that rank.
func (t *tenant) activeUpTo(rank int) int64 {
	n := int64(0)
	for _, d := range t.demands {
		if d.lane.rank <= rank {
			n += d.active
		}
	}
	return n
}

// atCap says whether the tenant may hold no more permits.
func (t *tenant) atCap() bool {
	return t.share.maxActive > 0 && t.active >= t.share.maxActive
}

// idleness is a tenant's place in pool.idle.
type idleness struct {
	at     Instant
	tenant *tenant
}

func idlenessLess(a, b idleness) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.tenant.num < b.tenant.num
}

// noteIdle keeps pool.idle true after anything happened to the tenant.
func (s *State) noteIdle(t *tenant) {
	at := Instant(0)
	if t.permits == 0 && t.entries == 0 && t.waiting == 0 && t.reports == 0 && !t.row.paused && t.pausedGroups == 0 {
		at = s.t.Add(1) // not in this very entry
		for i := range t.row.buckets {
			at = max(at, t.row.buckets[i].fullAt(t.share.buckets[i]))
		}
		if at == never {
			at = 0 // a used one_shot bucket is never forgotten
		}
	}
	s.setIdle(t, at)
}

func (s *State) setIdle(t *tenant, at Instant) {
	if at == t.row.idleAt {
		return
	}
	row := s.writeTenant(t)
	if row.idleAt != 0 {
		t.pool.idle.Delete(idleness{row.idleAt, t})
	}
	if row.idleAt = at; at != 0 {
		t.pool.idle.Set(idleness{at, t})
	}
}

const (
	// forgetLimit bounds the tenants looked at in one entry.
	forgetLimit = 2000
	// idleRecheck is when to look again at a tenant that is still ahead of its
	// lane's floor.
	idleRecheck = Instant(1e9)
)

// forgetIdle drops tenants that nothing distinguishes from new ones: no permit,
// no entry, no pause of it or of a group, full buckets, and no tag above the floor.
func (s *State) forgetIdle(p *pool) {
	for range forgetLimit {
		next, ok := p.idle.Min()
		if !ok || next.at > s.t {
			return
		}
		if t := next.tenant; t.ahead() {
			s.setIdle(t, s.t+min(idleRecheck, math.MaxInt64-s.t))
		} else {
			s.forget(t)
		}
	}
}

// ahead says whether a tag of the tenant is above its floor.
func (t *tenant) ahead() bool {
	for _, d := range t.demands {
		for c := range d.row.tags {
			if d.row.tags[c] > d.lane.classes[c].floor {
				return true
			}
		}
	}
	return false
}

func (s *State) forget(t *tenant) {
	s.setIdle(t, 0)
	if t.pausedGroups > 0 {
		s.forgetPausedGroups(t)
	}
	for _, d := range t.demands {
		s.demands.Delete(d.row)
	}
	s.tenants.Delete(t.row)
	t.pool.tenants.drop(t.id)
	t.pool.named.Delete(t)
	t.pool.countStranger(t, -1)
}
