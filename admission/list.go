package admission

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// ListFilter selects entries of a pool. Empty fields select all.
type ListFilter struct {
	Pool   string
	Tenant string
	Lane   string
	// DueBefore 0 means no bound.
	DueBefore Wall
}

// ListedEntry is a queued or claimed entry in a list.
type ListedEntry struct {
	Tenant      string
	Key         string
	Category    string
	Lane        string
	Route       string
	Group       string
	Claimed     bool
	DueAt       Wall
	FirstDueAt  Wall
	Seq         uint64
	Attempts    int32
	MaxAttempts int32
	// Every and Cadence are how it comes back, as scheduled.
	Every   time.Duration
	Cadence string
}

// DeadEntry is an entry that failed for good.
type DeadEntry struct {
	ListedEntry
	Outcome Outcome
	DiedAt  Wall
	// Letter tells the occurrences of one recurring entry apart, 0 for others.
	Letter uint64
}

// ListEntries returns the first limit queued and claimed entries after the given
// place, by due time, then by arrival. It goes through all entries of the
// tenant, or of every tenant.
func (im *Image) ListEntries(f ListFilter, afterDue Wall, afterSeq uint64, limit int) ([]ListedEntry, *Error) {
	if limit <= 0 {
		return nil, nil
	}
	if err := im.checkLane(f.Pool, f.Lane); err != nil {
		return nil, err
	}
	after := place{afterDue, afterSeq}
	var page latestFirst
	err := im.entriesOf(f.Pool, f.Tenant, "", func(e *entryRow) bool {
		skip := e.state == entryDead ||
			f.Lane != "" && e.demand().lane.name != f.Lane ||
			f.DueBefore != 0 && e.due >= f.DueBefore ||
			e.duePlace().compare(after) <= 0
		if skip || len(page) == limit && e.duePlace().compare(page[0].duePlace()) > 0 {
			return true
		}
		heap.Push(&page, e)
		if len(page) > limit {
			heap.Pop(&page)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(page, func(a, b *entryRow) int { return a.duePlace().compare(b.duePlace()) })
	rows := make([]ListedEntry, len(page))
	for i, e := range page {
		rows[i] = e.listed()
	}
	return rows, nil
}

// checkLane refuses a lane that the pool does not have.
func (im *Image) checkLane(pool, lane string) *Error {
	for _, p := range im.pools {
		if p.Name != pool || lane == "" {
			continue
		}
		if !slices.ContainsFunc(p.Lanes, func(l LaneRow) bool { return l.Name == lane }) {
			return &Error{
				Reason: InvalidField, Field: "lane", Message: "the pool has no such lane",
				Meta: []string{"pool", pool, "lane", lane},
			}
		}
	}
	return nil
}

// ListDead returns the first limit dead entries after the given key, by tenant
// in the order in which the pool came to know them, then by key and letter.
func (im *Image) ListDead(pool, tenant, afterTenant, afterKey string, afterLetter uint64, limit int) ([]DeadEntry, *Error) {
	var rows []DeadEntry
	err := im.entriesOf(pool, tenant, afterTenant, func(e *entryRow) bool {
		shown := e.demand().tenant.id == afterTenant &&
			(e.key < afterKey || e.key == afterKey && e.letter <= afterLetter)
		if e.state == entryDead && !shown {
			rows = append(rows, DeadEntry{e.listed(), e.outcome, e.diedAt, e.letter})
		}
		return len(rows) < limit
	})
	return rows, err
}

// entriesOf calls fn with the pool's entries, of one tenant if it is named, from
// the tenant `from` on if that is.
func (im *Image) entriesOf(pool, tenant, from string, fn func(*entryRow) bool) *Error {
	if !slices.ContainsFunc(im.pools, func(p PoolRow) bool { return p.Name == pool }) {
		return poolNotFound(pool)
	}
	tenants := im.tenantsOf(pool)
	start := uint64(0)
	if name := cmp.Or(tenant, from); name != "" {
		start = tenants[name]
		if start == 0 && tenant != "" {
			return nil // not known: has none
		}
	}
	im.entries.Ascend(entryItem{tenant: start}, func(i entryItem) bool {
		t := i.row.demand().tenant
		if tenant != "" && t.num != start {
			return false
		}
		return t.pool.name != pool || fn(i.row)
	})
	return nil
}

// tenantsOf returns the numbers of the pool's tenants.
func (im *Image) tenantsOf(pool string) map[string]uint64 {
	nums := map[string]uint64{}
	im.tenants.Scan(func(t *tenantRow) bool {
		if t.pool.name == pool {
			nums[t.id] = t.num
		}
		return true
	})
	return nums
}

func (e *entryRow) duePlace() place { return place{e.due, e.seq} }

func (e *entryRow) listed() ListedEntry {
	row := ListedEntry{
		Tenant: e.demand().tenant.id, Key: e.key, Category: e.category, Lane: e.demand().lane.name,
		Route: e.route.name, Group: e.group, Claimed: e.state == entryClaimed,
		DueAt: e.due, FirstDueAt: e.first, Seq: e.seq, Attempts: e.attempts, MaxAttempts: e.maxAttempts,
	}
	if r := e.recur; r != nil {
		row.Every = r.every
		if r.cadence != nil {
			row.Cadence = r.cadence.Name
		}
	}
	return row
}

// latestFirst is a heap whose first entry is due last.
type latestFirst []*entryRow

func (h latestFirst) Len() int           { return len(h) }
func (h latestFirst) Less(i, j int) bool { return h[i].duePlace().compare(h[j].duePlace()) > 0 }
func (h latestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *latestFirst) Push(x any)        { *h = append(*h, x.(*entryRow)) }
func (h *latestFirst) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}
