package admission

import (
	"fmt"
	"hash/fnv"
	"iter"
	"time"

	"github.com/tidwall/btree"
)

// Image is the state at one index, for as long as anybody holds it: copies of
// the trees, made without copying a row. It may be read from any goroutine.
type Image struct {
	header Header
	policy PolicyRow
	past   []RevisionRow
	pools  []PoolRow
	rows
}

// Header is what an Image knows beside its rows.
type Header struct {
	Index       uint64
	T           Instant
	W           Wall
	LeaseOffset time.Duration
	Epoch       uint16
	// Grants and Seq are the counters behind fences and places in line; Pools is
	// the last number given to a pool.
	Grants int64
	Seq    uint64
	Pools  uint32
	// Revision and AppliedAt are those of the policy.
	Revision  int64
	AppliedAt Wall
}

// Snapshot returns the state as it is. Rows that the image shares with the state
// are copied by the state when it next writes them.
func (s *State) Snapshot() *Image {
	im := &Image{
		header: Header{
			Index: s.index, T: s.t, W: s.w, LeaseOffset: s.leaseOffset, Epoch: s.epoch,
			Grants: s.grants, Seq: s.seq, Pools: s.pools.nums, Revision: s.revision, AppliedAt: s.appliedAt,
		},
		policy: PolicyRow{s.policy, s.draining},
		past:   s.past,
		rows:   s.rows.copy(),
	}
	for _, p := range s.pools.list {
		im.pools = append(im.pools, p.row())
	}
	s.version++
	return im
}

// Header returns what the image knows beside its rows.
func (im *Image) Header() Header { return im.header }

// Rows returns the image's rows in the order that Restore needs: the policy, those
// before it, then pools, put rows, tenants, paused groups, demands, queues, entries, permits, parts of
// permits, waiters, released permits, requests, jobs done, each sorted by key.
func (im *Image) Rows() iter.Seq[Row] {
	return func(yield func(Row) bool) {
		_ = yield(im.policy) &&
			all(im.past, yield) &&
			all(im.pools, yield) &&
			scan(im.puts, yield, (*putRow).export) &&
			scan(im.tenants, yield, tenantItem.export) &&
			scan(im.pausedGroups, yield, pausedGroup.export) &&
			scan(im.demands, yield, demandItem.export) &&
			scan(im.dueQueues, yield, queueItem.export) &&
			scan(im.entries, yield, entryItem.export) &&
			scan(im.permits, yield, permitItem.export) &&
			scan(im.parts, yield, partItem.export) &&
			scan(im.waiters, yield, (*waiterRow).export) &&
			scan(im.ended, yield, endedItem.export) &&
			scan(im.requests, yield, requestItem.export) &&
			scan(im.dones, yield, (*doneRow).export)
	}
}

func all[R Row](rows []R, yield func(Row) bool) bool {
	for _, r := range rows {
		if !yield(r) {
			return false
		}
	}
	return true
}

// scan yields every row of a tree, and says whether to go on.
func scan[T any, R Row](tree *btree.BTreeG[T], yield func(Row) bool, export func(T) R) bool {
	more := true
	tree.Scan(func(item T) bool {
		more = yield(export(item))
		return more
	})
	return more
}

// Digest names the image's content: two states that would answer alike have the
// same.
func (im *Image) Digest() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%+v\n", im.header)
	for row := range im.Rows() {
		switch row := row.(type) {
		case PolicyRow:
			row.Policy.describe(h)
			fmt.Fprintln(h, "draining")
			row.Draining.describe(h)
		case RevisionRow:
			fmt.Fprintf(h, "%d %d ", row.Revision, row.AppliedAt)
			row.Policy.describe(h)
		case PutRow:
			fmt.Fprintf(h, "%T %s ", row, row.Pool)
			row.Tenant.describe(h)
		default:
			fmt.Fprintf(h, "%T %+v\n", row, row)
		}
	}
	return h.Sum64()
}
