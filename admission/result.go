package admission

import "time"

// Result is what an operation did: for each Op of an Entry the type that the
// Op's comment names. TermStart has none (nil). Results belong to the log: every
// replica computes the same.
type Result any

// PolicyResult is the result of ApplyPolicy.
type PolicyResult struct {
	Revision int64
	Changed  bool
	// Draining is what goes only when it is empty.
	Draining []Draining
	Err      *Error
}

// Draining is a pool, or a lane of one, that takes nothing new and goes when it
// is empty.
type Draining struct {
	Pool string
	// Lane is empty where the whole pool goes.
	Lane    string
	Permits int64
	Entries int64
	Waiting int64
}

// PutTenantsResult is the result of PutTenants.
type PutTenantsResult struct {
	// Changed counts the rows that are not as before.
	Changed int
	Err     *Error
}

// PauseResult is the result of Pause.
type PauseResult struct {
	Err *Error
}

// PermitState is what has become of a permit.
type PermitState uint8

// The states of a permit.
const (
	PermitLive PermitState = iota + 1
	PermitReleased
	PermitLost
	PermitCancelled
	// PermitSpent is that of a rate_only grant: tokens were taken and there is
	// nothing to give back.
	PermitSpent
)

// Permit is a granted permit as its holder sees it.
type Permit struct {
	Token     Token
	Fence     int64
	ExpiresIn time.Duration
	Pool      string
	Tenant    string
	Lane      string
	State     PermitState
}

// Decision grants, sheds or waits: Shed is nil and Waiter zero exactly when it
// grants.
type Decision struct {
	Permit Permit
	// Borrowed says that the permit is beyond what the tenant is entitled to.
	Borrowed bool
	// WouldShed is why a pool that only watches would have refused. The permit
	// was charged nothing and counts in no cap.
	WouldShed *Shed
	Shed      *Shed
	// Waiter names the Acquire in line. Its end is told by State.Ended after a
	// later entry.
	Waiter   WaiterKey
	Replayed bool
}

// Granted says whether the caller may work.
func (d *Decision) Granted() bool { return d.Shed == nil && d.Waiter == WaiterKey{} }

// WaitEnd is how the wait of an Acquire ended.
type WaitEnd struct {
	Waiter WaiterKey
	Pool   string
	Tenant string
	Result *AcquireResult
}

// ReportResult is the result of ReportDemand.
type ReportResult struct {
	Err *Error
}

// Shed is a refusal: why, and when to come back.
type Shed struct {
	Reason Reason
	// Lane is the one that the request's category means.
	Lane     string
	Blocking []Limit
	// RetryAfter, PollAfter and EarliestExpiry are whole milliseconds, rounded
	// up, or Absent.
	RetryAfter     time.Duration
	PollAfter      time.Duration
	EarliestExpiry time.Duration
	// MaxGrantable is set with NeverGrantable, else Absent.
	MaxGrantable int64
}

// Scope says what a limit belongs to.
type Scope uint8

// The scopes. Buckets have the first two.
const (
	ScopePool Scope = iota + 1
	ScopeTenant
	ScopeLane
)

// Limit is one limit that blocks a request.
type Limit struct {
	Name     string
	Scope    Scope
	Capacity int64
	Used     int64
	Asked    int64
	Reserve  int64
	// RetryAfter is whole milliseconds, rounded up, or Absent.
	RetryAfter time.Duration
	Holders    int64
}

// AcquireResult is the result of Acquire.
type AcquireResult struct {
	Decision Decision
	Err      *Error
}

// Claim is an entry under a permit.
type Claim struct {
	Permit   Permit
	Key      string
	Category string
	Route    string
	Group    string
	// DueAt is when the entry, or this occurrence of it, first came due: with
	// Every a boundary of the grid.
	DueAt   Wall
	Attempt int32
	// CatchUp says that later boundaries are due as well.
	CatchUp bool
	// Batch is the same for the claims of one answer that share a permit, 0 for a
	// claim with a permit of its own.
	Batch int32
}

// NextDueResult is the result of NextDue. Pass it to State.Shedding to learn
// who was held back by this very call.
type NextDueResult struct {
	Claims   []Claim
	Replayed bool
	Err      *Error

	// What held back the rest: lanes by rank that were asked for and what the
	// call's own limits left of them, MaxItems reached, demands set aside for their
	// cycle limit, or the call refused.
	op          *NextDue
	lanes       []bool
	left        []int64
	full        bool
	cycleCapped []demandKey
	refused     Reason
}

// demandKey names a demand in a result.
type demandKey struct {
	tenant uint64
	lane   string
}

// LeaseResult is what Renew or Release did to a permit.
type LeaseResult uint8

// The results.
const (
	LeaseRenewed LeaseResult = iota + 1
	LeaseReleased
	LeaseAlreadyReleased
	LeaseLost
	LeaseCancelled
)

// RenewResult is the result of Renew: one Renewal for each token.
type RenewResult struct {
	Renewals []Renewal
	// Pool and Tenant are those of the first known token, or empty.
	Pool, Tenant string
}

// Renewal is what became of one token.
type Renewal struct {
	Result LeaseResult
	// ExpiresIn is set with LeaseRenewed, else 0.
	ExpiresIn time.Duration
}

// ReleaseResult is the result of Release.
type ReleaseResult struct {
	Result LeaseResult
	// Pool and Tenant are those of the permit, empty if it is not known.
	Pool, Tenant string
	Err          *Error
}

// TakeResult is the result of Take.
type TakeResult struct {
	// Held says of each part why it is refused, or would be if it did not only watch; nil
	// where it is not. A part that gives back never is.
	Held []*Shed
	// Refused says that a part which does not only watch is: nothing was taken.
	Refused bool
	Err     *Error
}

// LeaseShareResult is the result of LeaseShare: without Shed and Err a share.
type LeaseShareResult struct {
	// Permit is the share, and Tokens how many it is.
	Permit Permit
	Tokens int64
	// Revision is that of the policy by which it was decided.
	Revision int64
	// IdleReturn is after how long without a request it is to be given back.
	IdleReturn time.Duration
	// OnLoss is what to do without tokens and without the cluster: with OnLossSafe to let
	// Safe tokens through in each SafePeriod.
	OnLoss     OnLoss
	Safe       int64
	SafePeriod time.Duration
	// Shed is why a permit for a single token would be refused. Where other sidecars hold
	// all that they may, nothing is among its Blocking.
	Shed *Shed
	Err  *Error
}

// ScheduleStatus is what Schedule did with one entry.
type ScheduleStatus uint8

// The statuses.
const (
	Scheduled ScheduleStatus = iota + 1
	ScheduleUnchanged
	ScheduleReplaced
	ScheduleShed
	ScheduleError
)

// ScheduleResult is the result of Schedule: one row for each entry, or Err for
// all.
type ScheduleResult struct {
	Entries []ScheduledEntry
	Err     *Error
}

// ScheduledEntry is what became of one entry.
type ScheduledEntry struct {
	Status ScheduleStatus
	// Reason is set with ScheduleShed.
	Reason Reason
	// Err is set with ScheduleError.
	Err *Error
}

// UnscheduleResult is the result of Unschedule.
type UnscheduleResult struct {
	WasClaimed bool
	Err        *Error
}

// DeadResult is the result of Redrive and PurgeDead.
type DeadResult struct {
	// Count is how many entries it redrove or dropped.
	Count int
	// Next is where to go on. The zero cursor says that no more are left.
	Next DeadCursor
	Err  *Error
}
