package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// What is remembered of calls and permits that are over is remembered so long.
const naiveWindow = 10 * time.Minute

// naivePermit is a live permit. It expires on the lease clock, which stands
// still while nobody leads.
type naivePermit struct {
	token     admission.Token
	fence     int64
	pool      *naivePool
	tenant    string
	lane      string
	granted   admission.Instant
	expires   admission.Instant
	ttl       time.Duration
	cost      int64
	charged   []naiveCharge
	entry     *naiveEntry // nil with Acquire
	cancelled bool
	worker    string

	batch     bool         // for several entries; nobody has its token
	whole     *naivePermit // the batch that it is a part of, or nil
	lockKey   string
	dedupeKey string
	uncounted bool // holds no slot
	borrowed  bool
	node      string
	asked     int64 // of a share that the worker holds: how many tokens it wanted
}

// naiveCharge is what a permit took from a bucket. Only an estimated cost is
// settled.
type naiveCharge struct {
	bucket    *naiveBucket
	name      string
	amount    int64
	estimated bool
}

type naiveEnded struct {
	token  admission.Token
	pool   *naivePool
	tenant string
	at     admission.Instant
}

func (n *naive) leaseNow() admission.Instant { return n.t.Add(-n.offset) }

func (n *naive) live(token admission.Token) *naivePermit {
	for _, p := range n.permits {
		if p.token == token && !p.batch {
			return p
		}
	}
	return nil
}

// forgetOld forgets what is over for too long.
func (n *naive) forgetOld(p *naivePool) {
	old := func(at admission.Instant) bool { return n.t.Sub(at) >= naiveWindow }
	n.ended = deleteIf(n.ended, func(e naiveEnded) bool { return e.pool == p && old(e.at) })
	n.requests = deleteIf(n.requests, func(r naiveRequest) bool { return r.pool == p && old(r.at) })
	kept := n.doneOf(p, n.t)
	n.done = deleteIf(n.done, func(d naiveDone) bool { return d.pool == p && !slices.Contains(kept, d) })
}

// remember remembers a permit that was released, and forgets the oldest if that is
// one too many.
func (n *naive) remember(p *naivePermit) {
	n.permits = deleteIf(n.permits, func(other *naivePermit) bool { return other == p })
	n.ended = append(n.ended, naiveEnded{p.token, p.pool, p.tenant, n.t})
	surplus := -p.pool.policy.Limits.EndedPermits
	for _, e := range n.ended {
		if e.pool == p.pool {
			surplus++
		}
	}
	n.ended = deleteIf(n.ended, func(e naiveEnded) bool {
		if e.pool != p.pool || surplus <= 0 {
			return false
		}
		surplus--
		return true
	})
}

// over finds a permit that was released and is still remembered.
func (n *naive) over(token admission.Token) (naiveEnded, bool) {
	i := slices.IndexFunc(n.ended, func(e naiveEnded) bool { return e.token == token })
	if i < 0 {
		return naiveEnded{}, false
	}
	return n.ended[i], true
}

func (n *naive) renew(op *admission.Renew) *admission.RenewResult {
	res := &admission.RenewResult{}
	for _, token := range op.Tokens {
		renewal := admission.Renewal{Result: admission.LeaseLost}
		pool, tenant := "", ""
		if p := n.live(token); p != nil {
			pool, tenant = p.pool.policy.Name, p.tenant
			renewal = n.renewOne(p, op.TTL)
		} else if e, ok := n.over(token); ok {
			pool, tenant = e.pool.policy.Name, e.tenant
			renewal.Result = admission.LeaseAlreadyReleased
		}
		if res.Pool == "" {
			res.Pool, res.Tenant = pool, tenant
		}
		res.Renewals = append(res.Renewals, renewal)
	}
	return res
}

func (n *naive) renewOne(p *naivePermit, ttl time.Duration) admission.Renewal {
	now := n.leaseNow()
	if now >= p.expires {
		return admission.Renewal{Result: admission.LeaseLost}
	}
	if p.cancelled || p.asked > 0 {
		return admission.Renewal{Result: admission.LeaseCancelled}
	}
	until := max(p.expires, now.Add(orElse(ttl, p.ttl)))
	for _, other := range n.permits {
		if other == p || p.whole != nil && (other == p.whole || other.whole == p.whole) {
			other.expires = until
		}
	}
	return admission.Renewal{Result: admission.LeaseRenewed, ExpiresIn: p.expires.Sub(now)}
}

func (n *naive) release(op *admission.Release) *admission.ReleaseResult {
	p := n.live(op.Token)
	if p == nil {
		if e, ok := n.over(op.Token); ok {
			return &admission.ReleaseResult{
				Result: admission.LeaseAlreadyReleased, Pool: e.pool.policy.Name, Tenant: e.tenant,
			}
		}
		return &admission.ReleaseResult{Result: admission.LeaseLost}
	}
	throttled := -1
	if op.Outcome == admission.OutcomeThrottled {
		throttled = p.throttled(op.Bucket)
		if throttled < 0 {
			return &admission.ReleaseResult{
				Pool: p.pool.policy.Name, Tenant: p.tenant,
				Err: &admission.Error{Reason: admission.InvalidField, Field: "bucket"},
			}
		}
	}
	n.endLoan(p)
	n.settlePermit(p, op.ActualCost)
	if throttled >= 0 {
		terms := p.pool.bucketTerms(throttled, p.tenant)
		p.bucket(throttled).throttle(terms, n.t, op.RetryAfter, p.pool.policy.MaxPause)
	}
	n.remember(p)
	if p.whole != nil {
		n.endWhole(p)
	}
	if op.Outcome == admission.OutcomeDone {
		n.finish(p)
	}
	res := &admission.ReleaseResult{Result: admission.LeaseReleased, Pool: p.pool.policy.Name, Tenant: p.tenant}
	switch {
	case p.cancelled:
		res.Result = admission.LeaseCancelled
	case p.entry != nil:
		n.report(p.pool, p.entry, op)
		n.requeued(p.pool, p.entry)
	}
	n.touch(p.pool, p.pool.tenant(p.tenant))
	return res
}

// bucket is the pool's i-th bucket, that of the permit's tenant if each has one.
func (p *naivePermit) bucket(i int) *naiveBucket {
	if p.pool.policy.Buckets[i].Scope == admission.ScopeTenant {
		return p.pool.tenant(p.tenant).buckets[i]
	}
	return p.pool.buckets[i]
}

// throttled finds the bucket that a THROTTLED means, one that the permit
// charged, or -1.
func (p *naivePermit) throttled(name string) int {
	found := -1
	for i, b := range p.pool.policy.Buckets {
		if name == "" && b.Scope == admission.ScopePool || name == b.Name {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	if found < 0 {
		return -1
	}
	for _, c := range p.charged {
		if c.bucket == p.bucket(found) {
			return found
		}
	}
	return -1
}

// settlePermit replaces the estimated cost by the actual one.
func (n *naive) settlePermit(p *naivePermit, actual int64) {
	if actual == admission.Absent {
		return
	}
	for _, c := range p.charged {
		for i := range p.pool.policy.Buckets {
			if !c.estimated || p.bucket(i) != c.bucket {
				continue
			}
			terms := p.pool.bucketTerms(i, p.tenant)
			if actual <= c.amount {
				c.bucket.take(terms, n.t, actual-c.amount)
			} else {
				c.bucket.overspend(terms, n.t, actual-c.amount)
			}
		}
	}
}

// The most permits that one entry expires.
const naiveSweep = 1000

func (n *naive) expire() {
	now := n.leaseNow()
	due := deleteIf(n.permits, func(p *naivePermit) bool { return p.expires > now })
	slices.SortStableFunc(due, func(a, b *naivePermit) int { return int(a.expires.Sub(b.expires)) })
	due = due[:min(len(due), naiveSweep)]
	n.permits = deleteIf(n.permits, func(p *naivePermit) bool { return slices.Contains(due, p) })
	for _, p := range due {
		n.endLoan(p)
		if p.whole == nil {
			p.pool.expired++
		}
		if p.entry != nil && !p.cancelled {
			n.fail(p.pool, p.entry, admission.OutcomeExpired, n.w.Add(-now.Sub(p.expires)))
			n.requeued(p.pool, p.entry)
		}
		n.touch(p.pool, p.pool.tenant(p.tenant))
	}
}
