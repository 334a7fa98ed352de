package raftstore

import (
	"time"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

func acquireToStorage(a *admission.Acquire) *storagev1.Acquire {
	return &storagev1.Acquire{
		Pool: a.Pool, Tenant: a.Tenant, Category: a.Category, Cost: a.Cost, Ttl: int64(a.TTL),
		RequestId: a.RequestID, WorkerId: a.WorkerID, Nonce: a.Nonce,
		MaxWait: int64(a.MaxWait), LockKey: a.LockKey, DedupeKey: a.DedupeKey, IssuedAt: int64(a.IssuedAt),
		RateOnly: a.RateOnly, Settle: a.Settle, Backlog: a.Backlog,
	}
}

func acquireFromStorage(m *storagev1.Acquire) *admission.Acquire {
	return &admission.Acquire{
		Pool: m.GetPool(), Tenant: m.GetTenant(), Category: m.GetCategory(), Cost: m.GetCost(),
		TTL: time.Duration(m.GetTtl()), RequestID: m.GetRequestId(), WorkerID: m.GetWorkerId(), Nonce: m.GetNonce(),
		MaxWait: time.Duration(m.GetMaxWait()), LockKey: m.GetLockKey(), DedupeKey: m.GetDedupeKey(),
		IssuedAt: admission.Wall(m.GetIssuedAt()), RateOnly: m.GetRateOnly(), Settle: m.GetSettle(),
		Backlog: m.GetBacklog(),
	}
}

func waiterKeyToStorage(k admission.WaiterKey) *storagev1.WaiterKey {
	return &storagev1.WaiterKey{Index: k.Index, Position: k.Position}
}

func waiterKeyFromStorage(m *storagev1.WaiterKey) admission.WaiterKey {
	return admission.WaiterKey{Index: m.GetIndex(), Position: m.GetPosition()}
}

func reportToStorage(r *admission.ReportDemand) *storagev1.ReportDemand {
	return &storagev1.ReportDemand{
		Pool: r.Pool, Tenant: r.Tenant, Category: r.Category, Backlog: r.Backlog, Ttl: int64(r.TTL),
	}
}

func reportFromStorage(m *storagev1.ReportDemand) *admission.ReportDemand {
	return &admission.ReportDemand{
		Pool: m.GetPool(), Tenant: m.GetTenant(), Category: m.GetCategory(), Backlog: m.GetBacklog(),
		TTL: time.Duration(m.GetTtl()),
	}
}

func releaseToStorage(r *admission.Release) *storagev1.Release {
	return &storagev1.Release{
		Token: tokenToStorage(r.Token), Outcome: uint32(r.Outcome), ActualCost: r.ActualCost,
		RetryAfter: int64(r.RetryAfter), Bucket: r.Bucket, Miss: r.Miss,
	}
}

func releaseFromStorage(m *storagev1.Release) *admission.Release {
	return &admission.Release{
		Token: tokenFromStorage(m.GetToken()), Outcome: admission.Outcome(m.GetOutcome()),
		ActualCost: m.GetActualCost(), RetryAfter: time.Duration(m.GetRetryAfter()), Bucket: m.GetBucket(),
		Miss: m.GetMiss(),
	}
}

func takeToStorage(t *admission.Take) *storagev1.Take {
	m := &storagev1.Take{Pool: t.Pool, Parts: make([]*storagev1.TakePart, len(t.Parts))}
	for i := range t.Parts {
		p := &t.Parts[i]
		m.Parts[i] = &storagev1.TakePart{
			Tenant: p.Tenant, Category: p.Category, Buckets: p.Buckets, Tokens: p.Tokens, Shadow: p.Shadow,
		}
	}
	return m
}

func takeFromStorage(m *storagev1.Take) (*admission.Take, error) {
	t := &admission.Take{Pool: m.GetPool(), Parts: make([]admission.TakePart, len(m.GetParts()))}
	for i, p := range m.GetParts() {
		if err := known(p); err != nil {
			return nil, err
		}
		t.Parts[i] = admission.TakePart{
			Tenant: p.GetTenant(), Category: p.GetCategory(), Buckets: p.GetBuckets(), Tokens: p.GetTokens(), Shadow: p.GetShadow(),
		}
	}
	return t, known(m)
}

func leaseShareToStorage(l *admission.LeaseShare) *storagev1.LeaseShare {
	return &storagev1.LeaseShare{
		Pool: l.Pool, Tenant: l.Tenant, Category: l.Category, Tokens: l.Tokens, Nonce: l.Nonce,
		Node: &storagev1.Node{Id: l.Node.ID, Owned: l.Node.Owned, Total: l.Node.Total},
	}
}

func leaseShareFromStorage(m *storagev1.LeaseShare) *admission.LeaseShare {
	return &admission.LeaseShare{
		Pool: m.GetPool(), Tenant: m.GetTenant(), Category: m.GetCategory(), Tokens: m.GetTokens(), Nonce: m.GetNonce(),
		Node: admission.Node{ID: m.GetNode().GetId(), Owned: m.GetNode().GetOwned(), Total: m.GetNode().GetTotal()},
	}
}

func renewToStorage(r *admission.Renew) *storagev1.Renew {
	return &storagev1.Renew{Tokens: tokensToStorage(r.Tokens), Ttl: int64(r.TTL)}
}

func renewFromStorage(m *storagev1.Renew) *admission.Renew {
	return &admission.Renew{Tokens: tokensFromStorage(m.GetTokens()), TTL: time.Duration(m.GetTtl())}
}

func nextDueToStorage(n *admission.NextDue) *storagev1.NextDue {
	m := &storagev1.NextDue{
		Pool: n.Pool, MaxItems: int64(n.MaxItems), Ttl: int64(n.TTL), WorkerId: n.WorkerID,
		Lanes: n.Lanes, RequestId: n.RequestID, Nonce: n.Nonce,
		Tenant: n.Tenant, LaneLimits: n.LaneLimits, Batch: n.Batch,
	}
	if n.Node != (admission.Node{}) {
		m.Node = &storagev1.Node{Id: n.Node.ID, Owned: n.Node.Owned, Total: n.Node.Total}
	}
	return m
}

func nextDueFromStorage(m *storagev1.NextDue) *admission.NextDue {
	return &admission.NextDue{
		Pool: m.GetPool(), MaxItems: int(m.GetMaxItems()), TTL: time.Duration(m.GetTtl()), WorkerID: m.GetWorkerId(),
		Lanes: m.GetLanes(), RequestID: m.GetRequestId(), Nonce: m.GetNonce(),
		Tenant: m.GetTenant(), LaneLimits: m.GetLaneLimits(), Batch: m.GetBatch(),
		Node: admission.Node{ID: m.GetNode().GetId(), Owned: m.GetNode().GetOwned(), Total: m.GetNode().GetTotal()},
	}
}

func scheduleToStorage(s *admission.Schedule) *storagev1.Schedule {
	m := &storagev1.Schedule{Pool: s.Pool, Entries: make([]*storagev1.EntrySpec, len(s.Entries))}
	for i := range s.Entries {
		e := &s.Entries[i]
		m.Entries[i] = &storagev1.EntrySpec{
			Tenant: e.Tenant, Key: e.Key, Category: e.Category, Route: e.Route, Group: e.Group,
			DueAt: int64(e.DueAt), DueIn: int64(e.DueIn), Relative: e.Relative, MaxAttempts: e.MaxAttempts,
			Every: int64(e.Every), Cadence: e.Cadence,
		}
	}
	return m
}

func scheduleFromStorage(m *storagev1.Schedule) (*admission.Schedule, error) {
	s := &admission.Schedule{Pool: m.GetPool(), Entries: make([]admission.EntrySpec, len(m.GetEntries()))}
	for i, e := range m.GetEntries() {
		if err := known(e); err != nil {
			return nil, err
		}
		s.Entries[i] = admission.EntrySpec{
			Tenant: e.GetTenant(), Key: e.GetKey(), Category: e.GetCategory(), Route: e.GetRoute(), Group: e.GetGroup(),
			DueAt: admission.Wall(e.GetDueAt()), DueIn: time.Duration(e.GetDueIn()), Relative: e.GetRelative(),
			MaxAttempts: e.GetMaxAttempts(), Every: time.Duration(e.GetEvery()), Cadence: e.GetCadence(),
		}
	}
	return s, known(m)
}

func putTenantsToStorage(p *admission.PutTenants) *storagev1.PutTenants {
	m := &storagev1.PutTenants{Pool: p.Pool, Rows: make([]*storagev1.TenantPut, len(p.Rows))}
	for i := range p.Rows {
		r := &p.Rows[i]
		m.Rows[i] = &storagev1.TenantPut{Tenant: tenantToStorage(&r.Tenant), Remove: r.Remove}
	}
	return m
}

func putTenantsFromStorage(m *storagev1.PutTenants) (*admission.PutTenants, error) {
	p := &admission.PutTenants{Pool: m.GetPool(), Rows: make([]admission.TenantPut, len(m.GetRows()))}
	for i, r := range m.GetRows() {
		if err := known(r); err != nil {
			return nil, err
		}
		p.Rows[i] = admission.TenantPut{Tenant: tenantFromStorage(r.GetTenant()), Remove: r.GetRemove()}
	}
	return p, known(m)
}

func tokenToStorage(t admission.Token) *storagev1.Token {
	return &storagev1.Token{Epoch: uint32(t.Epoch), Index: t.Index, Position: t.Position, Nonce: t.Nonce}
}

func tokenFromStorage(m *storagev1.Token) admission.Token {
	return admission.Token{
		Epoch: uint16(m.GetEpoch()), Index: m.GetIndex(), Position: m.GetPosition(), Nonce: m.GetNonce(),
	}
}

func tokensToStorage(tokens []admission.Token) []*storagev1.Token {
	list := make([]*storagev1.Token, len(tokens))
	for i, t := range tokens {
		list[i] = tokenToStorage(t)
	}
	return list
}

func tokensFromStorage(list []*storagev1.Token) []admission.Token {
	tokens := make([]admission.Token, len(list))
	for i, m := range list {
		tokens[i] = tokenFromStorage(m)
	}
	return tokens
}
