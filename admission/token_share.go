package admission

import (
	"math"
	"time"

	"github.com/tidwall/btree"
)

// A share is tokens that a sidecar holds, to grant from without asking. It is a permit
// that holds no slot: it charged what it is, lives on the lease clock, and is released or
// expires. It is decided with the Takes, after all else of its entry, takes no turn and
// moves nobody's tag. While it lives its tokens are lent: they do not refill. So what a
// bucket granted and what sidecars hold of it is never more than its capacity, and what
// they really spent keeps the bucket's law in any span, however late they spent it.

// shareTerms are what a share's buckets say of it together.
type shareTerms struct {
	ttl, idleReturn time.Duration
	onLoss          OnLoss
	safe            int64
	safePeriod      time.Duration
}

// sharedBucket is a settled bucket that a share would charge.
type sharedBucket struct {
	spec  *bucketSpec
	state bucketState
	leave int64
	rate  Reason // the word for too few tokens
	// shares are those live ones that may be of it.
	shares *btree.BTreeG[expiry]
}

// appraise decides a LeaseShare, changing nothing, and returns whose it is.
func (s *State) appraise(op *LeaseShare, at Instant) (*demand, shareTerms, *LeaseShareResult) {
	res := &LeaseShareResult{Revision: s.revision}
	p := s.pools.byName(op.Pool)
	if p == nil {
		res.Err = poolNotFound(op.Pool)
		return nil, shareTerms{}, res
	}
	t := p.tenant(op.Tenant)
	l, err := t.laneFor(op.Category)
	if err != nil {
		res.Err = err
		return nil, shareTerms{}, res
	}
	d := t.demand(l)
	buckets := t.sharedBuckets(l, at)
	if res.Err = t.unshared(buckets); res.Err != nil {
		return d, shareTerms{}, res
	}
	terms := termsOf(buckets)
	res.IdleReturn, res.OnLoss, res.Safe, res.SafePeriod = terms.idleReturn, terms.onLoss, terms.safe, terms.safePeriod
	x := s.explainShare(op, d, at)
	if x.reason == ReasonNone {
		res.Tokens = s.shareOut(x, op, buckets)
	}
	if x.reason != ReasonNone {
		res.Tokens, res.Shed = 0, x.shed()
	}
	return d, terms, res
}

// sharedBuckets are all the buckets that a permit of the tenant's in the lane charges.
func (t *tenant) sharedBuckets(l *lane, at Instant) []sharedBucket {
	all := make([]sharedBucket, 0, len(t.pool.buckets)+len(t.share.buckets))
	for i := range t.pool.buckets {
		b := &t.pool.buckets[i]
		all = append(all, sharedBucket{b.bucketSpec, b.settled(b.bucketSpec, at), l.leaveTokens[i], PoolRate, t.pool.shares})
	}
	for i, spec := range t.share.buckets {
		all = append(all, sharedBucket{spec, t.bucket(i, at), 0, TenantRate, t.shares})
	}
	return all
}

// unshared says why sidecars may hold no tokens for the tenant, or nothing.
func (t *tenant) unshared(buckets []sharedBucket) *Error {
	switch {
	case t.pool.shadow:
		return notShared(t.pool.name, "the pool only watches")
	case len(buckets) == 0:
		return notShared(t.pool.name, "the pool has no bucket")
	}
	for i := range buckets {
		if spec := buckets[i].spec; spec.shared == nil || spec.blocked {
			return notShared(t.pool.name, "bucket "+spec.name+" has no share, or is blocked")
		}
	}
	return nil
}

// explainShare examines an Acquire that would take a single token.
func (s *State) explainShare(op *LeaseShare, d *demand, at Instant) *examination {
	one := &Acquire{Pool: op.Pool, Tenant: op.Tenant, Category: op.Category, Cost: 1, RateOnly: true, Settle: true}
	p := d.tenant.pool
	holder, reserved := s.reservation(p, at)
	x := s.explain(&ask{op: one, demand: d}, at, holder, reserved && s.goesAfter(d, one.need(), holder))
	limit := d.lane.memory("limits.shares", ScopePool, p.limits.Shares, int64(p.shares.Len()))
	first := never
	if next, any := p.shares.Min(); any {
		first = next.at
	}
	x.held(onlyIf(limit.full(), Cardinality), limit, first)
	return x
}

// asked is the number of tokens that it asks for.
func (op *LeaseShare) asked() int64 { return min(max(op.Tokens, 1), MaxTokens) }

// shareOut returns how many tokens of every bucket the sidecar may hold more. Where that
// is none, the examination has a reason and no limit: others hold them.
func (s *State) shareOut(x *examination, op *LeaseShare, buckets []sharedBucket) int64 {
	n := op.asked()
	for i := range buckets {
		b := &buckets[i]
		n = min(n, b.spec.capacity-b.leave-b.state.used)
		part := s.partOf(op.Node, op.asked(), b)
		if n = min(n, part); part < 1 {
			x.reason, x.readyAt = firstReason(x.reason, b.rate), never
			x.expires = min(x.expires, s.firstShare(x.demand.tenant, b.spec))
		}
	}
	return n
}

// termsOf returns the strictest of what the buckets say.
func termsOf(buckets []sharedBucket) shareTerms {
	terms := shareTerms{ttl: math.MaxInt64, idleReturn: math.MaxInt64, onLoss: OnLossOpen}
	for i := range buckets {
		spec, own := buckets[i].spec, buckets[i].spec.shared
		terms.ttl, terms.idleReturn = min(terms.ttl, own.TTL), min(terms.idleReturn, own.IdleReturn)
		if own.OnLoss == OnLossClosed || terms.onLoss == OnLossOpen {
			terms.onLoss = own.OnLoss
		}
		if own.OnLoss == OnLossSafe && (terms.safe == 0 || slower(own.Safe, spec.period, terms.safe, terms.safePeriod)) {
			terms.safe, terms.safePeriod = own.Safe, spec.period
		}
	}
	if terms.onLoss != OnLossSafe {
		terms.safe, terms.safePeriod = 0, 0
	}
	return terms
}

// leaseShare decides a LeaseShare and charges it.
func (s *State) leaseShare(op *LeaseShare) *LeaseShareResult {
	d, terms, res := s.appraise(op, s.t)
	if res.Err != nil || res.Shed != nil {
		return res
	}
	s.registerDemand(d)
	s.takeTokens(d.tenant, res.Tokens)
	p := s.newPermit(d, order{cost: res.Tokens, ttl: terms.ttl, nonce: op.Nonce, worker: op.Node.ID})
	p.buckets, p.uncounted, p.wanted = d.tenant.pool.bucketIDs, true, op.asked()
	s.hold(p)
	res.Permit = s.view(p, s.t)
	s.reseatTenant(d.tenant)
	return res
}

// DecideLease returns what a LeaseShare would come to at an instant, changing nothing,
// and whether that stands: then nothing would change, and nothing needs to be logged for
// it.
func (s *State) DecideLease(at Instant, op *LeaseShare) (r *LeaseShareResult, stands bool) {
	at = max(at, s.t)
	d, _, res := s.appraise(op, at)
	switch {
	case res.Err != nil:
		return res, true
	case res.Shed == nil, d.tenant.pool.yieldStale(s.w.Add(at.Sub(s.t))):
		return res, false
	case res.Shed.Reason == Cardinality && d.tenant.pool.idleBy(at):
		return res, false // an entry would find room first
	}
	return res, true
}
