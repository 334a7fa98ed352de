package admission

import (
	"cmp"
	"container/heap"
	"iter"
	"slices"
	"time"

	"github.com/tidwall/btree"
)

// A Picture is a pool's shedding at one index, for as long as anybody holds it: it
// may be read from any goroutine, while the state moves on. It is made without
// looking at who is held; that is for its reader.
type Picture struct {
	// Shedding has no held rows.
	Shedding
	pool    *pool
	w       Wall
	demands *btree.BTreeG[demandItem]
	lanes   map[*lane]laneView
	// oneRate says that tenants have one bucket each at most: when its tokens come,
	// nothing of the tenant's own holds entries that wait for them.
	oneRate bool
}

// laneView is what a picture shows of a lane.
type laneView struct {
	laneReasons
	// readyAt is when the pool has tokens for one entry, never where it also lacks
	// something that time alone does not free.
	readyAt [classCount]Instant
}

// HeldFilter selects held rows. Empty fields select all.
type HeldFilter struct {
	Tenant string
	Lane   string
	Reason Reason
}

// Picture returns who is held back in a pool. Rows that it shares with the state are
// copied by the state when it next writes them.
func (s *State) Picture(at Instant, w Wall, pool string) (*Picture, *Error) {
	p := s.pools.byName(pool)
	if p == nil {
		return nil, poolNotFound(pool)
	}
	v := s.shedView(p, at, w)
	pic := &Picture{
		Shedding: Shedding{At: v.at, Index: s.index, Revision: s.revision, Lanes: v.laneStates(), Totals: v.totals()},
		pool:     p, w: w, demands: s.demands.Copy(), lanes: map[*lane]laneView{}, oneRate: len(p.fairUse) == 1,
	}
	s.version++
	for _, l := range p.lanes {
		pic.lanes[l] = v.laneView(l)
	}
	return pic, nil
}

func (v *shedView) laneView(l *lane) laneView {
	view := laneView{laneReasons: v.lanes[l.rank]}
	for k := range classCount {
		view.readyAt[k] = never
		if !l.yielding && !l.paused && l.slotFor(k) && !v.behind(l, k) && l.grants(1) {
			view.readyAt[k] = l.tokensAt(1, v.at)
		}
	}
	return view
}

// grants says whether the lane can ever have so many tokens of each POOL bucket.
func (l *lane) grants(cost int64) bool {
	for i := range l.pool.buckets {
		b := &l.pool.buckets[i]
		if b.charge(cost) > b.capacity-l.leaveTokens[i] {
			return false
		}
	}
	return true
}

// All returns the held rows that the filter selects: tenants in the order in which
// the pool came to know them, lanes by name. RetryAfter is absent from more of them
// than in State.Shedding: of demand that waits in line it is not told.
func (p *Picture) All(f HeldFilter) iter.Seq[HeldTenant] {
	return func(yield func(HeldTenant) bool) {
		p.demands.Scan(func(i demandItem) bool {
			r := i.row
			if r.tenant.pool != p.pool || !r.standing.wants ||
				f.Tenant != "" && f.Tenant != r.tenant.id || f.Lane != "" && f.Lane != r.lane.name {
				return true
			}
			row := r.held(p.w)
			view := p.lanes[r.lane]
			row.Reason = view.of(&r.standing)
			if row.Reason == ReasonNone || f.Reason != ReasonNone && f.Reason != row.Reason {
				return true
			}
			row.RetryAfter = p.retryAfter(r, &view)
			return yield(row)
		})
	}
}

// retryAfter returns the time after which one more of the demand's entries could be
// served, where the row alone tells.
func (p *Picture) retryAfter(r *demandRow, view *laneView) time.Duration {
	at, readyAt := r.seats[fromEntries], never
	switch {
	case r.standing.waiting > 0:
	case at.seat.ordered():
		readyAt = view.readyAt[at.seat.class()]
	case at.seat == heldSeat(TenantRate) && at.wakeAt != 0 && p.oneRate: // of which class it will be is not known
		readyAt = max(at.wakeAt, view.readyAt[entitled], view.readyAt[borrowing])
	}
	if readyAt <= p.At {
		return Absent
	}
	return untilMillis(p.At, readyAt)
}

// TopTenant is what one tenant has held back.
type TopTenant struct {
	Tenant string
	// Held are its rows, one for each lane; Due and Waiting their sums.
	Held         []HeldTenant
	Due, Waiting int64
}

func (t *TopTenant) more(o *TopTenant) bool {
	return cmp.Or(cmp.Compare(t.Due+t.Waiting, o.Due+o.Waiting), cmp.Compare(o.Tenant, t.Tenant)) > 0
}

// Top returns the n tenants with the most held that the filter selects, due entries
// and waiting requests together, the first of them first.
func (p *Picture) Top(n int, f HeldFilter) []TopTenant {
	var top leastHeld
	own := TopTenant{}
	add := func() {
		if len(own.Held) == 0 || len(top) == n && !own.more(&top[0]) {
			return
		}
		heap.Push(&top, own)
		if len(top) > n {
			heap.Pop(&top)
		}
	}
	for row := range p.All(f) {
		if row.Tenant != own.Tenant { // rows of one tenant follow each other
			add()
			own = TopTenant{Tenant: row.Tenant}
		}
		own.Held = append(own.Held, row)
		own.Due, own.Waiting = own.Due+row.Due, own.Waiting+row.Waiting
	}
	add()
	slices.SortFunc(top, func(a, b TopTenant) int {
		if a.more(&b) {
			return -1
		}
		return 1
	})
	return top
}

// leastHeld is a heap whose first tenant has the least held.
type leastHeld []TopTenant

func (h leastHeld) Len() int           { return len(h) }
func (h leastHeld) Less(i, j int) bool { return h[j].more(&h[i]) }
func (h leastHeld) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *leastHeld) Push(x any)        { *h = append(*h, x.(TopTenant)) }
func (h *leastHeld) Pop() any {
	old := *h
	t := old[len(old)-1]
	*h = old[:len(old)-1]
	return t
}
