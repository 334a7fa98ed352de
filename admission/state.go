package admission

import (
	"time"

	"github.com/tidwall/btree"
)

// State is everything that admission knows. It changes through Apply alone; its
// other methods look. It has no lock: one goroutine at a time may apply, and none
// may look meanwhile.
//
// What is replicated stands in rows, in copy-on-write trees. A row is written in
// place unless a snapshot still holds it: then it is copied first (see the
// version that each row carries, and the write methods). All else is index: it
// follows from the rows, and Restore builds it anew.
type State struct {
	index       uint64
	t           Instant
	w           Wall
	leaseOffset time.Duration
	epoch       uint16
	// grants counts permits, for fences; positions those of the present entry;
	// seq gives out places in line.
	grants    int64
	positions uint32
	seq       uint64

	policy    Policy
	draining  Policy // what else there is until it is empty
	revision  int64
	appliedAt Wall
	past      []RevisionRow // the policies before, oldest first
	pools     registry

	rows
	// version is that of rows that no snapshot holds.
	version uint32

	line, delayed *spots
	holdings      *btree.BTreeG[expiry]
	nodes         *btree.BTreeG[nodeHolding]
	queues        *btree.BTreeG[queueSpot]
	waitersByID   table[requestKey, *waiter]
	routes        table[routeKey, *route]
	queuesByName  table[queueKey, *queue]
	// grouped are the queues of each named group.
	grouped table[groupKey, []*queue]
	// locals gives out numbers to what only this process knows.
	locals uint64
	// unsettled are the demands to be seated anew.
	unsettled []*demand
	// polled says that the present dispatch serves polls.
	polled bool
	// turn is whose it is in the present dispatch, and overtaken says that somebody
	// entered an order whose turn it was before.
	turn      int
	overtaken bool
	entering  []entrant
	// waitEnds are those of the last entry.
	waitEnds []WaitEnd
	// stirred are the classes marked for rest.
	stirred []*class
	// contests are those of the entry that is being applied.
	contests []contest
	// glances are those of the entry that is being applied.
	glances []glance
}

// rows are the copy-on-write trees, sorted by key. Where there are many rows the first
// part of a key stands beside the row: a search that read each row that it passes would
// miss the cache each time.
type rows struct {
	puts      *btree.BTreeG[*putRow]
	tenants   *btree.BTreeG[tenantItem]
	demands   *btree.BTreeG[demandItem]
	dueQueues *btree.BTreeG[queueItem]
	// pausedGroups are rows that never change.
	pausedGroups *btree.BTreeG[pausedGroup]
	entries      *btree.BTreeG[entryItem]
	permits      *btree.BTreeG[permitItem]
	parts        *btree.BTreeG[partItem]
	ended        *btree.BTreeG[endedItem]
	requests     *btree.BTreeG[requestItem]
	waiters      *btree.BTreeG[*waiterRow]
	dones        *btree.BTreeG[*doneRow]
}

func newRows() rows {
	return rows{
		puts:         newTree(putLess),
		tenants:      newTree(tenantLess),
		demands:      newTree(demandItemLess),
		dueQueues:    newTree(queueLess),
		pausedGroups: newTree(pausedGroupLess),
		entries:      newTree(entryLess),
		permits:      newTree(permitLess),
		parts:        newTree(partLess),
		ended:        newTree(endedLess),
		requests:     newTree(requestLess),
		waiters:      newTree(waiterLess),
		dones:        newTree(doneLess),
	}
}

// copy returns the trees as they are, without copying a row.
func (r *rows) copy() rows {
	return rows{
		puts:         r.puts.Copy(),
		tenants:      r.tenants.Copy(),
		demands:      r.demands.Copy(),
		dueQueues:    r.dueQueues.Copy(),
		pausedGroups: r.pausedGroups.Copy(),
		entries:      r.entries.Copy(),
		permits:      r.permits.Copy(),
		parts:        r.parts.Copy(),
		ended:        r.ended.Copy(),
		requests:     r.requests.Copy(),
		waiters:      r.waiters.Copy(),
		dones:        r.dones.Copy(),
	}
}

// registry is the pools, in the order of the policy.
type registry struct {
	list  []*pool
	names map[string]*pool
	// nums is the last number given to a pool.
	nums uint32
}

func (r *registry) byName(name string) *pool { return r.names[name] }

// New returns an empty state: no policy, no pools, at instant 0.
func New() *State {
	return &State{
		pools:    registry{names: map[string]*pool{}},
		rows:     newRows(),
		line:     newTree(spotLess),
		delayed:  newTree(spotLess),
		holdings: newTree(holdingLess),
		nodes:    newTree(nodeHoldingLess),
		queues:   newTree(queueSpotLess),
	}
}

// Index returns the index of the last entry that was applied.
func (s *State) Index() uint64 { return s.index }

// Now returns the moment of the last entry that was applied.
func (s *State) Now() (Instant, Wall) { return s.t, s.w }

// Policy returns the policy in force, its revision (0 before the first), and
// when it was applied. It must not be changed.
func (s *State) Policy() (p Policy, revision int64, appliedAt Wall) {
	return s.policy, s.revision, s.appliedAt
}

// Deadline returns the earliest instant at which time alone changes something for
// somebody who holds or waits: a permit expires, a wait or a report ends, tokens
// come. Time must move on then, if only by an entry without operations.
func (s *State) Deadline() (at Instant, ok bool) {
	at = never
	for _, p := range s.pools.list {
		at = min(at, s.deadline(p))
	}
	return at, at != never
}

func (s *State) deadline(p *pool) Instant {
	at := never
	if first, any := p.expiries.Min(); any {
		at = first.at.Add(s.leaseOffset)
	}
	if first, any := p.deadlines.Min(); any {
		at = min(at, first.at.Add(s.leaseOffset))
	}
	if first, any := p.reports.Min(); any {
		at = min(at, first.at)
	}
	if first, any := p.waiterRates.Min(); any {
		at = min(at, first.at)
	}
	if p.waiting > 0 && p.yieldStale(s.w) {
		return s.t
	}
	if first, waits := p.firstWaiter(); waits { // what it waited behind may have ended
		at = min(at, first.demand.lane.tokensAt(s.costOf(first), s.t))
	}
	return at
}

// Due returns when, by the wall clock, something comes due that is not known as
// due yet, or entries have waited long enough for a batch: time must move on then
// as well, so that depths are true where nobody polls, and goes on until all that
// came due at once is known.
func (s *State) Due() (w Wall, ok bool) {
	for _, p := range s.pools.list {
		if first, any := p.comesDue(); any && (!ok || first < w) {
			w, ok = first, true
		}
		if first, any := p.lingering.Min(); any && (!ok || first.at < w) {
			w, ok = first.at, true
		}
	}
	return w, ok
}

// comesDue returns when the next entry of the pool comes due that is not known as
// due yet.
func (p *pool) comesDue() (w Wall, ok bool) {
	for _, l := range p.lanes {
		for _, tree := range []*queuesDue{l.dormant, l.ripening} {
			if first, any := tree.Min(); any && (!ok || first.at.first < w) {
				w, ok = first.at.first, true
			}
		}
	}
	return w, ok
}
