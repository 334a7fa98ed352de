package admission

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// defaultLane is the one lane of a pool that names none.
const defaultLane = "default"

const (
	defaultTTL           = 30 * time.Second
	defaultMaxPause      = 15 * time.Minute
	defaultDeadRetention = 7 * 24 * time.Hour
)

func (r RetryPolicy) withDefaults() RetryPolicy {
	return RetryPolicy{
		MaxAttempts: firstOf(r.MaxAttempts, 5),
		Base:        firstOf(r.Base, time.Second),
		Max:         firstOf(r.Max, max(time.Hour, r.Base)),
	}
}

func (c CadencePolicy) withDefaults() CadencePolicy {
	c.Factor = firstOf(c.Factor, 2)
	c.Max = firstOf(c.Max, max(time.Hour, c.Base))
	return c
}

func (l LimitsPolicy) withDefaults() LimitsPolicy {
	entries := firstOf(l.Entries, 10_000_000)
	return LimitsPolicy{
		Entries:             entries,
		EntriesPerTenant:    firstOf(l.EntriesPerTenant, max(entries/10, 1)),
		Tenants:             firstOf(l.Tenants, 100_000),
		NewTenantsPerSecond: firstOf(l.NewTenantsPerSecond, 1000),
		TenantRows:          firstOf(l.TenantRows, 100_000),
		RequestIDs:          firstOf(l.RequestIDs, 1_000_000),
		EndedPermits:        firstOf(l.EndedPermits, 100_000),
		Waiting:             firstOf(l.Waiting, 10_000),
		WaitingPerTenant:    firstOf(l.WaitingPerTenant, 1_000),
		DedupeKeys:          firstOf(l.DedupeKeys, 1_000_000),
		PausedGroups:        firstOf(l.PausedGroups, 10_000),
		Shares:              firstOf(l.Shares, 10_000),
	}
}

func (t TokenShare) withDefaults() TokenShare {
	t.TTL = firstOf(t.TTL, 10*time.Second)
	t.IdleReturn = firstOf(t.IdleReturn, min(2*time.Second, t.TTL))
	t.OnLoss = firstOf(t.OnLoss, OnLossClosed)
	return t
}

func (y YieldPolicy) withDefaults() YieldPolicy {
	if y.Above != Absent && y.Resume == Absent {
		y.Resume = y.Above / 2
	}
	y.ResumeAge = firstOf(y.ResumeAge, y.AboveAge/2)
	return y
}

// firstOf returns the first that is not zero.
func firstOf[T comparable](values ...T) T {
	var zero T
	for _, v := range values {
		if v != zero {
			return v
		}
	}
	return zero
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func (p Policy) equal(q Policy) bool { return slices.EqualFunc(p.Pools, q.Pools, PoolPolicy.equal) }

func (p PoolPolicy) equal(q PoolPolicy) bool {
	return p.Name == q.Name && p.MaxActive == q.MaxActive && p.PermitTTL == q.PermitTTL &&
		p.MaxPause == q.MaxPause && p.Retry == q.Retry && p.Limits == q.Limits &&
		p.LockMaxActive == q.LockMaxActive && p.DoneRetention == q.DoneRetention && p.DeadRetention == q.DeadRetention && p.Shadow == q.Shadow &&
		p.RefuseUnknown == q.RefuseUnknown &&
		slices.Equal(p.Buckets, q.Buckets) && slices.Equal(p.Cadences, q.Cadences) && slices.EqualFunc(p.Lanes, q.Lanes, LanePolicy.equal) &&
		maps.Equal(p.Categories, q.Categories) && p.Defaults.equal(q.Defaults) &&
		slices.EqualFunc(p.Overrides, q.Overrides, TenantPolicy.equal) && slices.EqualFunc(p.Envoy, q.Envoy, EnvoyRule.equal)
}

func (r EnvoyRule) equal(s EnvoyRule) bool {
	return r.Name == s.Name && r.Tenant == s.Tenant && r.Category == s.Category && r.Unlimited == s.Unlimited && r.Shadow == s.Shadow &&
		maps.Equal(r.Match, s.Match) && slices.Equal(r.Buckets, s.Buckets)
}

func (l LanePolicy) equal(m LanePolicy) bool {
	yields := l.Yield == nil && m.Yield == nil || l.Yield != nil && m.Yield != nil && *l.Yield == *m.Yield
	return yields && l.Name == m.Name && l.LeaveSlots == m.LeaveSlots && l.TenantCycleLimit == m.TenantCycleLimit && l.Batch == m.Batch &&
		maps.Equal(l.LeaveTokens, m.LeaveTokens)
}

func (t TenantPolicy) equal(u TenantPolicy) bool {
	same := t.PreferredActive == nil && u.PreferredActive == nil ||
		t.PreferredActive != nil && u.PreferredActive != nil && *t.PreferredActive == *u.PreferredActive
	return same && t.ID == u.ID && t.Weight == u.Weight && t.MaxActive == u.MaxActive && t.Lane == u.Lane &&
		maps.Equal(t.LaneMaxActive, u.LaneMaxActive) && maps.Equal(t.Buckets, u.Buckets)
}

// describe writes the policy so that equal ones read the same.
func (p Policy) describe(w io.Writer) {
	for _, pool := range p.Pools {
		shares := append([]TenantPolicy{pool.Defaults}, pool.Overrides...)
		lanes := pool.Lanes
		pool.Defaults, pool.Overrides, pool.Lanes = TenantPolicy{}, nil, nil
		fmt.Fprintf(w, "%+v\n", pool)
		for _, l := range lanes {
			yield := YieldPolicy{}
			if l.Yield != nil {
				yield = *l.Yield
			}
			fmt.Fprintf(w, "%t %+v ", l.Yield != nil, yield)
			l.Yield = nil
			fmt.Fprintf(w, "%+v\n", l)
		}
		for _, t := range shares {
			t.describe(w)
		}
	}
}

// describe writes the tenant's share without the place in memory of any part.
func (t TenantPolicy) describe(w io.Writer) {
	preferred := int64(Absent)
	if t.PreferredActive != nil {
		preferred = *t.PreferredActive
	}
	t.PreferredActive = nil
	fmt.Fprintf(w, "%+v %d\n", t, preferred)
}
