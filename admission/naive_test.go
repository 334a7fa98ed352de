package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// naive decides by the same rules as admission.State, and does it as plainly as
// possible: lists that are scanned, sorted and counted anew for each question,
// exact fractions for tokens, no index and nothing remembered that could be
// worked out. Of admission it knows the words (operations, results, policy) and
// no code. The naive_*_test.go files are all of it.
type naive struct {
	index  uint64
	t      admission.Instant
	w      admission.Wall
	offset time.Duration // of the gaps in which nobody led
	polled bool          // whether the present contest has calls to serve

	policy    admission.Policy
	revision  int64
	appliedAt admission.Wall
	pools     []*naivePool

	permits  []*naivePermit
	ended    []naiveEnded
	requests []naiveRequest
	waiters  []*naiveWaiter
	done     []naiveDone

	grants int64  // ever, for fences
	seq    uint64 // places in line ever given
	deaths uint64 // ever
	meets  uint64 // tenants that ever became known

	// Of the entry being decided.
	granted uint32 // permits and places in line
	calls   []*naiveCall
	ends    []admission.WaitEnd
	glances []naiveGlance
}

// naivePool is a pool. Its tenants are never dropped; one that the rules would
// have forgotten is not known.
type naivePool struct {
	policy  admission.PoolPolicy // with the defaults filled in
	puts    []admission.TenantPolicy
	lanes   []*naiveLane
	buckets []*naiveBucket
	tenants []*naiveTenant
	entries []*naiveEntry
	skipped int64 // boundaries of grids
	swept   int64 // dead entries
	expired int64 // permits
	// newcomers is the bucket of limits.new_tenants_per_second.
	newcomers *naiveBucket
	draining  bool
	// by reserved tokens when the dispatch of this entry was over.
	by *naiveTurn

	pausedGroups []naiveGroup
}

type naiveLane struct {
	name     string
	paused   bool
	yielding bool
	draining bool
	orders   [2]naiveOrder
}

// naiveOrder is what stays of one class of a lane: the floor of its tags, the
// highest tag handed out, and whether this entry served or left it.
type naiveOrder struct {
	floor, top int64
	touched    bool
}

type naiveTenant struct {
	id      string
	paused  bool
	known   bool
	idleAt  admission.Instant // from when on nothing is its own, or when to look again, unless 0
	spare   bool              // nothing tells it from a new one
	number  uint64            // of the tenants that became known
	buckets []*naiveBucket
	demands []*naiveDemand
}

// naiveDemand is what a tenant wants in a lane: its tags, the places of its
// sources in an order and its routes in turn.
type naiveDemand struct {
	tenant *naiveTenant
	lane   string
	tags   [2]int64
	rems   [2]int64
	weight int64
	places [sources]naivePlace
	aside  bool // with its entries, for the rest of a dispatch
	ring   []string
	ready  []naiveReady
	report naiveReport
}

// apply decides an entry, in the order of the rules.
func (n *naive) apply(e admission.Entry) []admission.Result {
	n.index, n.t, n.w = e.Index, max(n.t, e.T), e.W
	n.granted, n.calls, n.ends = 0, nil, nil
	results := make([]admission.Result, len(e.Ops))
	for _, op := range e.Ops {
		if start, ok := op.(admission.TermStart); ok {
			n.t, n.offset = n.t.Add(start.Gap), n.offset+start.Gap
		}
	}
	n.finishDrains()
	for i, op := range e.Ops {
		switch op := op.(type) {
		case admission.TermStart:
			n.detachAll()
		case admission.ApplyPolicy:
			results[i] = n.applyPolicy(op)
		case *admission.PutTenants:
			results[i] = n.putTenants(op)
		case admission.Pause:
			results[i] = n.pause(op)
		case admission.Detach:
			n.detach(op.Waiter)
		}
	}
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *admission.Renew:
			results[i] = n.renew(op)
		case *admission.Release:
			results[i] = n.release(op)
		case *admission.Take:
			n.giveBack(op)
		}
	}
	n.expire()
	for _, p := range n.pools {
		n.endReports(p)
		n.sweepOld(p)
		n.forgetOld(p)
		n.forgetIdle(p)
	}
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *admission.Schedule:
			results[i] = n.schedule(op)
		case admission.Unschedule:
			results[i] = n.unschedule(op)
		case *admission.ReportDemand:
			results[i] = n.reportDemand(op)
		case *admission.Redrive:
			results[i] = n.redrive(op)
		case *admission.PurgeDead:
			results[i] = n.purge(op)
		}
	}
	n.promote()
	n.dispatch(e.Ops, results)
	n.endWaits()
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *admission.Take:
			results[i] = n.take(op)
		case *admission.LeaseShare:
			results[i] = n.leaseShare(op)
		}
	}
	for _, p := range n.pools {
		n.endBusyPeriods(p)
		p.makeRoom()
	}
	return results
}

func (n *naive) pool(name string) *naivePool {
	for _, p := range n.pools {
		if p.policy.Name == name {
			return p
		}
	}
	return nil
}

func (p *naivePool) lane(name string) *naiveLane {
	for _, l := range p.lanes {
		if l.name == name {
			return l
		}
	}
	return nil
}

// rank is a lane's place, 0 the highest.
func (p *naivePool) rank(name string) int {
	return slices.IndexFunc(p.policy.Lanes, func(l admission.LanePolicy) bool { return l.Name == name })
}

// laneOf maps a category to a lane, for something new of a tenant.
func (p *naivePool) laneOf(tenant, category string) (lane string, err *admission.Error) {
	if err := p.refused(tenant); err != nil {
		return "", err
	}
	if category == "" {
		return p.terms(tenant).Lane, nil
	}
	if lane, ok := p.policy.Categories[category]; ok {
		return lane, nil
	}
	return "", noCategory(p.policy.Name, category)
}

// tenant returns a tenant, new if need be. It being here means nothing: see known.
func (p *naivePool) tenant(id string) *naiveTenant {
	for _, t := range p.tenants {
		if t.id == id {
			return t
		}
	}
	t := &naiveTenant{id: id}
	for range p.policy.Buckets {
		t.buckets = append(t.buckets, newNaiveBucket())
	}
	p.tenants = append(p.tenants, t)
	return t
}

func (t *naiveTenant) demand(lane string) *naiveDemand {
	for _, d := range t.demands {
		if d.lane == lane {
			return d
		}
	}
	d := &naiveDemand{tenant: t, lane: lane}
	for source := range d.places {
		d.places[source].class = noClass
	}
	t.demands = append(t.demands, d)
	return d
}

// active counts the live permits with a slot that f selects. Its arguments are
// the tenant and the rank of the lane.
func (n *naive) active(p *naivePool, f func(tenant string, rank int) bool) int64 {
	var count int64
	for _, permit := range n.permits {
		if permit.pool == p && !permit.uncounted && f(permit.tenant, p.rank(permit.lane)) {
			count++
		}
	}
	return count
}
