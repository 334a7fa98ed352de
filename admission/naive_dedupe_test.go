package admission_test

import "github.com/admitd/admit/admission"

// naiveDone is a dedupe key whose job is done.
type naiveDone struct {
	pool        *naivePool
	tenant, key string
	at          admission.Instant
}

// finish remembers that a permit's job is done.
func (n *naive) finish(p *naivePermit) {
	if p.dedupeKey != "" {
		n.done = append(n.done, naiveDone{p.pool, p.tenant, p.dedupeKey, n.t})
	}
}

// duplicates says whether the job of an Acquire runs or is done.
func (n *naive) duplicates(p *naivePool, op *admission.Acquire, at admission.Instant) []naiveLimit {
	if op.DedupeKey == "" {
		return nil
	}
	l := naiveLimit{
		Limit: admission.Limit{
			Name: "dedupe_key", Scope: admission.ScopeTenant, Capacity: 1, Used: 1, Asked: 1, RetryAfter: admission.Absent,
		},
		reason: admission.Duplicate,
	}
	for _, permit := range n.permits {
		if permit.pool == p && permit.tenant == op.Tenant && permit.dedupeKey == op.DedupeKey {
			l.Holders = 1
			l.frees = func(other *naivePermit) bool { return other == permit }
			return []naiveLimit{l}
		}
	}
	for _, done := range n.doneOf(p, at) {
		if done.tenant == op.Tenant && done.key == op.DedupeKey {
			return []naiveLimit{l}
		}
	}
	return nil
}

// doneOf are the keys of a pool that are remembered as done, oldest first.
func (n *naive) doneOf(p *naivePool, at admission.Instant) []naiveDone {
	return deleteIf(n.done, func(d naiveDone) bool {
		return d.pool != p || at.Sub(d.at) >= p.policy.DoneRetention
	})
}

// jobs are the keys that a pool knows: those that run, are waited for or are
// remembered as done.
func (n *naive) jobs(p *naivePool) map[[2]string]bool {
	known := make(map[[2]string]bool)
	for _, permit := range n.permits {
		if permit.pool == p && permit.dedupeKey != "" {
			known[[2]string{permit.tenant, permit.dedupeKey}] = true
		}
	}
	for _, w := range n.waiters {
		if w.pool == p && w.op.DedupeKey != "" {
			known[[2]string{w.op.Tenant, w.op.DedupeKey}] = true
		}
	}
	for _, done := range n.doneOf(p, n.t) {
		known[[2]string{done.tenant, done.key}] = true
	}
	return known
}

// dedupeLimits are those of how many keys a pool knows.
func (n *naive) dedupeLimits(p *naivePool, op *admission.Acquire, lane string) []naiveLimit {
	most, known := p.policy.Limits.DedupeKeys, n.jobs(p)
	used, part := int64(len(known)), p.part(lane, most)
	if op.DedupeKey == "" || known[[2]string{op.Tenant, op.DedupeKey}] || used < part {
		return nil
	}
	return []naiveLimit{{reason: admission.Cardinality, Limit: admission.Limit{
		Name: "limits.dedupe_keys", Scope: admission.ScopePool, Capacity: most, Used: used, Asked: 1,
		Reserve: most - part, RetryAfter: admission.Absent,
	}}}
}
