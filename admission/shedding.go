package admission

import "time"

// Reason is why demand is held back, in precedence.
type Reason uint8

// The reasons. Their order is the order in which they are told.
const (
	ReasonNone Reason = iota
	NeverGrantable
	Duplicate
	Paused
	Blocked
	Exhausted
	QueueFull
	Cardinality
	BatchOnly
	TenantCap
	LaneCap
	NodeCap
	LockBusy
	TenantRate
	LaneYield
	ProviderPaused
	PoolCap
	PoolRate
	ReclaimWait
	CycleCap
	BatchFull
	reasonCount
)

var reasonNames = [reasonCount]string{
	"NONE", "NEVER_GRANTABLE", "DUPLICATE", "PAUSED", "BLOCKED", "EXHAUSTED", "QUEUE_FULL", "CARDINALITY",
	"BATCH_ONLY", "TENANT_CAP", "LANE_CAP", "NODE_CAP", "LOCK_BUSY", "TENANT_RATE", "LANE_YIELD", "PROVIDER_PAUSED",
	"POOL_CAP", "POOL_RATE", "RECLAIM_WAIT", "CYCLE_CAP", "BATCH_FULL",
}

// String returns the reason's API name.
func (r Reason) String() string {
	if r >= reasonCount {
		return "UNKNOWN"
	}
	return reasonNames[r]
}

// SheddingQuery says what of a pool's shedding to show.
type SheddingQuery struct {
	Pool string
	// Tenant restricts the held rows to one tenant; empty shows up to HeldRows
	// tenants.
	Tenant   string
	HeldRows int
	// Call is the NextDue that is being answered, or nil.
	Call *NextDueResult
}

// Shedding is the state of a pool beside an answer.
type Shedding struct {
	At       Instant
	Index    uint64
	Revision int64
	Lanes    []LaneState
	Held     []HeldTenant
	Totals   []HeldTotal
	More     bool
}

// LaneState is how one lane stands. OldestAge is 0 when Depth is.
type LaneState struct {
	Lane      string
	Depth     int64
	OldestAge time.Duration
	// Yielding says that it takes nothing new for the sake of lanes above.
	Yielding bool
}

// HeldTenant is what one tenant has held back in one lane.
type HeldTenant struct {
	Tenant string
	Lane   string
	Reason Reason
	// Due are entries, Waiting requests in line.
	Due       int64
	Waiting   int64
	OldestAge time.Duration
	// RetryAfter is whole milliseconds, rounded up, or Absent.
	RetryAfter time.Duration
}

// HeldTotal counts the held (tenant, lane) pairs of one reason.
type HeldTotal struct {
	Reason  Reason
	Tenants int64
}

// PoolHealth is how one pool stands.
type PoolHealth struct {
	Pool string
	// MaxActive 0 means no cap.
	MaxActive int64
	Active    int64
	Lanes     []LaneHealth
	Buckets   []BucketHealth
	Tenants   int64
	Entries   int64
	Dead      int64
	// Waiting are requests in line.
	Waiting int64
	// Swept counts the dead entries that were dropped for their age or number.
	Swept int64
	// Skipped counts the boundaries of fixed grids that were missed for good.
	Skipped int64
	// Expired counts the permits that ended by themselves.
	Expired int64
	// Debt is by how much the permits exceed MaxActive, TenantDebt by how much they
	// exceed the caps of their tenants, all together.
	Debt, TenantDebt int64
	Held             []HeldTotal
	// Draining says that the policy has it no more: it goes when it is empty.
	Draining bool
}

// LaneHealth is how one lane stands.
type LaneHealth struct {
	LaneState
	Active int64
	// Borrowed are those of Active that were beyond what their tenants are entitled to
	// when they were granted.
	Borrowed int64
	// ReclaimWait counts the tenants that wait for a slot which they are entitled to:
	// none is free.
	ReclaimWait int64
	// ReclaimAge is how long the oldest of what these want has been due or waiting; what
	// is only reported has no age.
	ReclaimAge time.Duration
	Waiting    int64
	Paused     bool
	Draining   bool // as for pools
}

// BucketHealth is how one POOL bucket stands.
type BucketHealth struct {
	Bucket   string
	Level    int64
	Capacity int64
	Paused   bool
	// PausedFor is the time until a provider's pause ends, or Absent.
	PausedFor time.Duration
	// Lent are the tokens that sidecars hold.
	Lent int64
}
