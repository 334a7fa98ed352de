package raftstore

import (
	"time"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func policyToStorage(p admission.Policy) *storagev1.Policy {
	m := &storagev1.Policy{}
	for i := range p.Pools {
		m.Pools = append(m.Pools, poolToStorage(&p.Pools[i]))
	}
	return m
}

func policyFromStorage(m *storagev1.Policy) admission.Policy {
	var p admission.Policy
	for _, pool := range m.GetPools() {
		p.Pools = append(p.Pools, poolFromStorage(pool))
	}
	return p
}

func poolToStorage(p *admission.PoolPolicy) *storagev1.PoolPolicy {
	m := &storagev1.PoolPolicy{
		Name: p.Name, MaxActive: p.MaxActive, PermitTtl: int64(p.PermitTTL), Categories: p.Categories,
		Defaults: tenantToStorage(&p.Defaults),
		Retry: &storagev1.RetryPolicy{
			MaxAttempts: p.Retry.MaxAttempts, Base: int64(p.Retry.Base), Max: int64(p.Retry.Max),
		},
		MaxPause: int64(p.MaxPause),
		Limits: &storagev1.LimitsPolicy{
			Entries: p.Limits.Entries, EntriesPerTenant: p.Limits.EntriesPerTenant, Tenants: p.Limits.Tenants,
			RequestIds: p.Limits.RequestIDs, EndedPermits: p.Limits.EndedPermits,
			Waiting: p.Limits.Waiting, WaitingPerTenant: p.Limits.WaitingPerTenant, DedupeKeys: p.Limits.DedupeKeys,
			NewTenantsPerSecond: p.Limits.NewTenantsPerSecond, TenantRows: p.Limits.TenantRows,
			PausedGroups: p.Limits.PausedGroups, Shares: p.Limits.Shares,
		},
		LockMaxActive: p.LockMaxActive, DoneRetention: int64(p.DoneRetention), Shadow: p.Shadow,
		DeadRetention: int64(p.DeadRetention),
		RefuseUnknown: p.RefuseUnknown,
	}
	for _, c := range p.Cadences {
		m.Cadences = append(m.Cadences, cadenceToStorage(c))
	}
	for _, b := range p.Buckets {
		m.Buckets = append(m.Buckets, &storagev1.BucketPolicy{
			Name: b.Name, Scope: uint32(b.Scope), Capacity: b.Capacity, Refill: b.Refill, Period: int64(b.Period),
			PerPermit: b.PerPermit, Blocked: b.Blocked, OneShot: b.OneShot, Share: tokenShareToStorage(b.Share),
		})
	}
	for _, l := range p.Lanes {
		m.Lanes = append(m.Lanes, &storagev1.LanePolicy{
			Name: l.Name, LeaveSlots: l.LeaveSlots, LeaveTokens: l.LeaveTokens, TenantCycleLimit: l.TenantCycleLimit,
			Yield: yieldToStorage(l.Yield), Batch: batchToStorage(l.Batch),
		})
	}
	for i := range p.Overrides {
		m.Overrides = append(m.Overrides, tenantToStorage(&p.Overrides[i]))
	}
	for _, r := range p.Envoy {
		m.Envoy = append(m.Envoy, &storagev1.EnvoyRule{
			Name: r.Name, Match: r.Match, Tenant: r.Tenant, Category: r.Category, Buckets: r.Buckets,
			Unlimited: r.Unlimited, Shadow: r.Shadow,
		})
	}
	return m
}

func tokenShareToStorage(t admission.TokenShare) *storagev1.TokenShare {
	if t == (admission.TokenShare{}) {
		return nil
	}
	return &storagev1.TokenShare{
		Max: t.Max, Ttl: int64(t.TTL), IdleReturn: int64(t.IdleReturn), OnLoss: uint32(t.OnLoss), Safe: t.Safe,
	}
}

func tokenShareFromStorage(m *storagev1.TokenShare) admission.TokenShare {
	return admission.TokenShare{
		Max: m.GetMax(), TTL: time.Duration(m.GetTtl()), IdleReturn: time.Duration(m.GetIdleReturn()),
		OnLoss: admission.OnLoss(m.GetOnLoss()), Safe: m.GetSafe(),
	}
}

func poolFromStorage(m *storagev1.PoolPolicy) admission.PoolPolicy {
	p := admission.PoolPolicy{
		Name: m.GetName(), MaxActive: m.GetMaxActive(), PermitTTL: time.Duration(m.GetPermitTtl()),
		Categories: m.GetCategories(),
		Defaults:   tenantFromStorage(m.GetDefaults()),
		Retry: admission.RetryPolicy{
			MaxAttempts: m.GetRetry().GetMaxAttempts(),
			Base:        time.Duration(m.GetRetry().GetBase()),
			Max:         time.Duration(m.GetRetry().GetMax()),
		},
		MaxPause: time.Duration(m.GetMaxPause()),
		Limits: admission.LimitsPolicy{
			Entries: m.GetLimits().GetEntries(), EntriesPerTenant: m.GetLimits().GetEntriesPerTenant(),
			Tenants: m.GetLimits().GetTenants(), RequestIDs: m.GetLimits().GetRequestIds(),
			EndedPermits: m.GetLimits().GetEndedPermits(), Waiting: m.GetLimits().GetWaiting(),
			WaitingPerTenant: m.GetLimits().GetWaitingPerTenant(), DedupeKeys: m.GetLimits().GetDedupeKeys(),
			NewTenantsPerSecond: m.GetLimits().GetNewTenantsPerSecond(), TenantRows: m.GetLimits().GetTenantRows(),
			PausedGroups: m.GetLimits().GetPausedGroups(), Shares: m.GetLimits().GetShares(),
		},
		LockMaxActive: m.GetLockMaxActive(), DoneRetention: time.Duration(m.GetDoneRetention()), Shadow: m.GetShadow(),
		DeadRetention: time.Duration(m.GetDeadRetention()),
		RefuseUnknown: m.GetRefuseUnknown(),
	}
	for _, c := range m.GetCadences() {
		p.Cadences = append(p.Cadences, cadenceFromStorage(c))
	}
	for _, b := range m.GetBuckets() {
		p.Buckets = append(p.Buckets, admission.BucketPolicy{
			Name: b.GetName(), Scope: admission.Scope(b.GetScope()), Capacity: b.GetCapacity(), Refill: b.GetRefill(),
			Period: time.Duration(b.GetPeriod()), PerPermit: b.GetPerPermit(), Blocked: b.GetBlocked(),
			OneShot: b.GetOneShot(), Share: tokenShareFromStorage(b.GetShare()),
		})
	}
	for _, l := range m.GetLanes() {
		p.Lanes = append(p.Lanes, admission.LanePolicy{
			Name: l.GetName(), LeaveSlots: l.GetLeaveSlots(), LeaveTokens: l.GetLeaveTokens(),
			TenantCycleLimit: l.GetTenantCycleLimit(), Yield: yieldFromStorage(l.GetYield()), Batch: batchFromStorage(l.GetBatch()),
		})
	}
	for _, t := range m.GetOverrides() {
		p.Overrides = append(p.Overrides, tenantFromStorage(t))
	}
	for _, r := range m.GetEnvoy() {
		p.Envoy = append(p.Envoy, admission.EnvoyRule{
			Name: r.GetName(), Match: r.GetMatch(), Tenant: r.GetTenant(), Category: r.GetCategory(), Buckets: r.GetBuckets(),
			Unlimited: r.GetUnlimited(), Shadow: r.GetShadow(),
		})
	}
	return p
}

func batchToStorage(b admission.BatchPolicy) *storagev1.BatchPolicy {
	if b == (admission.BatchPolicy{}) {
		return nil
	}
	return &storagev1.BatchPolicy{Size: b.Size, Only: b.Only, Linger: int64(b.Linger)}
}

func batchFromStorage(m *storagev1.BatchPolicy) admission.BatchPolicy {
	return admission.BatchPolicy{Size: m.GetSize(), Only: m.GetOnly(), Linger: time.Duration(m.GetLinger())}
}

func yieldToStorage(y *admission.YieldPolicy) *storagev1.YieldPolicy {
	if y == nil {
		return nil
	}
	return &storagev1.YieldPolicy{
		Above: y.Above, Resume: y.Resume, AboveAge: int64(y.AboveAge), ResumeAge: int64(y.ResumeAge),
	}
}

func yieldFromStorage(m *storagev1.YieldPolicy) *admission.YieldPolicy {
	if m == nil {
		return nil
	}
	return &admission.YieldPolicy{
		Above: m.GetAbove(), Resume: m.GetResume(),
		AboveAge: time.Duration(m.GetAboveAge()), ResumeAge: time.Duration(m.GetResumeAge()),
	}
}

func cadenceToStorage(c admission.CadencePolicy) *storagev1.CadencePolicy {
	return &storagev1.CadencePolicy{Name: c.Name, Base: int64(c.Base), Factor: c.Factor, Max: int64(c.Max)}
}

func cadenceFromStorage(m *storagev1.CadencePolicy) admission.CadencePolicy {
	return admission.CadencePolicy{
		Name: m.GetName(), Base: time.Duration(m.GetBase()), Factor: m.GetFactor(), Max: time.Duration(m.GetMax()),
	}
}

func tenantToStorage(t *admission.TenantPolicy) *storagev1.TenantPolicy {
	m := &storagev1.TenantPolicy{
		Id: t.ID, Weight: t.Weight, PreferredActive: t.PreferredActive, MaxActive: t.MaxActive, Lane: t.Lane,
		LaneMaxActive: t.LaneMaxActive,
	}
	if len(t.Buckets) > 0 {
		m.Buckets = make(map[string]*storagev1.BucketOverride, len(t.Buckets))
	}
	for name, b := range t.Buckets {
		m.Buckets[name] = &storagev1.BucketOverride{
			Capacity: b.Capacity, Refill: b.Refill, Period: int64(b.Period), Blocked: b.Blocked,
		}
	}
	return m
}

func tenantFromStorage(m *storagev1.TenantPolicy) admission.TenantPolicy {
	t := admission.TenantPolicy{
		ID: m.GetId(), Weight: m.GetWeight(), MaxActive: m.GetMaxActive(), Lane: m.GetLane(),
		LaneMaxActive: m.GetLaneMaxActive(),
	}
	if m != nil {
		t.PreferredActive = m.PreferredActive
	}
	if len(m.GetBuckets()) > 0 {
		t.Buckets = make(map[string]admission.BucketOverride, len(m.GetBuckets()))
	}
	for name, b := range m.GetBuckets() {
		t.Buckets[name] = admission.BucketOverride{
			Capacity: b.GetCapacity(), Refill: b.GetRefill(), Period: time.Duration(b.GetPeriod()), Blocked: b.GetBlocked(),
		}
	}
	return t
}
