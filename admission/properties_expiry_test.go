package admission

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A refusal tells when the first of the permits expires that hold what blocks it:
// none of them ends earlier, and one then. And it advises when to ask again exactly
// where time alone does not tell, and something else can help.
func TestEarliestExpiryAndPollAfter(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawAcquire(t)
		op.IssuedAt = 0
		d := h.Decide(h.t, op)
		if d.Err != nil || d.Decision.Shed == nil {
			return
		}
		shed, at := d.Decision.Shed, time.Duration(Absent)
		for _, l := range shed.Blocking {
			if l.Holders == 0 && !h.lentAway(op, l) {
				continue
			}
			h.permits.Scan(func(i permitItem) bool {
				left := ceilMillis(max(i.row.expires.Sub(h.lease()), 0))
				if h.holdsLimit(i.row, op, shed.Lane, l) && (at == Absent || left < at) {
					at = left
				}
				return true
			})
		}
		if shed.EarliestExpiry != at {
			t.Fatalf("%+v: earliest expiry %s, want %s: %+v", op, shed.EarliestExpiry, at, shed.Blocking)
		}
		advice := time.Duration(Absent)
		if shed.RetryAfter == Absent && !h.hopeless(op, shed) {
			if advice = longestPoll; at != Absent {
				advice = min(advice, max(at, time.Millisecond))
			}
			h.tally["advised to poll"]++
		}
		want(t, "poll after", shed.PollAfter, advice)
	})
}

// lentAway says whether a bucket lacks tokens as long as sidecars hold some.
func (h *history) lentAway(op *Acquire, l Limit) bool {
	spec := h.bucketNamed(op, l)
	if spec == nil || spec.blocked || spec.oneShot || l.Asked > l.Capacity-l.Reserve {
		return false
	}
	lent := int64(0)
	h.permits.Scan(func(i permitItem) bool {
		if t := i.row.demand.tenant; i.row.wanted > 0 && t.pool.name == op.Pool && (spec.scope == ScopePool || t.id == op.Tenant) && spec.lends(i.row) {
			lent += i.row.cost
		}
		return true
	})
	return lent+l.Asked+l.Reserve > l.Capacity
}

// bucketNamed returns the bucket that a limit is of, or nil.
func (h *history) bucketNamed(op *Acquire, l Limit) *bucketSpec {
	p := h.pools.byName(op.Pool)
	if l.Scope == ScopeTenant {
		return specNamed(p.tenant(op.Tenant).share.buckets, l.Name)
	}
	if b := p.bucket(l.Name); b != nil && l.Scope == ScopePool {
		return b.bucketSpec
	}
	return nil
}

// holdsLimit says whether the permit is one of those that hold a limit which blocks
// the request in the lane.
func (h *history) holdsLimit(p *permitRow, op *Acquire, lane string, l Limit) bool {
	t, cfg := p.demand.tenant, h.poolPolicy(op.Pool)
	if t.pool.name != op.Pool || l.Scope == ScopeTenant && t.id != op.Tenant {
		return false
	}
	active := h.actives()
	from := func(tenant string, rank int) (n int64) {
		for _, below := range cfg.lanes()[rank:] {
			n += active.count(op.Pool, below.Name, tenant)
		}
		return n
	}
	if spec := h.bucketNamed(op, l); spec != nil {
		return p.wanted > 0 && spec.lends(p)
	}
	switch l.Name {
	case "lock_key":
		return p.lock == op.LockKey
	case "dedupe_key":
		return p.job == op.DedupeKey
	case "max_active", "preferred_active":
		return !p.uncounted
	}
	for rank, above := range cfg.lanes()[:cfg.rank(lane)+1] {
		counts := !p.uncounted && cfg.rank(p.demand.lane.name) >= rank
		leaves := l.Name == "leave_slots" && above.LeaveSlots == l.Reserve && from("", rank) == l.Used
		capped := l.Name == "lane_max_active" && cfg.laneCaps(op.Tenant)[above.Name] == l.Capacity && from(op.Tenant, rank) == l.Used
		if counts && (leaves || capped) {
			return true
		}
	}
	return false
}

// hopeless says whether neither time nor anybody but the policy's author can let
// the request pass.
func (h *history) hopeless(op *Acquire, shed *Shed) bool {
	cfg := h.poolPolicy(op.Pool)
	for _, l := range shed.Blocking {
		if l.Name == "dedupe_key" && l.Holders == 0 || l.Name == "batch.only" {
			return true
		}
		for _, b := range cfg.Buckets {
			own := cfg.bucketOf(b, op.Tenant)
			short := l.Used+l.Asked+l.Reserve > l.Capacity
			if b.Name == l.Name && (own.Blocked || own.OneShot && short || l.Asked > l.Capacity-l.Reserve) {
				return true
			}
		}
	}
	return false
}
