package admission

import "time"

// Policy is the whole of what operators decide, with the meaning and the
// defaults that the API documents. Zero and nil mean absent.
type Policy struct {
	Pools []PoolPolicy
}

// PoolPolicy is one capacity domain.
type PoolPolicy struct {
	Name       string
	MaxActive  int64
	PermitTTL  time.Duration
	Buckets    []BucketPolicy
	Lanes      []LanePolicy
	Categories map[string]string
	Defaults   TenantPolicy
	Overrides  []TenantPolicy
	// RefuseUnknown refuses tenants without an override or a row of their own.
	RefuseUnknown bool
	Cadences      []CadencePolicy
	Retry         RetryPolicy
	MaxPause      time.Duration
	Limits        LimitsPolicy
	// LockMaxActive is how many permits may hold one lock key.
	LockMaxActive int64
	// DoneRetention is how long a dedupe key that is done is remembered.
	DoneRetention time.Duration
	// DeadRetention is how long a dead entry is kept, in cluster time.
	DeadRetention time.Duration
	// Shadow lets through what would be shed, and only says so.
	Shadow bool
	// Envoy are the rules for the descriptors of Envoy's requests: the first that matches
	// one decides it.
	Envoy []EnvoyRule
}

// EnvoyRule says what of the pool a descriptor takes. The core keeps it, and does not
// know descriptors: who asks for them makes Takes of them.
type EnvoyRule struct {
	Name string
	// Match is the keys that the descriptor has, no more and no fewer, and of each the
	// value, `*` for any, or the beginning of it and a `*`.
	Match map[string]string
	// Tenant is a tenant's id, with `{key}` for the value of that key. Empty means the
	// rule's name and, each after a `/`, the values for which there is a `*`.
	Tenant   string
	Category string
	Buckets  []string
	// Unlimited lets it pass; there are no buckets then.
	Unlimited bool
	Shadow    bool
}

// BucketPolicy is a token bucket.
type BucketPolicy struct {
	Name      string
	Scope     Scope
	Capacity  int64
	Refill    int64
	Period    time.Duration
	PerPermit bool
	Blocked   bool
	OneShot   bool
	// Share has no max where sidecars may hold nothing of it.
	Share TokenShare
}

// TokenShare says how much of a bucket sidecars may hold, and on what terms.
type TokenShare struct {
	// Max is the most tokens that they hold together.
	Max int64
	// TTL is how long one may hold tokens; IdleReturn after how long without a request
	// for them it is to give them back.
	TTL        time.Duration
	IdleReturn time.Duration
	// OnLoss is what one does that holds nothing and can't reach the cluster: with
	// OnLossSafe it lets Safe tokens through in each of the bucket's periods.
	OnLoss OnLoss
	Safe   int64
}

// OnLoss is what a sidecar does with requests for which it holds nothing while it
// can't reach the cluster.
type OnLoss uint8

// What a sidecar may do. None means closed.
const (
	OnLossClosed OnLoss = iota + 1
	OnLossOpen
	OnLossSafe
)

// LanePolicy is a strict priority class.
type LanePolicy struct {
	Name             string
	LeaveSlots       int64
	LeaveTokens      map[string]int64
	TenantCycleLimit int64
	// Batch has no size where the lane has no batches.
	Batch BatchPolicy
	// Yield is nil where the lane never yields.
	Yield *YieldPolicy
}

// BatchPolicy says how many entries of one tenant may share a permit.
type BatchPolicy struct {
	Size int64
	// Only refuses permits for single requests and entries.
	Only bool
	// Linger is how long due entries wait for a whole batch.
	Linger time.Duration
}

// YieldPolicy says when a lane takes nothing new for the sake of those above: on
// above a mark of their depth or age, off when both are at or under the low ones.
type YieldPolicy struct {
	// Above and Resume are depths, where 0 has a meaning: Above is Absent where
	// depth does not matter, Resume for half of it.
	Above  int64
	Resume int64
	// AboveAge and ResumeAge are ages of the oldest; AboveAge is 0 where age does
	// not matter, ResumeAge for half of it.
	AboveAge  time.Duration
	ResumeAge time.Duration
}

// TenantPolicy is a tenant's share and limits. A nil or zero field of an
// override is the default's.
type TenantPolicy struct {
	ID              string
	Weight          int64
	PreferredActive *int64
	MaxActive       int64
	Lane            string
	// LaneMaxActive caps, from a lane down, the permits that it may hold there
	// together.
	LaneMaxActive map[string]int64
	Buckets       map[string]BucketOverride
}

// BucketOverride is one tenant's own numbers for a TENANT bucket.
type BucketOverride struct {
	Capacity int64
	Refill   int64
	Period   time.Duration
	Blocked  bool
}

// RetryPolicy says what happens to entries whose attempt fails.
type RetryPolicy struct {
	MaxAttempts int32
	Base        time.Duration
	Max         time.Duration
}

// CadencePolicy is a named rhythm for recurring entries: base after a hit,
// base·factor^n after the n-th miss in a row, at most max.
type CadencePolicy struct {
	Name   string
	Base   time.Duration
	Factor int64
	Max    time.Duration
}

// LimitsPolicy bounds what a pool holds in memory.
type LimitsPolicy struct {
	Entries          int64
	EntriesPerTenant int64
	// Tenants are those known without an override or a row of their own,
	// NewTenantsPerSecond how many of them may be new.
	Tenants             int64
	NewTenantsPerSecond int64
	// TenantRows are those that PutTenants keeps.
	TenantRows       int64
	RequestIDs       int64
	EndedPermits     int64
	Waiting          int64
	WaitingPerTenant int64
	// PausedGroups are those of all tenants together.
	PausedGroups int64
	// DedupeKeys are those remembered as done.
	DedupeKeys int64
	// Shares are those that sidecars hold at a time.
	Shares int64
}
