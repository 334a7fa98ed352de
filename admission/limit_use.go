package admission

// LimitUse is how full one of a pool's limits is.
type LimitUse struct {
	// Limit is its name in the policy.
	Limit string
	// Used of a limit of each tenant's is what the tenant with the most uses.
	Used, Capacity int64
}

// Limits shows how full the limits of a pool are, none for a pool that does not
// exist.
func (s *State) Limits(at Instant, pool string) []LimitUse {
	p := s.pools.byName(pool)
	if p == nil {
		return nil
	}
	fresh := p.newTenants.settled(p.newcomers, max(at, s.t))
	return []LimitUse{
		{"entries", p.entries, p.limits.Entries},
		{"entries_per_tenant", p.mostEntries.most, p.limits.EntriesPerTenant},
		{"tenants", p.strangers, p.limits.Tenants},
		{"new_tenants_per_second", fresh.used, p.limits.NewTenantsPerSecond},
		{"tenant_rows", int64(len(p.puts)), p.limits.TenantRows},
		{"request_ids", int64(p.requests.len()), p.limits.RequestIDs},
		{"ended_permits", int64(p.ended.len()), p.limits.EndedPermits},
		{"waiting", p.waiting, p.limits.Waiting},
		{"waiting_per_tenant", p.mostWaiting.most, p.limits.WaitingPerTenant},
		{"dedupe_keys", int64(p.jobs.len()), p.limits.DedupeKeys},
		{"paused_groups", p.pausedGroups, p.limits.PausedGroups},
		{"shares", int64(p.shares.Len()), p.limits.Shares},
	}
}

// peak is the most of something that any tenant has, while each has one more or
// one less at a time.
type peak struct {
	most int64
	// tenants counts those that have so many, none left out but those with none.
	tenants map[int64]int64
}

// move notes that a tenant has from that many one more or one less.
func (p *peak) move(from, to int64) {
	if p.tenants == nil {
		p.tenants = map[int64]int64{}
	}
	if from > 0 {
		if p.tenants[from]--; p.tenants[from] == 0 {
			delete(p.tenants, from)
		}
	}
	if to > 0 {
		p.tenants[to]++
	}
	if to > p.most || p.tenants[p.most] == 0 { // the one that had the most has one less
		p.most = to
	}
}
