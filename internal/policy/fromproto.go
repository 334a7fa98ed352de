package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// outOfRange stands for a value that is given but that no rule allows, such as
// a capacity of 0: the core's 0 means absent.
const outOfRange = -1

// FromProto converts a policy of the API into the core's form. The violations
// are only those that the core's form can't express; the caller goes on with
// admission.Policy.Validate for the rest. The two never name the same field.
func FromProto(p *admitv1.Policy) (admission.Policy, []admission.Violation) {
	var c converter
	out := admission.Policy{Pools: convert(p.GetPools(), "pools", c.pool)}
	return out, c.violations
}

type converter struct {
	violations []admission.Violation
}

func (c *converter) pool(path string, p *admitv1.Pool) admission.PoolPolicy {
	return admission.PoolPolicy{
		Name:          p.GetName(),
		MaxActive:     positive(p.MaxActive),
		PermitTTL:     duration(p.GetPermitTtl()),
		Buckets:       convert(p.GetBuckets(), path+".buckets", c.bucket),
		Lanes:         convert(p.GetLanes(), path+".lanes", lane),
		Categories:    cloneMap(p.GetCategories()),
		Defaults:      TenantFromProto(p.GetTenants().GetDefaults()),
		Overrides:     convert(p.GetTenants().GetOverrides(), path+".tenants.overrides", override),
		Retry:         retry(p.GetRetry()),
		MaxPause:      duration(p.GetMaxPause()),
		Limits:        limits(p.GetLimits()),
		Cadences:      convert(p.GetCadences(), path+".cadences", cadence),
		LockMaxActive: positive(p.LockMaxActive),
		DoneRetention: duration(p.GetDoneRetention()),
		DeadRetention: duration(p.GetDeadRetention()),
		Shadow:        c.shadow(path+".enforcement", p.GetEnforcement()),
		RefuseUnknown: c.refusesUnknown(path, p.GetTenants().GetUnknown()),
		Envoy:         convert(p.GetEnvoy().GetRules(), path+".envoy.rules", envoyRule),
	}
}

func envoyRule(_ string, r *admitv1.EnvoyRule) admission.EnvoyRule {
	return admission.EnvoyRule{
		Name: r.GetName(), Match: cloneMap(r.GetMatch()), Tenant: r.GetTenant(), Category: r.GetCategory(),
		Buckets: slices.Clone(r.GetBuckets()), Unlimited: r.GetUnlimited(), Shadow: r.GetShadow(),
	}
}

func (c *converter) refusesUnknown(path string, u admitv1.Tenants_Unknown) bool {
	switch u {
	case admitv1.Tenants_UNKNOWN_UNSPECIFIED, admitv1.Tenants_ADMIT:
		return false
	case admitv1.Tenants_REFUSE:
		return true
	}
	c.violations = append(c.violations, admission.Violation{
		Field:   path + ".tenants.unknown",
		Message: fmt.Sprintf("expected ADMIT or REFUSE, got %d", u),
	})
	return false
}

func (c *converter) shadow(path string, e admitv1.Pool_Enforcement) bool {
	switch e {
	case admitv1.Pool_ENFORCEMENT_UNSPECIFIED, admitv1.Pool_ENFORCE:
		return false
	case admitv1.Pool_SHADOW:
		return true
	}
	c.violations = append(c.violations, admission.Violation{
		Field: path, Message: fmt.Sprintf("expected ENFORCE or SHADOW, got %d", e),
	})
	return false
}

func (c *converter) bucket(path string, b *admitv1.Bucket) admission.BucketPolicy {
	out := admission.BucketPolicy{
		Name:     b.GetName(),
		Capacity: positive(b.Capacity),
		Refill:   positive(b.Refill),
		Period:   duration(b.GetPeriod()),
		Blocked:  b.GetBlocked(),
		OneShot:  b.GetOneShot(),
		Share:    tokenShare(b.GetShare()),
	}
	switch b.GetScope() {
	case admitv1.Bucket_POOL:
		out.Scope = admission.ScopePool
	case admitv1.Bucket_TENANT:
		out.Scope = admission.ScopeTenant
	}
	switch b.GetCharge() {
	case admitv1.Bucket_CHARGE_UNSPECIFIED, admitv1.Bucket_COST:
	case admitv1.Bucket_PERMIT:
		out.PerPermit = true
	default:
		c.violations = append(c.violations, admission.Violation{
			Field:   path + ".charge",
			Message: fmt.Sprintf("expected COST or PERMIT, got %d", b.GetCharge()),
		})
	}
	return out
}

func tokenShare(t *admitv1.TokenShare) admission.TokenShare {
	if t == nil {
		return admission.TokenShare{}
	}
	out := admission.TokenShare{
		Max: positive(t.Max), TTL: duration(t.GetTtl()), IdleReturn: duration(t.GetIdleReturn()), Safe: positive(t.Safe),
	}
	switch t.GetOnLoss() {
	case admitv1.TokenShare_ON_LOSS_UNSPECIFIED:
	case admitv1.TokenShare_CLOSED:
		out.OnLoss = admission.OnLossClosed
	case admitv1.TokenShare_OPEN:
		out.OnLoss = admission.OnLossOpen
	case admitv1.TokenShare_SAFE:
		out.OnLoss = admission.OnLossSafe
	default:
		out.OnLoss = math.MaxUint8
	}
	if out == (admission.TokenShare{}) {
		out.Max = outOfRange // given, if empty
	}
	return out
}

func lane(_ string, l *admitv1.Lane) admission.LanePolicy {
	return admission.LanePolicy{
		Name:             l.GetName(),
		LeaveSlots:       l.GetLeaveSlots(),
		LeaveTokens:      cloneMap(l.GetLeaveTokens()),
		TenantCycleLimit: positive(l.TenantCycleLimit),
		Yield:            yield(l.GetYield()),
		Batch:            batch(l.GetBatch()),
	}
}

func batch(b *admitv1.Batch) admission.BatchPolicy {
	if b == nil {
		return admission.BatchPolicy{}
	}
	out := admission.BatchPolicy{Size: positive(b.Size), Only: b.GetOnly()}
	if l := b.GetLinger(); l != nil && (l.GetSeconds() != 0 || l.GetNanos() != 0) {
		out.Linger = duration(l)
	}
	if out == (admission.BatchPolicy{}) {
		out.Size = outOfRange // given, if empty
	}
	return out
}

func yield(y *admitv1.Yield) *admission.YieldPolicy {
	if y == nil {
		return nil
	}
	return &admission.YieldPolicy{
		Above:     counted(y.Above),
		Resume:    counted(y.Resume),
		AboveAge:  duration(y.GetAboveAge()),
		ResumeAge: duration(y.GetResumeAge()),
	}
}

func override(_ string, t *admitv1.Tenant) admission.TenantPolicy { return TenantFromProto(t) }

// TenantFromProto converts a tenant's share as it stands in a policy, or in a row
// of its own.
func TenantFromProto(t *admitv1.Tenant) admission.TenantPolicy {
	if t == nil {
		return admission.TenantPolicy{}
	}
	out := admission.TenantPolicy{
		ID:        t.GetId(),
		Weight:    positive(t.Weight),
		MaxActive: positive(t.MaxActive),
		Lane:      t.GetLane(),

		LaneMaxActive: cloneMap(t.GetLaneMaxActive()),
	}
	if t.PreferredActive != nil {
		out.PreferredActive = new(t.GetPreferredActive())
	}
	for name, b := range t.GetBuckets() {
		if out.Buckets == nil {
			out.Buckets = make(map[string]admission.BucketOverride, len(t.GetBuckets()))
		}
		out.Buckets[name] = bucketOverride(b)
	}
	return out
}

func bucketOverride(b *admitv1.BucketOverride) admission.BucketOverride {
	if b == nil {
		return admission.BucketOverride{}
	}
	return admission.BucketOverride{
		Capacity: positive(b.Capacity),
		Refill:   positive(b.Refill),
		Period:   duration(b.GetPeriod()),
		Blocked:  b.GetBlocked(),
	}
}

func retry(r *admitv1.Retry) admission.RetryPolicy {
	if r == nil {
		return admission.RetryPolicy{}
	}
	return admission.RetryPolicy{
		MaxAttempts: positive(r.MaxAttempts),
		Base:        duration(r.GetBase()),
		Max:         duration(r.GetMax()),
	}
}

func cadence(_ string, c *admitv1.Cadence) admission.CadencePolicy {
	return admission.CadencePolicy{
		Name:   c.GetName(),
		Base:   duration(c.GetBase()),
		Factor: positive(c.Factor),
		Max:    duration(c.GetMax()),
	}
}

func limits(l *admitv1.Limits) admission.LimitsPolicy {
	if l == nil {
		return admission.LimitsPolicy{}
	}
	return admission.LimitsPolicy{
		Entries:          positive(l.Entries),
		EntriesPerTenant: positive(l.EntriesPerTenant),
		Tenants:          positive(l.Tenants),
		RequestIDs:       positive(l.RequestIds),
		EndedPermits:     positive(l.EndedPermits),
		Waiting:          positive(l.Waiting),
		WaitingPerTenant: positive(l.WaitingPerTenant),
		DedupeKeys:       positive(l.DedupeKeys),

		NewTenantsPerSecond: positive(l.NewTenantsPerSecond),
		TenantRows:          positive(l.TenantRows),
		PausedGroups:        positive(l.PausedGroups),
		Shares:              positive(l.Shares),
	}
}

// positive converts a number whose range starts at 1 or above.
func positive[N int32 | int64](n *N) N {
	switch {
	case n == nil:
		return 0
	case *n == 0:
		return outOfRange
	}
	return *n
}

// counted converts a number whose range starts at 0.
func counted(n *int64) int64 {
	switch {
	case n == nil:
		return admission.Absent
	case *n < 0:
		return admission.Absent - 1
	}
	return *n
}

// duration converts a duration whose range starts above 0. One that is not well
// formed or does not fit becomes one that no range holds.
func duration(d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.CheckValid() != nil {
		return outOfRange
	}
	// AsDuration saturates, so that what is too long stays too long.
	if out := d.AsDuration(); out > 0 {
		return out
	}
	return outOfRange
}

func convert[In, Out any](in []In, path string, one func(path string, v In) Out) []Out {
	if len(in) == 0 {
		return nil
	}
	out := make([]Out, len(in))
	for i, v := range in {
		out[i] = one(fmt.Sprintf("%s[%d]", path, i), v)
	}
	return out
}

func cloneMap[V any](in map[string]V) map[string]V {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]V, len(in))
	for k, v := range in {
		out[k] = v
	}
	return out
}
