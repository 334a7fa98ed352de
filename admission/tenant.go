package admission

import (
	"hash/fnv"

	"github.com/tidwall/btree"
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
	// shares are its live permits that are shares of sidecars, nil while there are none.
	shares *btree.BTreeG[expiry]
}

// tenantRow is what is replicated of a tenant.
type tenantRow struct {
	version uint32
	*tenant
	paused  bool
	buckets []bucketState // for each of pool.fairUse
	// idleAt is its key in pool.idle or pool.spare, or 0 when it is in neither.
	idleAt Instant
	// spare says that nothing tells it from a new tenant but that it was here.
	spare bool
}

// tenantItem keys a tenant in State.tenants.
type tenantItem struct {
	num uint64
	row *tenantRow
}

func tenantLess(a, b tenantItem) bool { return a.num < b.num }

// wish is a tenant's place in pool.wanting.
type wish struct {
	hash   uint32
	tenant *tenant // nil: before all of that hash
}

func (t *tenant) wish() wish { return wish{t.hash, t} }

func wishLess(a, b wish) bool {
	if a.hash != b.hash {
		return a.hash < b.hash
	}
	return b.tenant != nil && (a.tenant == nil || a.tenant.num < b.tenant.num)
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

// resident says whether the tenant is known for more than having been here.
func (t *tenant) resident() bool { return t.known() && !t.row.spare }

// strange says whether the pool has no word of the tenant's own.
func (t *tenant) strange() bool { return t.share.source == FromDefault }

// countStranger counts a resident tenant in or out, if the pool has no word of it.
func (p *pool) countStranger(t *tenant, n int64) {
	if t.strange() {
		p.strangers += n
	}
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
	s.tenants.Set(tenantItem{num, row})
}

// write returns the tenant's row for writing.
func (s *State) writeTenant(t *tenant) *tenantRow {
	if t.row.version != s.version {
		row := *t.row
		row.version = s.version
		row.buckets = append([]bucketState(nil), row.buckets...)
		t.row = &row
		s.tenants.Set(tenantItem{t.num, &row})
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
