package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// naiveLimit is a limit that blocks a request. Its RetryAfter is rounded when it is
// told.
type naiveLimit struct {
	admission.Limit
	reason admission.Reason
	bucket bool // of tokens
	// own limits are the tenant's, or pauses: who meets one stands in nobody's way.
	own bool
	// most is what could be granted at all, with NeverGrantable.
	most int64
	// frees says which permits may free a limit of slots when they expire; nil
	// means none does.
	frees func(*naivePermit) bool
}

// leave is what a lane and those below it leave in a bucket.
func (p *naivePool) leave(lane, bucket string) (most int64) {
	for _, l := range p.policy.Lanes[:p.rank(lane)+1] {
		most = max(most, l.LeaveTokens[bucket])
	}
	return most
}

// naiveWant is what a grant takes.
type naiveWant struct {
	cost     int64
	rateOnly bool // no slot
	single   bool // never part of a batch
}

func wantOf(op *admission.Acquire) naiveWant { return naiveWant{op.Cost, op.RateOnly, true} }

// limits are all that blocks a request of a tenant in a lane at an instant,
// whoever else waits.
func (n *naive) limits(p *naivePool, tenant, lane string, want naiveWant, at admission.Instant) []naiveLimit {
	all := n.ownLimits(p, tenant, lane, want, at)
	if terms := p.batch(lane); want.single && terms.Only {
		all = append(all, naiveLimit{reason: admission.BatchOnly, Limit: admission.Limit{
			Name: "batch.only", Scope: admission.ScopeLane, Capacity: terms.Size, Asked: 1, RetryAfter: admission.Absent,
		}})
	}
	return append(all, n.poolLimits(p, p.tenant(tenant).demand(lane), want, at)...)
}

// poolLimits are those that are not the tenant's own.
func (n *naive) poolLimits(p *naivePool, d *naiveDemand, want naiveWant, at admission.Instant) []naiveLimit {
	var all []naiveLimit
	if p.lane(d.lane).yielding {
		all = append(all, naiveLimit{
			Limit:  admission.Limit{Name: "yield", Scope: admission.ScopeLane, Asked: 1, RetryAfter: admission.Absent},
			reason: admission.LaneYield,
		})
	}
	all = append(all, n.bucketLimits(p, d.tenant.id, d.lane, admission.ScopePool, want.cost, at)...)
	if want.rateOnly {
		return all
	}
	return append(all, n.poolSlots(p, d.tenant.id, d.lane, at)...)
}

// ownLimits are those of the tenant's own and pauses: who meets one stands in
// nobody's way.
func (n *naive) ownLimits(p *naivePool, tenant, lane string, want naiveWant, at admission.Instant) []naiveLimit {
	var all []naiveLimit
	if p.tenant(tenant).paused {
		all = append(all, pausedLimit(admission.ScopeTenant))
	}
	if p.lane(lane).paused {
		all = append(all, pausedLimit(admission.ScopeLane))
	}
	all = append(all, n.bucketLimits(p, tenant, lane, admission.ScopeTenant, want.cost, at)...)
	if want.rateOnly {
		return all
	}
	return append(all, n.tenantSlots(p, tenant, lane)...)
}

func ownLimit(limits []naiveLimit) bool {
	return slices.ContainsFunc(limits, func(l naiveLimit) bool { return l.own })
}

func pausedLimit(scope admission.Scope) naiveLimit {
	return naiveLimit{
		Limit:  admission.Limit{Name: "paused", Scope: scope, Asked: 1, RetryAfter: admission.Absent},
		reason: admission.Paused, own: true,
	}
}

func (n *naive) bucketLimits(
	p *naivePool, tenant, lane string, scope admission.Scope, cost int64, at admission.Instant,
) []naiveLimit {
	var all []naiveLimit
	for i, policy := range p.policy.Buckets {
		if policy.Scope != scope {
			continue
		}
		b, terms := p.buckets[i], p.bucketTerms(i, tenant)
		l := naiveLimit{bucket: true, Limit: admission.Limit{
			Name: policy.Name, Scope: policy.Scope, Capacity: terms.capacity, Asked: cost, RetryAfter: admission.Absent,
		}}
		if policy.PerPermit {
			l.Asked = 1
		}
		if policy.Scope == admission.ScopeTenant {
			b, l.own = p.tenant(tenant).buckets[i], true
		} else {
			l.Reserve = p.leave(lane, policy.Name)
		}
		l.Used = b.used(terms, at)
		if l.judge(b, terms, at); l.reason != admission.ReasonNone {
			all = append(all, l)
		}
	}
	return all
}

// judge finds why a bucket blocks, if it does.
func (l *naiveLimit) judge(b *naiveBucket, terms naiveTerms, at admission.Instant) {
	short := l.Used+l.Asked+l.Reserve > l.Capacity
	switch {
	case terms.blocked:
		l.reason = admission.Blocked
		return
	case l.Asked > l.Capacity-l.Reserve:
		l.reason, l.most = admission.NeverGrantable, l.Capacity-l.Reserve
		return
	case terms.oneShot && short:
		l.reason = admission.Exhausted
		return
	case short && l.own:
		l.reason = admission.TenantRate
	case b.paused(at):
		l.reason = admission.ProviderPaused
	case short:
		l.reason = admission.PoolRate
	}
	l.RetryAfter = b.wait(terms, at, l.Asked, l.Reserve)
	if b.lent+l.Asked+l.Reserve > l.Capacity {
		l.frees = func(permit *naivePermit) bool { return permit.lentOf(b) > 0 }
	}
}

// millis rounds up to whole milliseconds; what is absent stays absent.
func millis(d time.Duration) time.Duration {
	if d == admission.Absent {
		return d
	}
	return (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
}

// slotLimit completes a limit of slots by who holds them, if it blocks.
func (n *naive) slotLimit(p *naivePool, l naiveLimit, holds func(*naivePermit) bool) []naiveLimit {
	for _, permit := range n.permits {
		if permit.pool == p && !permit.uncounted && holds(permit) {
			l.Used++
		}
	}
	l.Asked, l.Holders, l.RetryAfter = 1, l.Used, admission.Absent
	if l.Used+1 <= l.Capacity-l.Reserve {
		return nil
	}
	return []naiveLimit{l}
}

func (n *naive) tenantSlots(p *naivePool, tenant, lane string) []naiveLimit {
	terms := p.terms(tenant)
	var all []naiveLimit
	add := func(name string, most int64, reason admission.Reason, top int) {
		if most == 0 {
			return
		}
		his := func(permit *naivePermit) bool {
			return permit.pool == p && !permit.uncounted && permit.tenant == tenant && p.rank(permit.lane) >= top
		}
		l := admission.Limit{Name: name, Scope: admission.ScopeTenant, Capacity: most}
		all = append(all, n.slotLimit(p, naiveLimit{Limit: l, reason: reason, own: true, frees: his}, his)...)
	}
	add("max_active", terms.MaxActive, admission.TenantCap, 0)
	for rank, l := range p.policy.Lanes[:p.rank(lane)+1] {
		add("lane_max_active", terms.LaneMaxActive[l.Name], admission.LaneCap, rank)
	}
	return all
}

func (n *naive) poolSlots(p *naivePool, tenant, lane string, at admission.Instant) []naiveLimit {
	most := p.policy.MaxActive
	if most == 0 {
		return nil
	}
	l := admission.Limit{Name: "max_active", Scope: admission.ScopePool, Capacity: most}
	anyone := func(permit *naivePermit) bool { return permit.pool == p && !permit.uncounted }
	all := n.slotLimit(p, naiveLimit{Limit: l, reason: admission.PoolCap, frees: anyone}, anyone)
	for rank := range p.rank(lane) + 1 {
		if l.Reserve = p.policy.Lanes[rank].LeaveSlots; l.Reserve > 0 {
			l.Name, l.Scope = "leave_slots", admission.ScopeLane
			lower := func(permit *naivePermit) bool { return anyone(permit) && p.rank(permit.lane) >= rank }
			all = append(all, n.slotLimit(p, naiveLimit{Limit: l, reason: admission.PoolCap, frees: lower}, lower)...)
		}
	}
	d := p.tenant(tenant).demand(lane)
	if l.Reserve = n.kept(p, lane, n.share(p, d), at); l.Reserve > 0 {
		l.Name, l.Scope = "preferred_active", admission.ScopePool
		all = append(all, n.slotLimit(p, naiveLimit{Limit: l, reason: admission.ReclaimWait, frees: anyone}, anyone)...)
	}
	return all
}

// memoryLimits are those of what a pool may remember.
func (n *naive) memoryLimits(p *naivePool, op *admission.Acquire, lane string) []naiveLimit {
	all := n.dedupeLimits(p, op, lane)
	most := p.policy.Limits.RequestIDs
	part := p.part(lane, most)
	if ids := n.requestsOf(p); op.RequestID != "" && int64(len(ids)) >= part {
		last := ids[int64(len(ids))-part] // with which there is room again
		all = append(all, naiveLimit{reason: admission.Cardinality, Limit: admission.Limit{
			Name: "limits.request_ids", Scope: admission.ScopePool, Capacity: most, Used: int64(len(ids)), Asked: 1,
			Reserve: most - part, RetryAfter: naiveWindow - n.t.Sub(last.at),
		}})
	}
	return append(all, n.closed(p, op.Tenant, lane)...)
}

// first is the reason that is told of several.
func first(limits []naiveLimit) admission.Reason {
	reason := admission.ReasonNone
	for _, l := range limits {
		if reason == admission.ReasonNone || l.reason < reason {
			reason = l.reason
		}
	}
	return reason
}

// retryAfter is when time alone has freed all limits, or Absent.
func retryAfter(limits []naiveLimit) time.Duration {
	var wait time.Duration
	for _, l := range limits {
		if l.RetryAfter == admission.Absent {
			return admission.Absent
		}
		wait = max(wait, l.RetryAfter)
	}
	return wait
}

// shed is the refusal that the limits make.
func (n *naive) shed(lane string, limits []naiveLimit, at admission.Instant) *admission.Shed {
	s := &admission.Shed{
		Reason: first(limits), Lane: lane, RetryAfter: millis(retryAfter(limits)), EarliestExpiry: admission.Absent,
		MaxGrantable: admission.Absent,
	}
	for _, l := range limits {
		l.RetryAfter = millis(l.RetryAfter)
		s.Blocking = append(s.Blocking, l.Limit)
		if l.reason == admission.NeverGrantable && (s.MaxGrantable == admission.Absent || l.most < s.MaxGrantable) {
			s.MaxGrantable = l.most
		}
		for _, permit := range n.permits {
			if l.frees == nil || !l.frees(permit) {
				continue
			}
			left := millis(max(0, permit.expires.Sub(at.Add(-n.offset))))
			if s.EarliestExpiry == admission.Absent || left < s.EarliestExpiry {
				s.EarliestExpiry = left
			}
		}
	}
	return s
}
