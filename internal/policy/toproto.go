package policy

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// ToProto converts the core's form of a policy into the API's. What is absent
// there is absent here: no default is written out.
func ToProto(p admission.Policy) *admitv1.Policy {
	return &admitv1.Policy{Pools: messages(p.Pools, poolMessage)}
}

func poolMessage(p admission.PoolPolicy) *admitv1.Pool {
	return &admitv1.Pool{
		Name:          p.Name,
		MaxActive:     optional(p.MaxActive),
		PermitTtl:     optionalDuration(p.PermitTTL),
		Buckets:       messages(p.Buckets, bucketMessage),
		Lanes:         messages(p.Lanes, laneMessage),
		Categories:    cloneMap(p.Categories),
		Tenants:       tenantsMessage(p),
		Retry:         retryMessage(p.Retry),
		MaxPause:      optionalDuration(p.MaxPause),
		Limits:        limitsMessage(p.Limits),
		Cadences:      messages(p.Cadences, cadenceMessage),
		LockMaxActive: optional(p.LockMaxActive),
		DoneRetention: optionalDuration(p.DoneRetention),
		DeadRetention: optionalDuration(p.DeadRetention),
		Enforcement:   enforcement(p.Shadow),
		Envoy:         envoyMessage(p.Envoy),
	}
}

func envoyMessage(rules []admission.EnvoyRule) *admitv1.Envoy {
	if len(rules) == 0 {
		return nil
	}
	return &admitv1.Envoy{Rules: messages(rules, func(r admission.EnvoyRule) *admitv1.EnvoyRule {
		return &admitv1.EnvoyRule{
			Name: r.Name, Match: cloneMap(r.Match), Tenant: r.Tenant, Category: r.Category,
			Buckets: slices.Clone(r.Buckets), Unlimited: r.Unlimited, Shadow: r.Shadow,
		}
	})}
}

func enforcement(shadow bool) admitv1.Pool_Enforcement {
	if shadow {
		return admitv1.Pool_SHADOW
	}
	return admitv1.Pool_ENFORCEMENT_UNSPECIFIED
}

func bucketMessage(b admission.BucketPolicy) *admitv1.Bucket {
	out := &admitv1.Bucket{
		Name:     b.Name,
		Capacity: optional(b.Capacity),
		Refill:   optional(b.Refill),
		Period:   optionalDuration(b.Period),
		Blocked:  b.Blocked,
		OneShot:  b.OneShot,
		Share:    tokenShareMessage(b.Share),
	}
	switch b.Scope {
	case admission.ScopePool:
		out.Scope = admitv1.Bucket_POOL
	case admission.ScopeTenant:
		out.Scope = admitv1.Bucket_TENANT
	}
	if b.PerPermit {
		out.Charge = admitv1.Bucket_PERMIT
	}
	return out
}

func tokenShareMessage(t admission.TokenShare) *admitv1.TokenShare {
	if t == (admission.TokenShare{}) {
		return nil
	}
	return &admitv1.TokenShare{
		Max: optional(t.Max), Ttl: optionalDuration(t.TTL), IdleReturn: optionalDuration(t.IdleReturn),
		OnLoss: admitv1.TokenShare_OnLoss(t.OnLoss), Safe: optional(t.Safe),
	}
}

func laneMessage(l admission.LanePolicy) *admitv1.Lane {
	return &admitv1.Lane{
		Name:             l.Name,
		LeaveSlots:       l.LeaveSlots,
		LeaveTokens:      cloneMap(l.LeaveTokens),
		TenantCycleLimit: optional(l.TenantCycleLimit),
		Yield:            yieldMessage(l.Yield),
		Batch:            batchMessage(l.Batch),
	}
}

func batchMessage(b admission.BatchPolicy) *admitv1.Batch {
	if b == (admission.BatchPolicy{}) {
		return nil
	}
	return &admitv1.Batch{Size: optional(b.Size), Only: b.Only, Linger: optionalDuration(b.Linger)}
}

func yieldMessage(y *admission.YieldPolicy) *admitv1.Yield {
	if y == nil {
		return nil
	}
	out := &admitv1.Yield{AboveAge: optionalDuration(y.AboveAge), ResumeAge: optionalDuration(y.ResumeAge)}
	if y.Above != admission.Absent {
		out.Above = &y.Above
	}
	if y.Resume != admission.Absent {
		out.Resume = &y.Resume
	}
	return out
}

func tenantsMessage(p admission.PoolPolicy) *admitv1.Tenants {
	d := p.Defaults
	noDefaults := d.ID == "" && d.Weight == 0 && d.PreferredActive == nil && d.MaxActive == 0 && d.Lane == "" &&
		len(d.LaneMaxActive) == 0 && len(d.Buckets) == 0
	if noDefaults && len(p.Overrides) == 0 && !p.RefuseUnknown {
		return nil
	}
	out := &admitv1.Tenants{Overrides: messages(p.Overrides, TenantToProto)}
	if p.RefuseUnknown {
		out.Unknown = admitv1.Tenants_REFUSE
	}
	if !noDefaults {
		out.Defaults = TenantToProto(d)
	}
	return out
}

// TenantToProto converts a tenant's share as it stands in a policy, or in a row
// of its own.
func TenantToProto(t admission.TenantPolicy) *admitv1.Tenant {
	out := &admitv1.Tenant{
		Id:        t.ID,
		Weight:    optional(t.Weight),
		MaxActive: optional(t.MaxActive),
		Lane:      t.Lane,

		LaneMaxActive: cloneMap(t.LaneMaxActive),
	}
	if t.PreferredActive != nil {
		out.PreferredActive = new(*t.PreferredActive)
	}
	for name, b := range t.Buckets {
		if out.Buckets == nil {
			out.Buckets = make(map[string]*admitv1.BucketOverride, len(t.Buckets))
		}
		out.Buckets[name] = &admitv1.BucketOverride{
			Capacity: optional(b.Capacity),
			Refill:   optional(b.Refill),
			Period:   optionalDuration(b.Period),
			Blocked:  b.Blocked,
		}
	}
	return out
}

func retryMessage(r admission.RetryPolicy) *admitv1.Retry {
	if r == (admission.RetryPolicy{}) {
		return nil
	}
	return &admitv1.Retry{
		MaxAttempts: optional(r.MaxAttempts),
		Base:        optionalDuration(r.Base),
		Max:         optionalDuration(r.Max),
	}
}

func cadenceMessage(c admission.CadencePolicy) *admitv1.Cadence {
	return &admitv1.Cadence{
		Name:   c.Name,
		Base:   optionalDuration(c.Base),
		Factor: optional(c.Factor),
		Max:    optionalDuration(c.Max),
	}
}

func limitsMessage(l admission.LimitsPolicy) *admitv1.Limits {
	if l == (admission.LimitsPolicy{}) {
		return nil
	}
	return &admitv1.Limits{
		Entries:          optional(l.Entries),
		EntriesPerTenant: optional(l.EntriesPerTenant),
		Tenants:          optional(l.Tenants),
		RequestIds:       optional(l.RequestIDs),
		EndedPermits:     optional(l.EndedPermits),
		Waiting:          optional(l.Waiting),
		WaitingPerTenant: optional(l.WaitingPerTenant),
		DedupeKeys:       optional(l.DedupeKeys),

		NewTenantsPerSecond: optional(l.NewTenantsPerSecond),
		TenantRows:          optional(l.TenantRows),
		PausedGroups:        optional(l.PausedGroups),
		Shares:              optional(l.Shares),
	}
}

func optional[N int32 | int64](n N) *N {
	if n == 0 {
		return nil
	}
	return &n
}

func optionalDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

func messages[In, Out any](in []In, one func(In) *Out) []*Out {
	if len(in) == 0 {
		return nil
	}
	out := make([]*Out, len(in))
	for i, v := range in {
		out[i] = one(v)
	}
	return out
}
