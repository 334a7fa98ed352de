package admission_test

import (
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/admitd/admit/admission"
)

func (n *naive) applyPolicy(op admission.ApplyPolicy) *admission.PolicyResult {
	if op.ExpectedRevision != admission.AnyRevision && op.ExpectedRevision != n.revision {
		return &admission.PolicyResult{Revision: n.revision, Err: &admission.Error{
			Reason: admission.RevisionConflict, Field: "expected_revision",
			Meta: []string{
				"expected", strconv.FormatInt(op.ExpectedRevision, 10),
				"actual", strconv.FormatInt(n.revision, 10),
			},
		}}
	}
	if n.revision > 0 && reflect.DeepEqual(op.Policy, n.policy) {
		return &admission.PolicyResult{Revision: n.revision}
	}
	if !op.Drain && n.inUse(op.Policy) {
		return &admission.PolicyResult{Revision: n.revision, Err: &admission.Error{Reason: admission.InUse, Field: "policy"}}
	}
	res := &admission.PolicyResult{Revision: n.revision + 1, Changed: true}
	for _, left := range n.leftBy(op.Policy) {
		res.Draining = append(res.Draining, left.told)
	}
	n.policy, n.appliedAt = op.Policy, n.w
	n.revision++
	n.configure()
	return res
}

// filled is a pool's policy with the documented defaults.
func filled(p admission.PoolPolicy) admission.PoolPolicy {
	p.PermitTTL = orElse(p.PermitTTL, 30*time.Second)
	p.MaxPause = orElse(p.MaxPause, 15*time.Minute)
	if len(p.Lanes) == 0 {
		p.Lanes = []admission.LanePolicy{{Name: "default"}}
	}
	p.Defaults.Weight = orElse(p.Defaults.Weight, 1)
	if p.Defaults.PreferredActive == nil {
		p.Defaults.PreferredActive = new(int64)
	}
	p.Defaults.Lane = orElse(p.Defaults.Lane, p.Lanes[len(p.Lanes)-1].Name)
	p.Retry.MaxAttempts = orElse(p.Retry.MaxAttempts, 5)
	p.Retry.Base = orElse(p.Retry.Base, time.Second)
	p.Retry.Max = orElse(p.Retry.Max, time.Hour)
	p.Limits.Entries = orElse(p.Limits.Entries, 10_000_000)
	p.Limits.EntriesPerTenant = orElse(p.Limits.EntriesPerTenant, max(p.Limits.Entries/10, 1))
	p.Limits.Tenants = orElse(p.Limits.Tenants, 100_000)
	p.Limits.RequestIDs = orElse(p.Limits.RequestIDs, 1_000_000)
	p.Limits.EndedPermits = orElse(p.Limits.EndedPermits, 100_000)
	p.Limits.Waiting = orElse(p.Limits.Waiting, 10_000)
	p.Limits.WaitingPerTenant = orElse(p.Limits.WaitingPerTenant, 1_000)
	p.Limits.NewTenantsPerSecond = orElse(p.Limits.NewTenantsPerSecond, 1000)
	p.Limits.TenantRows = orElse(p.Limits.TenantRows, 100_000)
	p.Limits.PausedGroups = orElse(p.Limits.PausedGroups, 10_000)
	p.Limits.DedupeKeys = orElse(p.Limits.DedupeKeys, 1_000_000)
	p.Limits.Shares = orElse(p.Limits.Shares, 10_000)
	p.DeadRetention = orElse(p.DeadRetention, 7*24*time.Hour)
	p.LockMaxActive = orElse(p.LockMaxActive, 1)
	p.DoneRetention = orElse(p.DoneRetention, 24*time.Hour)
	p.Cadences = slices.Clone(p.Cadences)
	for i := range p.Cadences {
		c := &p.Cadences[i]
		c.Factor, c.Max = orElse(c.Factor, 2), orElse(c.Max, max(time.Hour, c.Base))
	}
	return p
}

func orElse[V comparable](v, absent V) V {
	var zero V
	if v == zero {
		return absent
	}
	return v
}

// adopt puts a pool under a new policy: what it had under the same names goes on.
func (n *naive) adopt(before []*naivePool, policy admission.PoolPolicy) *naivePool {
	for _, p := range before {
		if p.policy.Name == policy.Name {
			n.change(p, policy)
			return p
		}
	}
	p := &naivePool{policy: policy, newcomers: newNaiveBucket()}
	for _, l := range policy.Lanes {
		p.lanes = append(p.lanes, &naiveLane{name: l.Name})
	}
	for range policy.Buckets {
		p.buckets = append(p.buckets, newNaiveBucket())
	}
	return p
}

func (n *naive) change(p *naivePool, policy admission.PoolPolicy) {
	old := *p
	p.policy, p.lanes, p.buckets = policy, nil, nil
	for _, l := range policy.Lanes {
		lane := old.lane(l.Name)
		if lane == nil {
			lane = &naiveLane{name: l.Name}
		}
		lane.yielding = lane.yielding && l.Yield != nil
		p.lanes = append(p.lanes, lane)
	}
	for i, b := range policy.Buckets {
		p.buckets = append(p.buckets, n.changeBucket(old.buckets, &old, p, b, i, ""))
	}
	p.newcomers.change(old.newcomerTerms(), p.newcomerTerms(), n.t)
	for _, t := range p.tenants {
		kept := t.demands[:0]
		for _, d := range t.demands {
			if p.lane(d.lane) != nil {
				kept = append(kept, d)
			}
		}
		t.demands = kept
		n.changeTenant(&old, p, t)
	}
}

// changeTenant gives a tenant the share that it has now.
func (n *naive) changeTenant(old, now *naivePool, t *naiveTenant) {
	buckets := t.buckets
	t.buckets = nil
	for i, b := range now.policy.Buckets {
		t.buckets = append(t.buckets, n.changeBucket(buckets, old, now, b, i, t.id))
	}
	n.touch(now, t)
}

// changeBucket returns the bucket that goes on under terms i of the new policy:
// the one that had this name and scope, or a full one.
func (n *naive) changeBucket(
	had []*naiveBucket, old, now *naivePool, b admission.BucketPolicy, i int, tenant string,
) *naiveBucket {
	for j, was := range old.policy.Buckets {
		if was.Name == b.Name && was.Scope == b.Scope {
			had[j].change(old.bucketTerms(j, tenant), now.bucketTerms(i, tenant), n.t)
			return had[j]
		}
	}
	return newNaiveBucket()
}

// forgetPools drops what is remembered for pools that are gone.
func (n *naive) forgetPools(before []*naivePool) {
	for _, p := range before {
		if n.pool(p.policy.Name) == p {
			continue
		}
		n.ended = deleteIf(n.ended, func(e naiveEnded) bool { return e.pool == p })
		n.requests = deleteIf(n.requests, func(r naiveRequest) bool { return r.pool == p })
		n.done = deleteIf(n.done, func(d naiveDone) bool { return d.pool == p })
	}
}

// deleteIf returns a list without what f selects.
func deleteIf[V any](list []V, f func(V) bool) []V {
	var kept []V
	for _, v := range list {
		if !f(v) {
			kept = append(kept, v)
		}
	}
	return kept
}

func (n *naive) pause(op admission.Pause) *admission.PauseResult {
	p := n.pool(op.Pool)
	if p == nil {
		return &admission.PauseResult{Err: noPool(op.Pool)}
	}
	switch op.Kind {
	case admission.TargetTenant:
		t := p.tenant(op.Name)
		if err := n.unable(p, t, op.Resume); err != nil {
			return &admission.PauseResult{Err: err}
		}
		n.pauseTenant(p, t, op.Resume)
		return &admission.PauseResult{}
	case admission.TargetGroup:
		return &admission.PauseResult{Err: n.pauseGroup(p, op)}
	case admission.TargetLane:
		if l := p.lane(op.Name); l != nil {
			l.paused = !op.Resume
			return &admission.PauseResult{}
		}
	case admission.TargetBucket:
		for i, b := range p.policy.Buckets {
			if b.Name == op.Name && b.Scope == admission.ScopePool {
				p.buckets[i].hold(p.bucketTerms(i, ""), n.t, op.Resume)
				return &admission.PauseResult{}
			}
		}
	}
	return &admission.PauseResult{Err: &admission.Error{
		Reason: admission.TargetNotFound, Meta: []string{"pool", op.Pool, "target", op.Name},
	}}
}

// unable says why an operator can't name a tenant, or nothing.
func (n *naive) unable(p *naivePool, t *naiveTenant, resume bool) *admission.Error {
	if t.known && !t.spare {
		return nil
	}
	err := p.refused(t.id)
	if err == nil && !resume && n.full(p, t.id, p.policy.Lanes[0].Name) {
		err = &admission.Error{Reason: admission.LimitReached}
	}
	return err
}

// pauseTenant holds a tenant, or lifts every pause that holds it.
func (n *naive) pauseTenant(p *naivePool, t *naiveTenant, resume bool) {
	if t.spare && resume {
		return
	}
	t.paused = !resume
	for i, b := range t.buckets {
		if resume && b.paused(n.t) {
			b.hold(p.bucketTerms(i, t.id), n.t, resume)
		}
	}
	if t.paused {
		n.introduce(p, t)
	}
	n.touch(p, t)
}

func noPool(name string) *admission.Error {
	return &admission.Error{Reason: admission.PoolNotFound, Field: "pool", Meta: []string{"pool", name}}
}
