package admission_test

import "github.com/admitd/admit/admission"

// limitUse shows how full the limits of a pool are.
func (n *naive) limitUse(p *naivePool, at admission.Instant) []admission.LimitUse {
	limits := p.policy.Limits
	var entries, waiting int64 // of the tenant that has most
	for _, t := range p.tenants {
		entries = max(entries, p.entriesOf(t.id))
		waiting = max(waiting, int64(len(n.waitersOf(p, func(w *naiveWaiter) bool { return w.d.tenant == t }))))
	}
	ended := deleteIf(n.ended, func(e naiveEnded) bool { return e.pool != p })
	return []admission.LimitUse{
		{Limit: "entries", Used: int64(len(p.entries)), Capacity: limits.Entries},
		{Limit: "entries_per_tenant", Used: entries, Capacity: limits.EntriesPerTenant},
		{Limit: "tenants", Used: p.strangers(), Capacity: limits.Tenants},
		{Limit: "new_tenants_per_second", Used: p.newcomers.used(p.newcomerTerms(), at), Capacity: limits.NewTenantsPerSecond},
		{Limit: "tenant_rows", Used: int64(len(p.puts)), Capacity: limits.TenantRows},
		{Limit: "request_ids", Used: int64(len(n.requestsOf(p))), Capacity: limits.RequestIDs},
		{Limit: "ended_permits", Used: int64(len(ended)), Capacity: limits.EndedPermits},
		{Limit: "waiting", Used: n.use(p, "").Waiting, Capacity: limits.Waiting},
		{Limit: "waiting_per_tenant", Used: waiting, Capacity: limits.WaitingPerTenant},
		{Limit: "dedupe_keys", Used: int64(len(n.jobs(p))), Capacity: limits.DedupeKeys},
		{Limit: "paused_groups", Used: int64(len(p.pausedGroups)), Capacity: limits.PausedGroups},
		{Limit: "shares", Used: int64(len(n.sharesOf(p))), Capacity: limits.Shares},
	}
}

// entriesOf counts the entries of a tenant.
func (p *naivePool) entriesOf(tenant string) int64 {
	return int64(len(deleteIf(p.entries, func(e *naiveEntry) bool { return e.tenant != tenant })))
}
