package admission_test

import (
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// sharesOf are the live shares of a pool, oldest first.
func (n *naive) sharesOf(p *naivePool) []*naivePermit {
	return deleteIf(n.permits, func(permit *naivePermit) bool { return permit.pool != p || permit.asked == 0 })
}

// lentOf is what a permit holds of a bucket.
func (p *naivePermit) lentOf(b *naiveBucket) int64 {
	for _, c := range p.charged {
		if p.asked > 0 && c.bucket == b {
			return c.amount
		}
	}
	return 0
}

// endLoan has the tokens of a share count as spent.
func (n *naive) endLoan(p *naivePermit) {
	for i := range p.pool.policy.Buckets {
		if amount := p.lentOf(p.bucket(i)); amount > 0 {
			p.bucket(i).endLoan(p.pool.bucketTerms(i, p.tenant), n.t, amount)
		}
	}
}

// leaseShare decides a LeaseShare when all else of the entry is decided.
func (n *naive) leaseShare(op *admission.LeaseShare) *admission.LeaseShareResult {
	res := &admission.LeaseShareResult{Revision: n.revision}
	p := n.pool(op.Pool)
	if p == nil {
		res.Err = noPool(op.Pool)
		return res
	}
	lane, err := p.laneOf(op.Tenant, op.Category)
	if res.Err = err; err != nil {
		return res
	}
	if !p.lets(op.Tenant) {
		res.Err = &admission.Error{Reason: admission.NotShared, Meta: []string{"pool", op.Pool}}
		return res
	}
	ttl := p.shareTerms(op.Tenant, res)
	if res.Shed = n.shareHeld(p, op, lane); res.Shed != nil {
		return res
	}
	res.Tokens = op.Tokens
	var full []*naiveBucket
	for i, b := range p.policy.Buckets {
		bucket, terms := p.bucketOf(i, op.Tenant), p.bucketTerms(i, op.Tenant)
		leave, rate := int64(0), admission.TenantRate
		if b.Scope == admission.ScopePool {
			leave, rate = p.leave(lane, b.Name), admission.PoolRate
		}
		room := n.shareRoom(p, op, bucket, b.Share.Max)
		res.Tokens = min(res.Tokens, terms.capacity-leave-bucket.used(terms, n.t), room)
		if room < 1 {
			if res.Shed == nil {
				res.Shed = &admission.Shed{Reason: rate, Lane: lane, RetryAfter: admission.Absent, MaxGrantable: admission.Absent}
			}
			res.Shed.Reason = min(res.Shed.Reason, rate)
			full = append(full, bucket)
		}
	}
	if res.Shed != nil {
		res.Tokens, res.Shed.EarliestExpiry = 0, n.firstEnd(full)
		return res
	}
	res.Permit = n.lendOut(p, op, lane, res.Tokens, ttl)
	return res
}

// lendOut makes the share.
func (n *naive) lendOut(p *naivePool, op *admission.LeaseShare, lane string, tokens int64, ttl time.Duration) admission.Permit {
	d := p.tenant(op.Tenant).demand(lane)
	permit := n.issue(p, naiveTurn{d: d}, tokens)
	permit.uncounted, permit.worker, permit.asked = true, op.Node.ID, op.Tokens
	permit.token.Nonce, permit.ttl, permit.expires = op.Nonce, ttl, n.leaseNow().Add(ttl)
	for i, b := range p.policy.Buckets {
		bucket := permit.bucket(i)
		bucket.settle(p.bucketTerms(i, op.Tenant), n.t)
		bucket.lent += tokens
		permit.charged = append(permit.charged, naiveCharge{bucket, b.Name, tokens, true})
	}
	n.seat(p)
	return n.holder(permit)
}

// firstEnd is the time until the first share of one of the buckets ends.
func (n *naive) firstEnd(of []*naiveBucket) time.Duration {
	first := time.Duration(admission.Absent)
	for _, permit := range n.permits {
		if slices.ContainsFunc(of, func(b *naiveBucket) bool { return permit.lentOf(b) > 0 }) {
			if left := millis(max(0, permit.expires.Sub(n.leaseNow()))); first == admission.Absent || left < first {
				first = left
			}
		}
	}
	return first
}

// lets says whether sidecars may hold tokens for a tenant.
func (p *naivePool) lets(tenant string) bool {
	for i, b := range p.policy.Buckets {
		if b.Share.Max == 0 || p.bucketTerms(i, tenant).blocked {
			return false
		}
	}
	return len(p.policy.Buckets) > 0 && !p.policy.Shadow
}

// shareTerms fills in what the buckets say of a share, and returns how long it lasts.
func (p *naivePool) shareTerms(tenant string, res *admission.LeaseShareResult) (ttl time.Duration) {
	var safe *big.Rat
	losses := map[admission.OnLoss]bool{}
	for i, b := range p.policy.Buckets {
		own, period := orElse(b.Share.TTL, 10*time.Second), p.bucketTerms(i, tenant).period
		idle := orElse(b.Share.IdleReturn, min(2*time.Second, own))
		ttl = min(orElse(ttl, own), own)
		res.IdleReturn = min(orElse(res.IdleReturn, idle), idle)
		losses[orElse(b.Share.OnLoss, admission.OnLossClosed)] = true
		if rate := new(big.Rat).Quo(rat(b.Share.Safe), rat(int64(period))); b.Share.Safe > 0 && (safe == nil || rate.Cmp(safe) < 0) {
			safe, res.Safe, res.SafePeriod = rate, b.Share.Safe, period
		}
	}
	switch {
	case losses[admission.OnLossClosed]:
		res.OnLoss, res.Safe, res.SafePeriod = admission.OnLossClosed, 0, 0
	case losses[admission.OnLossSafe]:
		res.OnLoss = admission.OnLossSafe
	default:
		res.OnLoss = admission.OnLossOpen
	}
	return ttl
}

// shareHeld is why an Acquire of a single token would be refused now, or nothing.
func (n *naive) shareHeld(p *naivePool, op *admission.LeaseShare, lane string) *admission.Shed {
	d := p.tenant(op.Tenant).demand(lane)
	by := n.reserver(p, n.t)
	class := n.share(p, d)
	turn := naiveTurn{p.rank(lane), class, p.tag(d, class), math.MaxUint64, d, rateSource, nil}
	if by != nil && byTurn(turn, *by) < 0 {
		by = nil
	}
	one := &admission.Acquire{Pool: op.Pool, Tenant: op.Tenant, Category: op.Category, Cost: 1, RateOnly: true}
	limits := n.askLimits(p, one, d, by)
	shares := n.sharesOf(p)
	if most := p.policy.Limits.Shares; int64(len(shares)) >= p.part(lane, most) {
		limits = append(limits, naiveLimit{reason: admission.Cardinality, Limit: admission.Limit{
			Name: "limits.shares", Scope: admission.ScopePool, Capacity: most, Used: int64(len(shares)), Asked: 1,
			Reserve: most - p.part(lane, most), RetryAfter: admission.Absent,
		}, frees: func(permit *naivePermit) bool { return permit.pool == p && permit.asked > 0 }})
	}
	if len(limits) == 0 {
		return nil
	}
	shed := n.shed(lane, limits, n.t)
	shed.RetryAfter = millis(n.back(p, d.tenant, lane, retryAfter(limits)))
	return shed
}

// shareRoom is how many tokens of a bucket a sidecar may hold more: it fills up all that
// hold or want some token by token, from the lowest, until none are left or none wants.
func (n *naive) shareRoom(p *naivePool, op *admission.LeaseShare, b *naiveBucket, most int64) int64 {
	held, wanted, all := map[string]int64{}, map[string]int64{}, int64(0)
	for _, permit := range n.sharesOf(p) { // the latest comes last
		if lent := permit.lentOf(b); lent > 0 {
			held[permit.worker] += lent
			wanted[permit.worker] = permit.asked - permit.cost
			all += lent
		}
	}
	if _, there := held[op.Node.ID]; !there {
		held[op.Node.ID] = 0
	}
	wanted[op.Node.ID] = op.Tokens
	level := int64(0)
	for sum := int64(0); sum < most && level < most; level++ {
		for node := range held {
			if held[node]+wanted[node] > level {
				sum++
			}
		}
	}
	ceiling := int64(0)
	for ceiling*op.Node.Total < most*op.Node.Owned {
		ceiling++
	}
	return min(most-all, min(level, ceiling)-held[op.Node.ID])
}
