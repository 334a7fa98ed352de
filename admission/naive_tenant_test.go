package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// terms are a tenant's share and limits, with nothing left open.
func (p *naivePool) terms(tenant string) admission.TenantPolicy {
	terms := p.policy.Defaults
	for _, o := range p.policy.Overrides {
		if o.ID != tenant {
			continue
		}
		if o.Weight != 0 {
			terms.Weight = o.Weight
		}
		if o.PreferredActive != nil {
			terms.PreferredActive = o.PreferredActive
		}
		if o.MaxActive != 0 {
			terms.MaxActive = o.MaxActive
		}
		if o.Lane != "" {
			terms.Lane = o.Lane
		}
		terms.Buckets = o.Buckets
	}
	return terms
}

func (p *naivePool) overridden(tenant string) bool {
	return slices.ContainsFunc(p.policy.Overrides, func(o admission.TenantPolicy) bool { return o.ID == tenant })
}

// meet makes a tenant known, for as long as it is not idle.
func (t *naiveTenant) meet() { t.known, t.idleAt = true, 0 }

// touch works out when a tenant may be forgotten, after something happened to it:
// when nothing is left of it but tags, and not in this very entry.
func (n *naive) touch(p *naivePool, t *naiveTenant) {
	t.idleAt = 0
	if t.paused || slices.ContainsFunc(n.permits, func(permit *naivePermit) bool {
		return permit.pool == p && permit.tenant == t.id
	}) {
		return
	}
	if len(n.waitersOf(p, func(w *naiveWaiter) bool { return w.d.tenant == t })) > 0 {
		return
	}
	if slices.ContainsFunc(p.entries, func(e *naiveEntry) bool { return e.tenant == t.id }) {
		return
	}
	at := n.t + 1
	for i, b := range t.buckets {
		when, ok := b.forgottenAt(p.bucketTerms(i, t.id), n.t)
		if !ok {
			return
		}
		at = max(at, when)
	}
	for _, d := range t.demands {
		if d.report.backlog > 0 {
			at = max(at, d.report.until)
		}
	}
	t.idleAt = at
}

// forgetIdle forgets the tenants that may be and whose tags are no higher than
// the floor. It looks again a second later at those with higher ones.
func (n *naive) forgetIdle(p *naivePool) {
	for _, t := range p.tenants {
		if !t.known || t.idleAt == 0 || t.idleAt > n.t {
			continue
		}
		ahead := slices.ContainsFunc(t.demands, func(d *naiveDemand) bool {
			orders := p.lane(d.lane).orders
			return d.tags[entitled] > orders[entitled].floor || d.tags[borrowing] > orders[borrowing].floor
		})
		if t.known = ahead; ahead {
			t.idleAt = n.t.Add(time.Second)
		} else {
			t.demands = nil // parts of a tag's unit, too
		}
	}
}

// strangers counts the known tenants that have no override.
func (n *naive) strangers(p *naivePool) int64 {
	var count int64
	for _, t := range p.tenants {
		if !p.overridden(t.id) && t.known {
			count++
		}
	}
	return count
}

// full says whether a tenant would be one too many.
func (n *naive) full(p *naivePool, tenant string) bool {
	return !p.overridden(tenant) && !p.tenant(tenant).known && n.strangers(p) >= p.policy.Limits.Tenants
}
