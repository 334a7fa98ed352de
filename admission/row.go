package admission

import "time"

// Row is one row of an Image. The set is closed: the types of this file and
// RevisionRow.
type Row interface{ isRow() }

// PolicyRow is the policy in force. Draining is what else there is until it is
// empty: whole pools, and of others the lanes.
type PolicyRow struct {
	Policy   Policy
	Draining Policy
}

// PoolRow is what a pool has beside its policy.
type PoolRow struct {
	Name      string
	Num       uint32
	BucketIDs uint32
	Skipped   int64
	Swept     int64
	Expired   int64
	// Lanes and Buckets are in the order of the policy, lanes that drain last;
	// Fair tells of the TENANT buckets.
	Lanes   []LaneRow
	Buckets []BucketRow
	Fair    []ChargeRow
	// NewTenants is what is missing from limits.new_tenants_per_second.
	NewTenants BucketRow
}

// ChargeRow is since when a bucket charges permits, and where its charge changed.
type ChargeRow struct {
	ID    uint32
	Flips []uint32
}

// LaneRow is what a lane has beside its policy. Floors, Tops and Shifts are by
// class.
type LaneRow struct {
	Name   string
	Paused bool
	// Yielding says that it takes nothing new for the sake of lanes above.
	Yielding bool
	Floors   [2]int64
	Tops     [2]int64
	Shifts   [2]int64
}

// BucketRow is what is missing from a bucket. Charge is that of a POOL bucket.
type BucketRow struct {
	Charge       ChargeRow
	Used         int64
	Rem          int64
	At           Instant
	PausedUntil  Instant
	PausedByHand bool
	Throttles    uint32
}

// TenantRow is a tenant of a pool.
type TenantRow struct {
	Num     uint64
	Pool    string
	ID      string
	Paused  bool
	IdleAt  Instant
	Spare   bool
	Buckets []BucketRow
}

// PutRow is a tenant's row of its own.
type PutRow struct {
	Pool   string
	Tenant TenantPolicy
}

// DemandRow is what a tenant wants in a lane. Tags and Rems are by class.
type DemandRow struct {
	Tenant uint64
	Lane   string
	Tags   [2]int64
	Rems   [2]int64
	Weight int64
	// Lingers is until when its due entries wait for a whole batch, 0 if they do
	// not.
	Lingers Wall
	// Seats are by source: due entries, waiters, rate_only waiters, and what is
	// reported.
	Seats [4]SeatRow
	// Backlog is what was reported, until Reported on the cluster's clock.
	Backlog  int64
	Reported Instant
}

// SeatRow is where one source of a demand stands.
type SeatRow struct {
	Seat   uint8
	Key    int64
	Seq    uint64
	WakeAt Instant
}

// QueueRow is a queue with something due: the entries of one group in a route.
type QueueRow struct {
	Tenant uint64
	Lane   string
	Route  string
	Group  string
	// Turn is the route's place in the ring, 0 if another queue of it keeps that.
	Turn      uint64
	RipeFirst Wall
	RipeSeq   uint64
}

// PausedGroupRow is a group that is paused, with entries or without.
type PausedGroupRow struct {
	Tenant uint64
	Group  string
}

// EntryRow is an entry of the due-work index.
type EntryRow struct {
	Tenant        uint64
	Key           string
	Lane          string
	Route         string
	Category      string
	Group         string
	State         uint8
	Delayed       bool
	Relative      bool
	Given         int64
	GivenAttempts int32
	Due           Wall
	First         Wall
	Seq           uint64
	Attempts      int32
	Unstarted     uint8
	Retry         RetryPolicy // with MaxAttempts the entry's own
	ClaimIndex    uint64
	ClaimPosition uint32
	// History are the latest failed attempts. DiedAt and BuriedAt are by wall and
	// by cluster time, 0 unless it is dead.
	History  []Attempt
	DiedAt   Wall
	BuriedAt Instant
	Redriven bool
	CameDue  Wall // of one that was redriven
	Letter   uint64
	Every    time.Duration
	Cadence  CadencePolicy // no name: none
	Behind   int32
	Resume   Wall
	Misses   int32
}

// PermitRow is a live permit. Expires is on the lease clock.
type PermitRow struct {
	Token     Token
	Fence     int64
	Tenant    uint64
	Lane      string
	Granted   Instant
	Expires   Instant
	TTL       time.Duration
	Cost      int64
	BucketIDs uint32
	Cancelled bool
	Entry     string
	Letter    uint64
	Worker    string
	// Node is whose part of the tenant's permits it counts in, or empty.
	Node string
	// Batch says that it is of several entries; Cost is then that of each.
	Batch     bool
	LockKey   string
	DedupeKey string
	// Uncounted says that it holds no slot: of a rate_only grant, or let through
	// by a pool that only watches.
	Uncounted bool
	Borrowed  bool
	// Wanted makes it a share of the sidecar that Worker names: the tokens it asked for.
	Wanted int64
}

// PartRow is one entry's part of a batch's permit. Permit is the permit's position
// in the same log entry.
type PartRow struct {
	Token     Token
	Fence     int64
	Permit    uint32
	Entry     string
	Letter    uint64
	Cancelled bool
}

// WaiterRow is an Acquire in line. Until and DetachedUntil are on the lease
// clock.
type WaiterRow struct {
	Key       WaiterKey
	Seq       uint64
	Tenant    uint64
	Lane      string
	Cost      int64
	TTL       time.Duration
	LockKey   string
	DedupeKey string
	RequestID string
	Digest    uint64
	RateOnly  bool
	Settle    bool
	Worker    string
	Nonce     uint64
	AskedAt   Wall
	Until     Instant
	// DetachedUntil is when it ends unless somebody asks again, 0 while somebody
	// listens.
	DetachedUntil Instant
}

// DoneRow is a dedupe key whose job is done.
type DoneRow struct {
	Pool   string
	Tenant string
	Key    string
	At     Instant
	Seq    uint64
}

// EndedRow is a released permit.
type EndedRow struct {
	Token  Token
	Pool   string
	Tenant string
	At     Instant
	Seq    uint64
}

// RequestRow is a request id with what it was granted.
type RequestRow struct {
	Pool   string
	Tenant string
	ID     string
	Digest uint64
	Tokens []Token
	Fence  int64
	At     Instant
	Seq    uint64
}

func (PolicyRow) isRow()      {}
func (RevisionRow) isRow()    {}
func (PoolRow) isRow()        {}
func (TenantRow) isRow()      {}
func (PutRow) isRow()         {}
func (DemandRow) isRow()      {}
func (QueueRow) isRow()       {}
func (PausedGroupRow) isRow() {}
func (EntryRow) isRow()       {}
func (PermitRow) isRow()      {}
func (PartRow) isRow()        {}
func (EndedRow) isRow()       {}
func (RequestRow) isRow()     {}
func (WaiterRow) isRow()      {}
func (DoneRow) isRow()        {}

func (p *pool) row() PoolRow {
	r := PoolRow{Name: p.name, Num: p.num, BucketIDs: p.bucketIDs, Skipped: p.skipped, Swept: p.swept, Expired: p.expired}
	for _, l := range p.lanes {
		lr := LaneRow{Name: l.name, Paused: l.paused, Yielding: l.yielding}
		for k := range l.classes {
			lr.Floors[k], lr.Tops[k], lr.Shifts[k] = l.classes[k].floor, l.classes[k].top, l.classes[k].shift
		}
		r.Lanes = append(r.Lanes, lr)
	}
	for i := range p.buckets {
		br := p.buckets[i].bucketState.row()
		br.Charge = p.buckets[i].charging.row()
		r.Buckets = append(r.Buckets, br)
	}
	for _, spec := range p.fairUse {
		r.Fair = append(r.Fair, spec.charging.row())
	}
	r.NewTenants = p.newTenants.row()
	return r
}

func (b bucketState) row() BucketRow {
	return BucketRow{
		Used: b.used, Rem: b.rem, At: b.at,
		PausedUntil: b.pausedUntil, PausedByHand: b.pausedByHand, Throttles: b.throttles,
	}
}

func (r BucketRow) state() bucketState {
	return bucketState{
		used: r.Used, rem: r.Rem, at: r.At,
		pausedUntil: r.PausedUntil, pausedByHand: r.PausedByHand, throttles: r.Throttles,
	}
}

func (i tenantItem) export() TenantRow {
	t := i.row
	r := TenantRow{Num: t.num, Pool: t.pool.name, ID: t.id, Paused: t.paused, IdleAt: t.idleAt, Spare: t.spare}
	for _, b := range t.buckets {
		r.Buckets = append(r.Buckets, b.row())
	}
	return r
}

func (i demandItem) export() DemandRow {
	d := i.row
	r := DemandRow{
		Tenant: d.tenant.num, Lane: d.lane.name, Tags: d.tags, Rems: d.rems, Weight: d.weight, Lingers: d.lingers,
		Backlog: d.backlog, Reported: d.reported,
	}
	for src, at := range d.seats {
		r.Seats[src] = SeatRow{uint8(at.seat), at.key, at.seq, at.wakeAt}
	}
	return r
}

func (i queueItem) export() QueueRow {
	q := i.row
	return QueueRow{
		Tenant: q.route.demand.tenant.num, Lane: q.route.demand.lane.name, Route: q.route.name, Group: q.group,
		Turn: q.turn, RipeFirst: q.ripe.first, RipeSeq: q.ripe.seq,
	}
}

func (g pausedGroup) export() PausedGroupRow { return PausedGroupRow{g.tenant.num, g.name} }

func (i entryItem) export() EntryRow {
	e := i.row
	retry := *e.retry
	retry.MaxAttempts = e.maxAttempts
	row := EntryRow{
		Tenant: e.demand().tenant.num, Key: e.key, Lane: e.demand().lane.name, Route: e.queue.route.name,
		Category: e.category, Group: e.queue.group, State: uint8(e.state), Delayed: e.delayed,
		Relative: e.relative, Given: e.given, GivenAttempts: e.givenAttempts,
		Due: e.due, First: e.first, Seq: e.seq, Attempts: e.attempts, Unstarted: e.unstarted, Retry: retry,
		ClaimIndex: e.claim.index, ClaimPosition: e.claim.position,
		Letter: e.letter,
	}
	if h := e.past; h != nil {
		row.History, row.DiedAt, row.BuriedAt = h.attempts, h.diedAt, h.buriedAt
		row.Redriven, row.CameDue = h.redriven, h.cameDue
	}
	if r := e.recur; r != nil {
		row.Every, row.Behind, row.Resume, row.Misses = r.every, r.behind, r.resume, r.misses
		if r.cadence != nil {
			row.Cadence = *r.cadence
		}
	}
	return row
}

func (i permitItem) export() PermitRow {
	p := i.row
	return PermitRow{
		Token: p.token, Fence: p.fence, Tenant: p.demand.tenant.num, Lane: p.demand.lane.name,
		Granted: p.granted, Expires: p.expires, TTL: p.ttl, Cost: p.cost, BucketIDs: p.buckets,
		Cancelled: p.cancelled, Entry: p.entry, Letter: p.letter, Worker: p.worker, Node: p.node,
		LockKey: p.lock, DedupeKey: p.job, Uncounted: p.uncounted, Borrowed: p.borrowed, Batch: p.batch,
		Wanted: p.wanted,
	}
}

func (i partItem) export() PartRow {
	p := i.row
	return PartRow{Token: p.token, Fence: p.fence, Permit: p.permit.position, Entry: p.entry, Letter: p.letter, Cancelled: p.cancelled}
}

func (r *waiterRow) export() WaiterRow {
	n := r.need()
	return WaiterRow{
		Key: r.key, Seq: r.seq, Tenant: r.demand.tenant.num, Lane: r.demand.lane.name, Cost: r.cost, TTL: r.ttl,
		LockKey: n.lock, DedupeKey: n.job, RequestID: r.requestID, Digest: r.digest, RateOnly: r.slotless,
		Settle: r.settle, Worker: r.worker, Nonce: r.nonce, AskedAt: r.askedAt, Until: r.until, DetachedUntil: r.detached,
	}
}

func (r *doneRow) export() DoneRow {
	return DoneRow{Pool: r.pool.name, Tenant: r.name.tenant, Key: r.name.key, At: r.at, Seq: r.seq}
}

func (i endedItem) export() EndedRow {
	e := i.row
	return EndedRow{Token: e.token, Pool: e.pool.name, Tenant: e.tenant, At: e.at, Seq: e.seq}
}

func (i requestItem) export() RequestRow {
	r := i.row
	return RequestRow{
		Pool: r.pool.name, Tenant: r.tenant, ID: r.id, Digest: r.digest, Tokens: r.tokens,
		Fence: r.fence, At: r.at, Seq: r.seq,
	}
}
