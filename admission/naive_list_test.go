package admission_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/admission"
)

// tenantStatus shows a tenant of a pool, if the pool takes it or knows it.
func (n *naive) tenantStatus(at admission.Instant, p *naivePool, tenant string) (admission.TenantStatus, *admission.Error) {
	if err := p.refused(tenant); err != nil && !p.tenant(tenant).known {
		return admission.TenantStatus{}, err
	}
	share, health := p.terms(tenant), n.tenantHealth(at, p, tenant)
	share.ID = tenant
	caps := make(map[string]int64)
	for _, l := range p.lanes {
		if most := share.LaneMaxActive[l.name]; most > 0 {
			caps[l.name] = most
		}
	}
	share.LaneMaxActive, share.Buckets = caps, make(map[string]admission.BucketOverride)
	s := admission.TenantStatus{
		Source: p.sourceOf(tenant), Paused: p.tenant(tenant).paused,
		Active: health.Active, Debt: health.Debt, Entries: p.entriesOf(tenant),
		Unknown: !p.tenant(tenant).known && p.sourceOf(tenant) == admission.FromDefault,
	}
	for i, policy := range p.policy.Buckets {
		if policy.Scope == admission.ScopeTenant {
			terms := p.bucketTerms(i, tenant)
			share.Buckets[policy.Name] = admission.BucketOverride{
				Capacity: terms.capacity, Refill: terms.refill, Period: terms.period, Blocked: terms.blocked,
			}
			s.Buckets = append(s.Buckets, p.tenant(tenant).buckets[i].health(policy.Name, terms, at))
		}
	}
	s.Share = share
	return s, nil
}

// sourceOf is where the numbers of a tenant come from.
func (p *naivePool) sourceOf(tenant string) admission.ShareSource {
	own := func(row admission.TenantPolicy) bool { return row.ID == tenant }
	switch {
	case slices.ContainsFunc(p.puts, own):
		return admission.FromPut
	case slices.ContainsFunc(p.policy.Overrides, own):
		return admission.FromPolicy
	}
	return admission.FromDefault
}

// listEntries shows the queued and claimed entries that a filter selects.
func (p *naivePool) listEntries(f admission.ListFilter) []admission.ListedEntry {
	entries := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.dead || f.Tenant != "" && f.Tenant != e.tenant || f.Lane != "" && f.Lane != e.lane ||
			f.DueBefore != 0 && e.due >= f.DueBefore
	})
	slices.SortFunc(entries, func(a, b *naiveEntry) int {
		return naivePoint{a.due, a.seq}.compare(naivePoint{b.due, b.seq})
	})
	return listed(entries)
}

// listDead shows the dead entries of a tenant, those of one key by their occurrences.
func (p *naivePool) listDead(f admission.DeadFilter) []admission.ListedEntry {
	entries := deleteIf(p.graves(), func(e *naiveEntry) bool { return !selects(f, e) })
	slices.SortFunc(entries, func(a, b *naiveEntry) int {
		return cmp.Or(strings.Compare(a.spec.Key, b.spec.Key), cmp.Compare(a.occurrence, b.occurrence))
	})
	return listed(entries)
}

func listed(entries []*naiveEntry) (list []admission.ListedEntry) {
	for _, e := range entries {
		row := admission.ListedEntry{
			Tenant: e.tenant, Key: e.spec.Key, Category: e.spec.Category, Lane: e.lane,
			Route: e.spec.Route, Group: e.spec.Group, Claimed: e.claim != nil, Dead: e.dead,
			DueAt: e.due, FirstDueAt: e.dueAt(), Attempts: e.attempts, MaxAttempts: e.retry.MaxAttempts,
			History: e.history, DiedAt: e.diedAt,
		}
		if e.recurs() {
			row.Every, row.Cadence = e.spec.Every, e.spec.Cadence
		}
		list = append(list, row)
	}
	return list
}

// listPermits shows the live permits that a filter selects, and how old they are.
func (n *naive) listPermits(f admission.PermitFilter) (list []admission.ListedPermit, ages admission.PermitsByAge) {
	ends := []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}
	for _, p := range n.permits {
		if p.whole != nil || p.pool.policy.Name != f.Pool || f.Tenant != "" && f.Tenant != p.tenant {
			continue
		}
		row := admission.ListedPermit{
			Fence: p.fence, Tenant: p.tenant, Lane: p.lane, HeldFor: n.t.Sub(p.granted),
			ExpiresIn: max(0, p.expires.Sub(n.leaseNow())), Cost: p.cost, Worker: p.worker, LockKey: p.lockKey,
			Cancelled: p.cancelled, Borrowed: p.borrowed, Uncounted: p.uncounted, Batch: p.batch, Share: p.asked > 0,
		}
		if p.entry != nil {
			row.Entry = p.entry.spec.Key
		}
		list = append(list, row)
		class := 0
		for class < len(ends) && row.HeldFor >= ends[class] {
			class++
		}
		ages[class]++
	}
	return list, ages
}
