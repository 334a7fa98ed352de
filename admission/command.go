package admission

import "time"

// Entry is one log entry: operations that are decided together at one moment.
// The core sees nothing of the world but entries; the same entries give the
// same state, byte for byte.
type Entry struct {
	// Index is the entry's place in the log, greater than the one before.
	Index uint64
	// T and W are the moment of the decision. A T below the last one counts as
	// the last one.
	T Instant
	W Wall
	// Ops are the operations. None is a tick: time moves on.
	Ops []Op
}

// Op is an operation. The set is closed: the types of this file.
//
// An Op must have passed the limits that the API states (lengths, ranges,
// counts): the core decides, it does not validate. Out of range values must not
// panic all the same.
type Op interface{ isOp() }

// TermStart opens a leader's term. Nobody led for Gap: time moves on by it, and
// live permits are credited with it.
type TermStart struct {
	Gap time.Duration
}

// AnyRevision as ApplyPolicy.ExpectedRevision accepts whatever is in force.
const AnyRevision = -1

// ApplyPolicy replaces the policy. Its result is a *PolicyResult.
type ApplyPolicy struct {
	Policy Policy
	// ExpectedRevision is the revision that must be in force, or AnyRevision.
	ExpectedRevision int64
	// Drain lets pools and lanes go that are in use: they take nothing new, and
	// are gone when they are empty.
	Drain bool
}

// PutTenants gives tenants rows of their own: each stands in place of the
// policy's override, and what it leaves open is the default's. Either all rows
// are put or none. Its result is a *PutTenantsResult.
type PutTenants struct {
	Pool string
	Rows []TenantPut
}

// TenantPut is one tenant's row, or with Remove that it is to have none.
type TenantPut struct {
	Tenant TenantPolicy
	Remove bool
}

// TargetKind says what a Pause holds.
type TargetKind uint8

// The kinds of targets.
const (
	TargetTenant TargetKind = iota + 1
	TargetLane
	TargetBucket
	TargetGroup
)

// Pause holds a tenant, lane, POOL bucket or group of entries, or with Resume
// lets it go. Its result is a *PauseResult.
type Pause struct {
	Pool string
	Kind TargetKind
	Name string
	// Tenant is that of a group, else empty.
	Tenant string
	Resume bool
}

// Acquire asks for one permit. Its result is an *AcquireResult.
type Acquire struct {
	Pool     string
	Tenant   string
	Category string
	// Cost is at least 1.
	Cost int64
	// TTL 0 means the pool's permit_ttl.
	TTL time.Duration
	// MaxWait is how long it waits in line where it can't be granted at once; 0
	// not at all. Its result then says that it waits, and State.Ended how the wait
	// ended.
	MaxWait time.Duration
	// LockKey names what only so many permits of the tenant may hold, or is empty.
	LockKey string
	// DedupeKey names the job, whoever sends it, or is empty.
	DedupeKey string
	RequestID string
	// IssuedAt is when the caller first sent it by its own clock, 0 if not told.
	IssuedAt Wall
	// RateOnly takes tokens and no slot. There is a permit only with Settle, to
	// correct the cost by.
	RateOnly bool
	Settle   bool
	// Backlog is what waits behind it in the caller's own queue, as in
	// ReportDemand, 0 if not told.
	Backlog  int64
	WorkerID string
	// Nonce is 64 random bits for the permit's token.
	Nonce uint64
}

// WaiterKey is where in the log an Acquire began to wait. The zero key names
// none.
type WaiterKey struct {
	Index    uint64
	Position uint32
}

// Detach says that nobody listens for a waiting Acquire any more. It has no
// result (nil).
type Detach struct {
	Waiter WaiterKey
}

// ReportDemand says what waits in a queue that admit does not own. It holds until
// its TTL is over or another report of the same tenant and lane replaces it. Its
// result is a *ReportResult.
type ReportDemand struct {
	Pool     string
	Tenant   string
	Category string
	Backlog  int64
	// TTL 0 means 5 seconds.
	TTL time.Duration
}

// NextDue claims up to MaxItems due entries. Its result is a *NextDueResult.
type NextDue struct {
	Pool     string
	MaxItems int
	// TTL 0 means the pool's permit_ttl.
	TTL      time.Duration
	WorkerID string
	// Lanes restricts the call to these lanes; none means all.
	Lanes []string
	// Tenant restricts it to this tenant's entries, empty not.
	Tenant string
	// LaneLimits are the most permits that this call takes in a lane; a lane that
	// is not named has no such limit.
	LaneLimits map[string]int64
	// Node is who polls and how large a part of the work is its own, or zero.
	Node Node
	// Batch has lanes with batches give several entries under one permit.
	Batch     bool
	RequestID string
	// Nonce is 64 random bits; each claim's token mixes in its place.
	Nonce uint64
}

// Node is a machine of a fleet. It owns Owned parts of Total, and of each tenant
// it may hold no more than that part of max_active, rounded up.
type Node struct {
	ID string
	// Owned is at least 1 and at most Total.
	Owned, Total int64
}

// Renew extends permits. Its result is a *RenewResult.
type Renew struct {
	Tokens []Token
	// TTL 0 means each permit's own.
	TTL time.Duration
}

// Outcome is how the work under a permit ended.
type Outcome uint8

// The outcomes.
const (
	OutcomeDone Outcome = iota + 1
	OutcomeFailed
	OutcomeThrottled
	OutcomeNotStarted
	OutcomeDead
	// OutcomeExpired is what the core notes when a holder vanished; no Release
	// carries it.
	OutcomeExpired
)

// Absent stands for "not given" in fields where 0 has a meaning.
const Absent = -1

// Take takes tokens of buckets by their names, for all of its parts together or for
// none. There is no permit, no turn and no wait: who asks is told at once. Its result
// is a *TakeResult.
type Take struct {
	Pool  string
	Parts []TakePart
}

// TakePart is one of the things for which tokens are taken. Parts that name one bucket
// take their sum of it.
type TakePart struct {
	// Tenant is whose TENANT buckets are meant and who may be paused, empty where there
	// are none.
	Tenant   string
	Category string
	// Buckets are the names of those to take of. One that the pool does not have is
	// passed over, and so is a TENANT bucket without a tenant.
	Buckets []string
	// Tokens is the cost; 0 only asks whether there is a token, a negative one gives
	// back, at most what is missing.
	Tokens int64
	// Shadow has the part only say what would be: it refuses nothing, and takes nothing
	// that is not there.
	Shadow bool
}

// LeaseShare asks for tokens of every bucket that a permit of the tenant's charges, for
// a sidecar to grant from. They are a permit that holds no slot, moves nobody's tag and
// is never extended: its release says how many were spent, and when it expires all of
// them were. Its result is a *LeaseShareResult.
type LeaseShare struct {
	Pool     string
	Tenant   string
	Category string
	// Tokens is how many the sidecar would use beside what it holds, at least 1.
	Tokens int64
	// Node is the sidecar: of each bucket's share it holds no more than its part,
	// rounded up.
	Node Node
	// Nonce is 64 random bits for the permit's token.
	Nonce uint64
}

// Release gives a permit back. Its result is a *ReleaseResult.
type Release struct {
	Token   Token
	Outcome Outcome
	// Miss reports with OutcomeDone that nothing was found, for a cadence.
	Miss bool
	// ActualCost settles the estimate, or is Absent.
	ActualCost int64
	// RetryAfter is what the provider asked for, or Absent.
	RetryAfter time.Duration
	// Bucket is the one to pause with OutcomeThrottled. Empty means the pool's
	// only POOL bucket.
	Bucket string
}

// EntrySpec is a due-work entry as its producer describes it.
type EntrySpec struct {
	Tenant   string
	Key      string
	Category string
	Route    string
	Group    string
	// DueAt is the due time unless Relative, then DueIn counts from the entry's W.
	DueAt    Wall
	DueIn    time.Duration
	Relative bool
	// Every makes it recur on a fixed grid from the due time on, 0 not.
	Every time.Duration
	// Cadence makes it recur at the pool's cadence of that name, empty not.
	Cadence string
	// MaxAttempts 0 means the pool's. Recurring entries count them for each
	// occurrence.
	MaxAttempts int32
}

// Schedule upserts entries. Its result is a *ScheduleResult.
type Schedule struct {
	Pool    string
	Entries []EntrySpec
}

// Unschedule removes an entry, and what was redriven of its occurrences. Its result is an *UnscheduleResult.
type Unschedule struct {
	Pool   string
	Tenant string
	Key    string
}

// DeadFilter selects dead entries of a pool. Empty fields select all.
type DeadFilter struct {
	Tenant    string
	Lane      string
	KeyPrefix string
	// Outcome is how the last attempt ended.
	Outcome Outcome
}

// DeadCursor is where a Redrive or PurgeDead goes on where one before it ended.
// The zero cursor is the beginning.
type DeadCursor struct {
	// After and Until are places among the dead: that of the last one looked at,
	// and the last one that the first call could mean.
	After, Until uint64
	// Due is when the next one that is redriven comes due, at the rate.
	Due Wall
}

// Redrive puts up to Limit dead entries back into line, those first that have
// been dead for longest. Its result is a *DeadResult.
type Redrive struct {
	Pool   string
	Filter DeadFilter
	// Limit is 1 to MaxRedrive.
	Limit int
	// PerSecond spreads their due times, 0 not.
	PerSecond int64
	From      DeadCursor
}

// PurgeDead drops up to Limit dead entries. Its result is a *DeadResult.
type PurgeDead struct {
	Pool   string
	Filter DeadFilter
	// Limit is 1 to MaxRedrive.
	Limit int
	From  DeadCursor
}

func (TermStart) isOp()     {}
func (ApplyPolicy) isOp()   {}
func (Pause) isOp()         {}
func (*PutTenants) isOp()   {}
func (*Acquire) isOp()      {}
func (Detach) isOp()        {}
func (*ReportDemand) isOp() {}
func (*NextDue) isOp()      {}
func (*Renew) isOp()        {}
func (*Release) isOp()      {}
func (*Take) isOp()         {}
func (*LeaseShare) isOp()   {}
func (*Schedule) isOp()     {}
func (Unschedule) isOp()    {}
func (*Redrive) isOp()      {}
func (*PurgeDead) isOp()    {}
