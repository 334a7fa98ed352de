package admission

import (
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

// ListedEntry is an entry as those see it who look.
type ListedEntry struct {
	Tenant   string
	Key      string
	Category string
	Lane     string
	Route    string
	Group    string
	// Claimed and Dead say where it is; neither, and it is queued.
	Claimed bool
	Dead    bool
	DueAt   Wall
	// FirstDueAt is when it, or this occurrence of it, first came due.
	FirstDueAt  Wall
	Seq         uint64
	Attempts    int32
	MaxAttempts int32
	// Every and Cadence are how it comes back, as scheduled.
	Every   time.Duration
	Cadence string
	// History are the latest failed attempts, the oldest first; of an entry that
	// recurs only those of this occurrence.
	History []Attempt
	// DiedAt is when it died; 0 unless it is dead.
	DiedAt Wall
	// Place is that in ListDead.
	Place DeadPlace
}

// DeadPlace is the place of an entry in ListDead. The zero place is before all.
type DeadPlace struct {
	// Tenant is the tenant's number, which no other ever has.
	Tenant uint64
	Key    string
	// Letter tells the occurrences of one recurring entry apart, 0 for others.
	Letter uint64
}

// GetEntry shows one entry, also one that is dead.
func (s *State) GetEntry(pool, tenant, key string) (ListedEntry, *Error) {
	p := s.pools.byName(pool)
	if p == nil {
		return ListedEntry{}, poolNotFound(pool)
	}
	e := s.entry(p.tenant(tenant), key)
	if e == nil {
		return ListedEntry{}, entryNotFound(pool, tenant, key)
	}
	return e.listed(), nil
}

// ListEntries returns the first limit queued and claimed entries after the given
// place, by due time, then by arrival. It goes through all entries of the
// tenant, or of every tenant.
func (im *Image) ListEntries(f ListFilter, afterDue Wall, afterSeq uint64, limit int) ([]ListedEntry, *Error) {
	if limit <= 0 {
		return nil, nil
	}
	if err := im.checkLane("lane", f.Pool, f.Lane); err != nil {
		return nil, err
	}
	after := place{afterDue, afterSeq}
	var page latestFirst
	err := im.entriesOf(f.Pool, f.Tenant, DeadPlace{}, func(e *entryRow) bool {
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
func (im *Image) checkLane(field, pool, lane string) *Error {
	for _, p := range im.pools {
		if p.Name == pool && lane != "" && !slices.ContainsFunc(p.Lanes, func(l LaneRow) bool { return l.Name == lane }) {
			return noLane(field, pool, lane)
		}
	}
	return nil
}

// ListDead returns the first limit dead entries after the given place that the
// filter selects, by tenant in the order in which the pool came to know them, then
// by key and letter.
func (im *Image) ListDead(pool string, f DeadFilter, after DeadPlace, limit int) ([]ListedEntry, *Error) {
	if err := im.checkLane("filter.lane", pool, f.Lane); err != nil {
		return nil, err
	}
	var rows []ListedEntry
	after.Letter++
	err := im.entriesOf(pool, f.Tenant, after, func(e *entryRow) bool {
		if e.state == entryDead && f.selects(e) && len(rows) < limit {
			rows = append(rows, e.listed())
		}
		return len(rows) < limit
	})
	return rows, err
}

// entriesOf calls fn with the pool's entries from a place on, of one tenant if it
// is named.
func (im *Image) entriesOf(pool, tenant string, from DeadPlace, fn func(*entryRow) bool) *Error {
	if !im.hasPool(pool) {
		return poolNotFound(pool)
	}
	only := uint64(0)
	if tenant != "" {
		if only = im.tenantNumber(pool, tenant); only == 0 {
			return nil // not known: has none
		}
		if from.Tenant < only {
			from = DeadPlace{Tenant: only}
		}
	}
	im.entries.Ascend(entryItem{tenant: from.Tenant, key: from.Key, letter: from.Letter}, func(i entryItem) bool {
		if only != 0 && i.tenant != only {
			return false
		}
		return i.row.demand().tenant.pool.name != pool || fn(i.row)
	})
	return nil
}

func (im *Image) hasPool(name string) bool {
	return slices.ContainsFunc(im.pools, func(p PoolRow) bool { return p.Name == name })
}

// tenantNumber returns the number of a pool's tenant, 0 if it is not known.
func (im *Image) tenantNumber(pool, id string) (num uint64) {
	im.tenants.Scan(func(i tenantItem) bool {
		if t := i.row; t.pool.name == pool && t.id == id {
			num = i.num
		}
		return num == 0
	})
	return num
}

func (e *entryRow) duePlace() place { return place{e.due, e.seq} }

func (e *entryRow) listed() ListedEntry {
	row := ListedEntry{
		Tenant: e.demand().tenant.id, Key: e.key, Category: e.category, Lane: e.demand().lane.name,
		Route: e.queue.route.name, Group: e.queue.group, Claimed: e.state == entryClaimed,
		Dead:  e.state == entryDead,
		DueAt: e.due, FirstDueAt: e.cameDue(), Seq: e.seq, Attempts: e.attempts, MaxAttempts: e.maxAttempts,
		History: e.history(), Place: DeadPlace{e.demand().tenant.num, e.key, e.letter},
	}
	if row.Dead {
		row.DiedAt = e.past.diedAt
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
