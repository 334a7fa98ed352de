package admission

import (
	"time"

	"github.com/tidwall/btree"
)

// pool is a capacity domain: everything that a decision consults lives in it.
type pool struct {
	name      string
	num       uint32
	maxActive int64 // 0: no cap
	permitTTL time.Duration
	maxPause  time.Duration
	retry     *RetryPolicy
	cadences  map[string]*CadencePolicy
	limits    LimitsPolicy
	// deadRetention is how long dead entries are kept.
	deadRetention time.Duration
	lanes         []*lane // by rank, highest first
	categories    map[string]*lane
	buckets       []poolBucket
	fairUse       []*bucketSpec // the TENANT buckets
	defaults      *share
	overrides     map[string]*share
	overridden    []string // those with an override, sorted
	// bucketIDs is the last id given to a bucket of either scope.
	bucketIDs uint32

	// refuseUnknown says that tenants without a word of their own are refused.
	refuseUnknown bool
	// draining says that the policy has it no more: it goes when it is empty.
	draining bool
	// newTenants is what is missing from limits.new_tenants_per_second.
	newTenants bucketState
	newcomers  *bucketSpec

	tenants table[string, *tenant]
	named   *btree.BTreeG[*tenant] // the tenants by id
	puts    map[string]*putRow     // the rows that tenants have of their own
	// strangers counts the tenants without an override or a row of their own, those
	// that are spare aside.
	strangers int64
	active    int64
	entries   int64 // dead ones included
	// mostEntries and mostWaiting are the most entries, and Acquires in line, of any
	// tenant.
	mostEntries, mostWaiting peak
	// swept counts the dead entries that were dropped for their age or number.
	swept int64
	// expired counts the permits that ended by themselves.
	expired int64
	// debt is by how much permits exceed the caps of their tenants.
	debt int64
	// pausedGroups counts those of its tenants.
	pausedGroups int64
	// skipped counts the boundaries of fixed grids that were missed for good.
	skipped  int64
	ended    fifo[*endedRow]   // released permits, oldest first
	requests fifo[*requestRow] // remembered ids, oldest first
	// categoryUse counts the entries of each category.
	categoryUse map[string]int64

	expiries *btree.BTreeG[expiry] // live permits by expiry on the lease clock
	shares   *btree.BTreeG[expiry] // those of them that are shares of sidecars
	rates    *btree.BTreeG[wakeup] // entries and reports that wait for tokens, by the instant they come
	// waiterRates are the same of waiters.
	waiterRates *btree.BTreeG[wakeup]
	idle        *btree.BTreeG[idleness] // tenants that want and hold nothing, by when to look at them
	spare       *btree.BTreeG[idleness] // tenants that are like new ones, by since when
	graves      *btree.BTreeG[grave]    // dead entries, by the order of their deaths
	wanting     *btree.BTreeG[wish]     // tenants with due demand, in the order of their hash
	// lingering are the demands whose entries wait for more, by when that ends.
	lingering *btree.BTreeG[lingerEnd]
	// waiting counts the Acquires in line; deadlines are when they end.
	waiting   int64
	deadlines *btree.BTreeG[deadline]
	reports   *btree.BTreeG[reportEnd] // demands with a report, by when it ends
	locks     table[lockName, *lock]
	jobs      table[jobName, *job]
	dones     fifo[*doneRow] // jobs done, oldest first
	// lockMax is how many permits may hold one lock key.
	lockMax       int64
	doneRetention time.Duration
	shadow        bool
	yields        bool // some lane does
	// lines are the asks of a dispatch, by rank; empty otherwise.
	lines []askLines
	// reserved says, from a dispatch to the end of its entry, that reserver held the
	// pool's tokens when it was over.
	reserved bool
	reserver position
}

// poolBucket is a POOL bucket.
type poolBucket struct {
	*bucketSpec
	bucketState
}

// lane is a strict priority class of a pool. Its identity outlives policies;
// its rank need not.
type lane struct {
	pool        *pool
	name        string
	rank        int
	leaveSlots  int64
	leaveTokens []int64 // for each of pool.buckets
	cycleLimit  int64   // 0: none
	batch       BatchPolicy
	paused      bool
	draining    bool // as for pools
	active      int64
	borrowed    int64 // of those
	permits     int64 // those that hold no slot included
	entries     int64 // dead ones included
	waiters     int64

	classes [classCount]class
	// held counts the demands that are held for each reason, open those held by
	// nothing of their tenant's own, by class.
	held [reasonCount]heldCount
	open [classCount]openCount
	// depth counts what could be served, and kept the slots that stay free for
	// what is reported.
	depth, kept int64
	// oldest are the demands that could be served, by since when, entitled those of them
	// that want slots to which they are entitled.
	oldest, entitled *btree.BTreeG[oldestDemand]

	yield    *YieldPolicy
	yielding bool

	slots    *btree.BTreeG[expiry] // permits that hold a slot, by expiry
	dormant  *queuesDue            // queues that are not ready, by the due time of their head
	ripening *queuesDue            // ready queues with entries not counted as due yet
}

func newPool(name string, num uint32) *pool {
	return &pool{
		name: name, num: num,
		named:       newTree(nameLess),
		puts:        map[string]*putRow{},
		categoryUse: map[string]int64{},
		expiries:    newTree(expiryLess),
		shares:      newTree(expiryLess),
		rates:       newTree(wakeupLess),
		waiterRates: newTree(wakeupLess),
		deadlines:   newTree(deadlineLess),
		reports:     newTree(reportLess),
		idle:        newTree(idlenessLess),
		spare:       newTree(idlenessLess),
		lingering:   newTree(lingerEndLess),
		graves:      newTree(graveLess),
		wanting:     newTree(wishLess),
	}
}

func newLane(p *pool, name string) *lane {
	l := &lane{
		pool: p, name: name, oldest: newTree(oldestDemandLess), entitled: newTree(oldestDemandLess),
		slots: newTree(expiryLess), dormant: newTree(queueDueLess), ripening: newTree(queueDueLess),
	}
	for c := range l.classes {
		for src := range l.classes[c].orders {
			l.classes[c].orders[src] = newTree(positionLess)
		}
	}
	return l
}

// newTree returns a tree for the one goroutine that applies, and for readers of
// its copies.
func newTree[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}

// lane returns the pool's lane of that name, or nil.
func (p *pool) lane(name string) *lane {
	for _, l := range p.lanes {
		if l.name == name {
			return l
		}
	}
	return nil
}

// activeFrom counts the live permits of the lanes from rank down.
func (p *pool) activeFrom(rank int) int64 {
	n := int64(0)
	for _, l := range p.lanes[rank:] {
		n += l.active
	}
	return n
}

// heldCount counts demands that are held for one reason: all of them, and those with
// entries.
type heldCount struct{ all, entries int64 }

// openCount counts demands that nothing of their tenant's own holds: those that
// need a slot, those that take tokens only, and those with entries.
type openCount struct{ slot, slotless, entries int64 }

// slotFor says whether a slot is free for the lane's class: there is one, and it
// is not kept for what is reported of higher lanes or, where it would be
// borrowed, of this one.
func (l *lane) slotFor(k classKind) bool { return l.slotFree() && !l.reclaimed(k) }

// reclaimed says whether all free slots are kept for demand that is entitled to
// them.
func (l *lane) reclaimed(k classKind) bool {
	p := l.pool
	if p.maxActive == 0 {
		return false
	}
	kept := p.keptFor(l, k)
	return kept > 0 && p.maxActive-p.active <= kept
}

// keptFor counts the slots that are kept from the lane's class.
func (p *pool) keptFor(l *lane, k classKind) int64 {
	kept := int64(0)
	for _, above := range p.lanes[:l.rank] {
		kept += above.kept
	}
	if k == borrowing {
		kept += l.kept
	}
	return kept
}

// slotFree says whether the pool and the lanes' reserves have room for one more
// permit of l: the lanes from any rank down leave their part together.
func (l *lane) slotFree() bool {
	p := l.pool
	if p.maxActive == 0 {
		return true
	}
	if p.active >= p.maxActive {
		return false
	}
	for _, above := range p.lanes[:l.rank+1] {
		if above.leaveSlots > 0 && p.activeFrom(above.rank) >= p.maxActive-above.leaveSlots {
			return false
		}
	}
	return true
}

// tokensFree says whether every POOL bucket has what a permit of l with that
// cost takes, above what the lane leaves.
func (l *lane) tokensFree(cost int64, now Instant) bool {
	for i := range l.pool.buckets {
		b := &l.pool.buckets[i]
		state := b.settled(b.bucketSpec, now)
		if b.blocked || state.paused(now) || b.capacity-state.used-l.leaveTokens[i] < b.charge(cost) {
			return false
		}
	}
	return true
}
