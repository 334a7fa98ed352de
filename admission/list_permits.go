package admission

import (
	"slices"
	"time"
)

// PermitFilter selects live permits of a pool. An empty tenant selects all.
type PermitFilter struct {
	Pool   string
	Tenant string
}

// PermitPlace is the place of a permit in ListPermits, which goes by age. The zero
// place is before all.
type PermitPlace struct {
	Index    uint64
	Position uint32
}

// ListedPermit is a live permit as those see it who look: without its token, which
// is for its holder.
type ListedPermit struct {
	Fence  int64
	Tenant string
	Lane   string
	// HeldFor is the time since it was granted, ExpiresIn that until it expires.
	HeldFor   time.Duration
	ExpiresIn time.Duration
	Cost      int64
	Worker    string
	Entry     string
	LockKey   string
	Cancelled bool
	Borrowed  bool
	// Uncounted says that it holds no slot, Batch that it is of several entries.
	Uncounted bool
	Batch     bool
	// Share says that the sidecar that Worker names holds it, to grant from.
	Share bool
	Place PermitPlace
}

// permitAges is the number of the ends of PermitAges.
const permitAges = 5

// PermitAges returns the upper ends of the classes that permits are counted in by age;
// one more class has all that are older.
func PermitAges() [permitAges]time.Duration {
	return [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}
}

// PermitsByAge counts permits in the classes of PermitAges.
type PermitsByAge [permitAges + 1]int64

// ListPermits returns the first limit live permits after the given place that the
// filter selects, the oldest first. It goes through the permits of all pools after
// that place up to the last that it returns.
func (im *Image) ListPermits(at Instant, f PermitFilter, after PermitPlace, limit int) ([]ListedPermit, *Error) {
	if !im.hasPool(f.Pool) {
		return nil, poolNotFound(f.Pool)
	}
	var rows []ListedPermit
	from := permitKey{after.Index, after.Position + 1}
	im.permits.Ascend(permitItem{permitKey: from}, func(i permitItem) bool {
		if len(rows) < limit && f.selects(i.row) {
			rows = append(rows, im.listedPermit(i.row, at))
		}
		return len(rows) < limit
	})
	return rows, nil
}

// PermitsByAge counts all live permits that the filter selects. It goes through those
// of all pools.
func (im *Image) PermitsByAge(at Instant, f PermitFilter) (counts PermitsByAge) {
	at = max(at, im.header.T)
	ages := PermitAges()
	im.permits.Scan(func(i permitItem) bool {
		if f.selects(i.row) {
			class, exact := slices.BinarySearch(ages[:], at.Sub(i.row.granted))
			if exact {
				class++
			}
			counts[class]++
		}
		return true
	})
	return counts
}

func (f *PermitFilter) selects(p *permitRow) bool {
	t := p.demand.tenant
	return t.pool.name == f.Pool && (f.Tenant == "" || f.Tenant == t.id)
}

func (im *Image) listedPermit(p *permitRow, at Instant) ListedPermit {
	at = max(at, im.header.T)
	return ListedPermit{
		Fence: p.fence, Tenant: p.demand.tenant.id, Lane: p.demand.lane.name,
		HeldFor: at.Sub(p.granted), ExpiresIn: max(p.expires.Sub(at.Add(-im.header.LeaseOffset)), 0),
		Cost: p.cost, Worker: p.worker, Entry: p.entry, LockKey: p.lock, Cancelled: p.cancelled, Borrowed: p.borrowed,
		Uncounted: p.uncounted, Batch: p.batch, Share: p.wanted > 0, Place: PermitPlace{p.token.Index, p.token.Position},
	}
}
