package admission

import (
	"fmt"
	"math/big"
	"slices"
	"time"
)

// rates is the law that in any span any bucket grants at most its capacity and
// what is refilled in the span [I1]. It keeps every grant and adds up all spans.
//
// Unspent tokens that are given back are taken off; overspending comes on top,
// for nobody granted it. Where an operator changes the bucket, a span has the
// greatest capacity and the greatest rate that held in it; lowering a capacity
// forgives what was used above it, so a new history begins there.
type rates struct {
	buckets map[string]*bucketHistory
	permits map[Token]paid
	policy  Policy
	rows    map[string][]TenantPolicy // by pool
}

// paid is a grant, with the buckets that were charged its cost: they get back what it
// does not spend, whatever they charge by then.
type paid struct {
	given
	at     Instant
	byCost map[string]bool
	// lent are the buckets of which it holds tokens, if it is a share.
	lent map[string]*bucketHistory
}

type bucketHistory struct {
	spec   BucketPolicy // with the greatest capacity and rate so far
	events []bucketEvent
	loans
}

type bucketEvent struct {
	at     Instant
	tokens int64
}

func (r *rates) see(h *history, e Entry, results []Result) {
	if r.buckets == nil {
		r.buckets, r.permits = map[string]*bucketHistory{}, map[Token]paid{}
		r.rows = map[string][]TenantPolicy{}
	}
	for i, op := range e.Ops {
		switch op := op.(type) {
		case ApplyPolicy:
			if results[i].(*PolicyResult).Changed {
				r.policy = op.Policy
				r.adoptPolicy(h.t)
			}
		case *PutTenants:
			if results[i].(*PutTenantsResult).Err == nil {
				r.adoptRows(op)
				r.adoptPolicy(h.t)
			}
		}
	}
	for pool := range r.rows {
		if h.pools.byName(pool) == nil {
			delete(r.rows, pool)
		}
	}
	r.endShares(h, e, results)
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *Release:
			r.giveBack(h, op, results[i].(*ReleaseResult))
		case *Take:
			r.taken(h, op, results[i].(*TakeResult), false)
		}
	}
	defer func() { // after all grants
		for i, op := range e.Ops {
			if op, ok := op.(*Take); ok {
				r.taken(h, op, results[i].(*TakeResult), true)
			}
		}
		for name, b := range r.buckets {
			b.checkSpent(h, name)
		}
	}()
	for _, g := range h.grants {
		if g.free {
			continue
		}
		r.permits[g.Token] = paid{g, h.t, map[string]bool{}, map[string]*bucketHistory{}}
		for name, b := range r.charged(h, g) {
			switch {
			case b.spec.PerPermit && !g.shared:
				b.add(h, name, 1)
			case !b.spec.PerPermit:
				r.permits[g.Token].byCost[name] = true
				if op, ok := g.op.(*LeaseShare); ok {
					b.grant(h, name, g.cost)
					r.lend(h, op, r.permits[g.Token], name, b)
				} else {
					b.add(h, name, g.cost)
				}
			}
		}
	}
}

// charged returns the histories of the buckets that a permit is charged to.
func (r *rates) charged(h *history, g given) map[string]*bucketHistory {
	found := map[string]*bucketHistory{}
	for _, b := range h.poolPolicy(g.Pool).Buckets {
		key := bucketKey(g.Pool, b, g.Tenant)
		found[key] = r.bucket(h, g.Pool, b, g.Tenant)
	}
	return found
}

func (r *rates) bucket(h *history, pool string, b BucketPolicy, tenant string) *bucketHistory {
	key := bucketKey(pool, b, tenant)
	if r.buckets[key] == nil {
		r.buckets[key] = &bucketHistory{spec: h.poolPolicy(pool).bucketOf(b, tenant)}
	}
	return r.buckets[key]
}

func bucketKey(pool string, b BucketPolicy, tenant string) string {
	if b.Scope == ScopePool {
		tenant = ""
	}
	return fmt.Sprintf("%s/%s/%s", pool, b.Name, tenant)
}

// bucketOf returns the numbers of a bucket for a tenant.
func (p *PoolPolicy) bucketOf(b BucketPolicy, tenant string) BucketPolicy {
	i := slices.IndexFunc(p.Overrides, func(o TenantPolicy) bool { return o.ID == tenant })
	if i < 0 || b.Scope == ScopePool {
		return b
	}
	own, ok := p.Overrides[i].Buckets[b.Name]
	if !ok {
		return b
	}
	b.Capacity, b.Refill, b.Period = firstOf(own.Capacity, b.Capacity), firstOf(own.Refill, b.Refill), firstOf(own.Period, b.Period)
	b.Blocked = own.Blocked || b.Blocked && own.Capacity == 0
	return b
}

// adoptRows keeps the rows that tenants have of their own.
func (r *rates) adoptRows(op *PutTenants) {
	for _, put := range op.Rows {
		rows := slices.DeleteFunc(slices.Clone(r.rows[op.Pool]), func(t TenantPolicy) bool { return t.ID == put.Tenant.ID })
		if !put.Remove {
			rows = append(rows, put.Tenant)
		}
		r.rows[op.Pool] = rows
	}
}

// adoptPolicy compares the buckets as they are now with those of the histories.
func (r *rates) adoptPolicy(now Instant) {
	kept := map[string]bool{}
	for i := range r.policy.Pools {
		p := r.policy.Pools[i].withRows(r.rows[r.policy.Pools[i].Name])
		for _, b := range p.Buckets {
			for _, tenant := range tenantNames {
				key := bucketKey(p.Name, b, tenant)
				kept[key] = true
				if old := r.buckets[key]; old != nil {
					old.adopt(p.bucketOf(b, tenant), now)
				}
			}
		}
	}
	for key := range r.buckets {
		if !kept[key] {
			delete(r.buckets, key)
		}
	}
}

func (b *bucketHistory) adopt(next BucketPolicy, now Instant) {
	switch {
	case next.Capacity < b.spec.Capacity, next.PerPermit != b.spec.PerPermit:
		*b = bucketHistory{spec: next, loans: loans{held: b.held, heldThen: b.held, since: now}}
	default:
		b.spec.Capacity = next.Capacity
		if next.Refill*int64(max(b.spec.Period, 1)) >= b.spec.Refill*int64(max(next.Period, 1)) {
			b.spec.Refill, b.spec.Period = next.Refill, next.Period
		}
	}
}

// giveBack takes off what a permit did not spend.
func (r *rates) giveBack(h *history, op *Release, res *ReleaseResult) {
	g, ok := r.permits[op.Token]
	settled := res.Err == nil && (res.Result == LeaseReleased || res.Result == LeaseCancelled)
	if !ok || !settled || op.ActualCost == Absent || op.ActualCost >= g.cost || h.poolPolicy(g.Pool) == nil {
		return
	}
	for name, b := range r.charged(h, g.given) {
		if g.byCost[name] {
			b.events = append(b.events, bucketEvent{h.t, op.ActualCost - g.cost})
			if _, share := g.op.(*LeaseShare); !share {
				b.spend(h.t, op.ActualCost-g.cost)
			}
		}
	}
}

// add books a grant of what is spent at once.
func (b *bucketHistory) add(h *history, name string, tokens int64) {
	b.spend(h.t, tokens)
	b.grant(h, name, tokens)
}

// grant books a grant and adds up every span that ends with it.
func (b *bucketHistory) grant(h *history, name string, tokens int64) {
	b.events = append(b.events, bucketEvent{h.t, tokens})
	sum := int64(0)
	for _, from := range slices.Backward(b.events) {
		sum += from.tokens
		if span := h.t.Sub(from.at); b.exceeds(b.spec.Capacity, sum, span) {
			h.Fatalf("bucket %s %+v: %d tokens granted within %s", name, b.spec, sum, span)
		}
	}
}

// exceeds says whether sum > capacity + refill·span/period, in exact numbers.
func (b *bucketHistory) exceeds(capacity, sum int64, span time.Duration) bool {
	period := big.NewInt(int64(max(b.spec.Period, 1)))
	granted := new(big.Int).Mul(big.NewInt(sum-capacity), period)
	refilled := new(big.Int).Mul(big.NewInt(b.spec.Refill), big.NewInt(int64(span)))
	return granted.Cmp(refilled) > 0
}
