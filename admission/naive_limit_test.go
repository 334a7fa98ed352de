package admission_test

import (
	"time"

	"github.com/admitd/admit/admission"
)

// naiveLimit is a limit that blocks a request.
type naiveLimit struct {
	admission.Limit
	reason admission.Reason
	// own limits are the tenant's, or pauses: who meets one stands in nobody's way.
	own bool
	// most is what could be granted at all, with NeverGrantable.
	most int64
	// frees says which permits may free a limit of slots when they expire; nil
	// means none does. A lane's reserve is told the first of the pool, whatever
	// its lane.
	frees func(*naivePermit) bool
}

// limits are all that blocks a request of a tenant in a lane at an instant.
func (n *naive) limits(
	p *naivePool, tenant, lane string, cost int64, at admission.Instant,
) []naiveLimit {
	var all []naiveLimit
	if p.tenant(tenant).paused {
		all = append(all, pausedLimit(admission.ScopeTenant))
	}
	if p.lane(lane).paused {
		all = append(all, pausedLimit(admission.ScopeLane))
	}
	all = append(all, n.bucketLimits(p, tenant, lane, cost, at)...)
	return append(all, n.slotLimits(p, tenant, lane)...)
}

func pausedLimit(scope admission.Scope) naiveLimit {
	return naiveLimit{
		Limit:  admission.Limit{Name: "paused", Scope: scope, Asked: 1, RetryAfter: admission.Absent},
		reason: admission.Paused, own: true,
	}
}

func (n *naive) bucketLimits(
	p *naivePool, tenant, lane string, cost int64, at admission.Instant,
) []naiveLimit {
	var all []naiveLimit
	for i, policy := range p.policy.Buckets {
		b, terms := p.buckets[i], p.bucketTerms(i, tenant)
		l := naiveLimit{Limit: admission.Limit{
			Name: policy.Name, Scope: policy.Scope, Capacity: terms.capacity, Asked: cost, RetryAfter: admission.Absent,
		}}
		if policy.PerPermit {
			l.Asked = 1
		}
		if policy.Scope == admission.ScopeTenant {
			b, l.own = p.tenant(tenant).buckets[i], true
		} else {
			l.Reserve = p.policy.Lanes[p.rank(lane)].LeaveTokens[policy.Name]
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
	l.RetryAfter = millis(b.wait(terms, at, l.Asked, l.Reserve))
}

// millis rounds up to whole milliseconds; what is absent stays absent.
func millis(d time.Duration) time.Duration {
	if d == admission.Absent {
		return d
	}
	return (d + time.Millisecond - 1) / time.Millisecond * time.Millisecond
}

func (n *naive) slotLimits(p *naivePool, tenant, lane string) []naiveLimit {
	var all []naiveLimit
	add := func(l naiveLimit, holds func(*naivePermit) bool) {
		for _, permit := range n.permits {
			if holds(permit) {
				l.Used++
			}
		}
		l.Asked, l.Holders, l.RetryAfter = 1, l.Used, admission.Absent
		if l.Used+1 > l.Capacity-l.Reserve {
			all = append(all, l)
		}
	}
	if most := p.terms(tenant).MaxActive; most > 0 {
		l := admission.Limit{Name: "max_active", Scope: admission.ScopeTenant, Capacity: most}
		his := func(permit *naivePermit) bool { return permit.pool == p && permit.tenant == tenant }
		add(naiveLimit{Limit: l, reason: admission.TenantCap, own: true, frees: his}, his)
	}
	if p.policy.MaxActive == 0 {
		return all
	}
	l := admission.Limit{Name: "max_active", Scope: admission.ScopePool, Capacity: p.policy.MaxActive}
	anyone := func(permit *naivePermit) bool { return permit.pool == p }
	add(naiveLimit{Limit: l, reason: admission.PoolCap, frees: anyone}, anyone)
	for rank := range p.rank(lane) + 1 {
		if p.policy.Lanes[rank].LeaveSlots == 0 {
			continue
		}
		l := admission.Limit{
			Name: "leave_slots", Scope: admission.ScopeLane,
			Capacity: p.policy.MaxActive, Reserve: p.policy.Lanes[rank].LeaveSlots,
		}
		add(naiveLimit{Limit: l, reason: admission.PoolCap, frees: anyone}, func(permit *naivePermit) bool {
			return permit.pool == p && p.rank(permit.lane) >= rank
		})
	}
	return all
}

// memoryLimits are those of what a pool may remember.
func (n *naive) memoryLimits(p *naivePool, op *admission.Acquire) []naiveLimit {
	var all []naiveLimit
	add := func(name string, most, used int64, wait time.Duration) {
		all = append(all, naiveLimit{reason: admission.Cardinality, Limit: admission.Limit{
			Name: name, Scope: admission.ScopePool, Capacity: most, Used: used, Asked: 1, RetryAfter: wait,
		}})
	}
	most := p.policy.Limits.RequestIDs
	if ids := n.requestsOf(p); op.RequestID != "" && int64(len(ids)) >= most {
		last := ids[int64(len(ids))-most] // with which there is room again
		add("limits.request_ids", most, int64(len(ids)), millis(naiveWindow-n.t.Sub(last.at)))
	}
	if n.full(p, op.Tenant) {
		add("limits.tenants", p.policy.Limits.Tenants, n.strangers(p), admission.Absent)
	}
	return all
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
		Reason: first(limits), Lane: lane, RetryAfter: retryAfter(limits), EarliestExpiry: admission.Absent,
		MaxGrantable: admission.Absent,
	}
	for _, l := range limits {
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
