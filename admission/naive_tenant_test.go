package admission_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// terms are a tenant's share and limits, with nothing left open. What a row has
// that the pool has no more is left out.
func (p *naivePool) terms(tenant string) admission.TenantPolicy {
	terms := p.policy.Defaults
	own, _ := p.row(tenant)
	terms.Weight = orElse(own.Weight, terms.Weight)
	terms.MaxActive = orElse(own.MaxActive, terms.MaxActive)
	if own.PreferredActive != nil {
		terms.PreferredActive = own.PreferredActive
	}
	if p.takes(own.Lane) {
		terms.Lane = own.Lane
	}
	if len(own.LaneMaxActive) > 0 {
		terms.LaneMaxActive = own.LaneMaxActive
	}
	terms.Buckets = own.Buckets
	return terms
}

// named says whether a pool has a word of a tenant's own.
func (p *naivePool) named(tenant string) bool {
	_, ok := p.row(tenant)
	return ok
}

// meet makes a tenant known, for as long as it is not idle.
func (n *naive) meet(p *naivePool, t *naiveTenant) {
	n.introduce(p, t)
	t.idleAt, t.spare = 0, false
}

// introduce makes a tenant known.
func (n *naive) introduce(p *naivePool, t *naiveTenant) {
	if t.known {
		return
	}
	if !p.named(t.id) {
		p.newcomers.take(p.newcomerTerms(), n.t, 1)
	}
	n.meets++
	t.known, t.number = true, n.meets
}

// newcomerTerms are those of the bucket of new tenants.
func (p *naivePool) newcomerTerms() naiveTerms {
	rate := p.policy.Limits.NewTenantsPerSecond
	return naiveTerms{capacity: rate, refill: rate, period: time.Second}
}

// touch works out from when on nothing is left of a tenant but tags, after something
// happened to it: not in this very entry.
func (n *naive) touch(p *naivePool, t *naiveTenant) {
	t.idleAt, t.spare = 0, false
	if t.paused || slices.ContainsFunc(n.permits, func(permit *naivePermit) bool {
		return permit.pool == p && permit.tenant == t.id
	}) {
		return
	}
	if len(n.waitersOf(p, func(w *naiveWaiter) bool { return w.d.tenant == t })) > 0 {
		return
	}
	if slices.ContainsFunc(p.entries, func(e *naiveEntry) bool { return e.tenant == t.id }) ||
		slices.ContainsFunc(p.pausedGroups, func(g naiveGroup) bool { return g.tenant == t.id }) {
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
			return
		}
	}
	t.idleAt = at
}

// forgetIdle forgets the tenants that are long idle, and those that need not be new
// again, if their tags are no higher than the floor. It looks again a second later at
// those with higher ones.
func (n *naive) forgetIdle(p *naivePool) {
	for _, t := range p.tenants {
		switch {
		case !t.known || t.idleAt == 0 || t.idleAt > n.t:
		case p.ahead(t):
			t.idleAt = n.t.Add(time.Second)
		case p.named(t.id), t.idleAt.Add(naiveSpareTime) <= n.t:
			t.forget()
		default:
			t.spare = true
		}
	}
}

// naiveSpareTime is how long who may come back is known.
const naiveSpareTime = 100 * time.Second

func (t *naiveTenant) forget() {
	t.known, t.spare = false, false
	t.demands = nil // parts of a tag's unit, too
}

// makeRoom forgets tenants that are spare, the longest first, while there are too many.
func (p *naivePool) makeRoom() {
	var spare []*naiveTenant
	for _, t := range p.tenants {
		if t.known && t.spare {
			spare = append(spare, t)
		}
	}
	slices.SortFunc(spare, func(a, b *naiveTenant) int {
		return cmp.Or(cmp.Compare(a.idleAt, b.idleAt), cmp.Compare(a.number, b.number))
	})
	over := p.strangers() + int64(len(spare)) - p.policy.Limits.Tenants
	for _, t := range spare[:min(max(over, 0), int64(len(spare)))] {
		t.forget()
	}
}

// ahead says whether a tag of a tenant is above its floor.
func (p *naivePool) ahead(t *naiveTenant) bool {
	return slices.ContainsFunc(t.demands, func(d *naiveDemand) bool {
		orders := p.lane(d.lane).orders
		return d.tags[entitled] > orders[entitled].floor || d.tags[borrowing] > orders[borrowing].floor
	})
}

// strangers counts the known tenants of which the pool has no word and that are not
// spare.
func (p *naivePool) strangers() int64 {
	var count int64
	for _, t := range p.tenants {
		if !p.named(t.id) && t.known && !t.spare {
			count++
		}
	}
	return count
}

// part is what of a limit a lane may fill: all but the top one leave a tenth.
func (p *naivePool) part(lane string, limit int64) int64 {
	if p.rank(lane) == 0 {
		return limit
	}
	return limit - limit/10
}

// closed are the limits that keep a tenant out.
func (n *naive) closed(p *naivePool, tenant, lane string) []naiveLimit {
	return n.closedBeside(p, tenant, lane, 0)
}

// closedBeside is the same beside so many others that come in as well.
func (n *naive) closedBeside(p *naivePool, tenant, lane string, others int64) []naiveLimit {
	t := p.tenant(tenant)
	if p.named(tenant) || t.known && !t.spare {
		return nil
	}
	var all []naiveLimit
	add := func(name string, most, used int64, wait func(reserve int64) time.Duration) {
		l := naiveLimit{reason: admission.Cardinality, Limit: admission.Limit{
			Name: name, Scope: admission.ScopePool, Capacity: most, Used: used, Asked: 1,
			Reserve: most - p.part(lane, most),
		}}
		if used+1+l.Reserve > most {
			l.RetryAfter = wait(l.Reserve)
			all = append(all, l)
		}
	}
	add("limits.tenants", p.policy.Limits.Tenants, p.strangers()+others, func(int64) time.Duration { return admission.Absent })
	if t.known {
		return all
	}
	terms := p.newcomerTerms()
	add("limits.new_tenants_per_second", terms.capacity, p.newcomers.used(terms, n.t)+others, func(reserve int64) time.Duration {
		return p.newcomers.wait(terms, n.t, 1+others, reserve)
	})
	return all
}

// back is after how long the pool lets a tenant in that comes back after a time: by
// then it may have lost its place, or be new.
func (n *naive) back(p *naivePool, t *naiveTenant, lane string, after time.Duration) time.Duration {
	if after == admission.Absent || !t.known || p.named(t.id) || t.idleAt == 0 || t.idleAt > n.t.Add(after) || p.ahead(t) {
		return after
	}
	others := p.strangers()
	if !t.spare {
		others--
	}
	if others >= p.part(lane, p.policy.Limits.Tenants) {
		return admission.Absent
	}
	if n.t.Add(after) < t.idleAt.Add(naiveSpareTime) {
		return after
	}
	most := p.policy.Limits.NewTenantsPerSecond
	return max(after, p.newcomers.wait(p.newcomerTerms(), n.t, 1, most-p.part(lane, most)))
}

// full says whether a tenant would be one too many in a lane.
func (n *naive) full(p *naivePool, tenant, lane string) bool {
	return len(n.closed(p, tenant, lane)) > 0
}
