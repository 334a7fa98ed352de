package admission

import (
	"time"
)

// Header is what an Image knows beside its rows.
type Header struct {
	Index       uint64
	T           Instant
	W           Wall
	LeaseOffset time.Duration
	Epoch       uint16
	// Grants and Seq are the counters behind fences and places in line.
	Grants int64
	Seq    uint64
	// Revision and AppliedAt are those of the policy.
	Revision  int64
	AppliedAt Wall
}

// Row is one row of an Image: PolicyRow, PoolRow, TenantRow, RouteRow, EntryRow,
// PermitRow, RequestRow. Rows come in this order of types, sorted by key within
// each.
type Row interface{ isRow() }
