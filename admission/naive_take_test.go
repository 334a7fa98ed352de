package admission_test

import (
	"math"
	"slices"

	"github.com/admitd/admit/admission"
)

// giveBack puts back what the parts of a Take give.
func (n *naive) giveBack(op *admission.Take) {
	p := n.pool(op.Pool)
	if p == nil {
		return
	}
	for _, part := range op.Parts {
		if part.Tokens >= 0 {
			continue
		}
		for i, b := range p.policy.Buckets {
			if takes(part, b) && (b.Scope == admission.ScopePool || p.tenant(part.Tenant).known) {
				p.bucketOf(i, part.Tenant).take(p.bucketTerms(i, part.Tenant), n.t, -costIn(b, -part.Tokens))
			}
		}
		if t := p.tenant(part.Tenant); t.known && p.takesOwn(part) {
			n.touch(p, t)
		}
	}
}

// bucketOf is the pool's i-th bucket, that of the tenant if each has one.
func (p *naivePool) bucketOf(i int, tenant string) *naiveBucket {
	if p.policy.Buckets[i].Scope == admission.ScopeTenant {
		return p.tenant(tenant).buckets[i]
	}
	return p.buckets[i]
}

func costIn(b admission.BucketPolicy, cost int64) int64 {
	if b.PerPermit {
		return 1
	}
	return cost
}

// takes says whether a part takes of a bucket.
func takes(part admission.TakePart, b admission.BucketPolicy) bool {
	return slices.Contains(part.Buckets, b.Name) && (b.Scope == admission.ScopePool || part.Tenant != "")
}

// takesOwn says whether a part names a TENANT bucket.
func (p *naivePool) takesOwn(part admission.TakePart) bool {
	return slices.ContainsFunc(p.policy.Buckets, func(b admission.BucketPolicy) bool {
		return b.Scope == admission.ScopeTenant && takes(part, b)
	})
}

// naiveTaking is what the parts of a Take have asked for so far.
type naiveTaking struct {
	pool *naivePool
	by   *naiveTurn
	// taken is by tenant, empty for those of the pool, and bucket.
	taken map[[2]string]int64
	// come are the tenants that need a place.
	come []string
}

// take decides a Take when all else of the entry is decided, and charges it.
func (n *naive) take(op *admission.Take) *admission.TakeResult {
	p := n.pool(op.Pool)
	if p == nil || p.draining {
		return &admission.TakeResult{Err: noPool(op.Pool)}
	}
	res := &admission.TakeResult{Held: make([]*admission.Shed, len(op.Parts))}
	k := &naiveTaking{pool: p, by: n.reserver(p, n.t), taken: map[[2]string]int64{}}
	for i, part := range op.Parts {
		if part.Tokens >= 0 && !part.Shadow && !p.policy.Shadow {
			res.Held[i] = n.judge(k, part)
			k.note(part)
			res.Refused = res.Refused || res.Held[i] != nil
		}
	}
	for i, part := range op.Parts {
		if part.Tokens >= 0 && (part.Shadow || p.policy.Shadow) {
			if res.Held[i] = n.judge(k, part); res.Held[i] == nil {
				k.note(part)
			}
		}
	}
	if res.Refused {
		return res
	}
	for i, part := range op.Parts {
		if part.Tokens > 0 && res.Held[i] == nil {
			n.spend(p, part)
		}
	}
	return res
}

func (n *naive) spend(p *naivePool, part admission.TakePart) {
	if p.takesOwn(part) {
		n.meet(p, p.tenant(part.Tenant))
	}
	for i, b := range p.policy.Buckets {
		if takes(part, b) {
			p.bucketOf(i, part.Tenant).take(p.bucketTerms(i, part.Tenant), n.t, costIn(b, part.Tokens))
		}
	}
	if p.takesOwn(part) {
		n.touch(p, p.tenant(part.Tenant))
		n.seat(p)
	}
}

func (k *naiveTaking) note(part admission.TakePart) {
	for _, b := range k.pool.policy.Buckets {
		if part.Tokens > 0 && takes(part, b) {
			k.taken[k.keyOf(b, part)] += costIn(b, part.Tokens)
		}
	}
	t := k.pool.tenant(part.Tenant)
	in := k.pool.named(t.id) || t.known && !t.spare
	if part.Tokens > 0 && k.pool.takesOwn(part) && !in && !slices.Contains(k.come, t.id) {
		k.come = append(k.come, t.id)
	}
}

func (k *naiveTaking) keyOf(b admission.BucketPolicy, part admission.TakePart) [2]string {
	if b.Scope == admission.ScopePool {
		return [2]string{"", b.Name}
	}
	return [2]string{part.Tenant, b.Name}
}

// judge is why a part is held, beside those before it.
func (n *naive) judge(k *naiveTaking, part admission.TakePart) *admission.Shed {
	p := k.pool
	lane, known := p.takeLane(part)
	d := p.tenant(part.Tenant).demand(lane)
	var limits []naiveLimit
	if !known {
		limits = append(limits, naiveLimit{reason: admission.Blocked, Limit: admission.Limit{
			Name: "tenants.unknown", Scope: admission.ScopeTenant, Asked: 1, RetryAfter: admission.Absent,
		}})
	}
	// What is neither of a bucket nor of a slot holds a part as it holds an Acquire.
	for _, l := range n.limits(p, part.Tenant, lane, naiveWant{cost: 1, rateOnly: true, single: true}, n.t) {
		if !l.bucket {
			limits = append(limits, l)
		}
	}
	asked := func(name string) int64 {
		b := p.policy.Buckets[slices.IndexFunc(p.policy.Buckets, func(b admission.BucketPolicy) bool { return b.Name == name })]
		return k.taken[k.keyOf(b, part)] + costIn(b, max(part.Tokens, 1))
	}
	for i, b := range p.policy.Buckets {
		if !takes(part, b) {
			continue
		}
		terms := p.bucketTerms(i, part.Tenant)
		l := naiveLimit{bucket: true, own: b.Scope == admission.ScopeTenant, Limit: admission.Limit{
			Name: b.Name, Scope: b.Scope, Capacity: terms.capacity, Used: p.bucketOf(i, part.Tenant).used(terms, n.t),
			Asked: asked(b.Name), RetryAfter: admission.Absent,
		}}
		if !l.own {
			l.Reserve = p.leave(lane, b.Name)
		}
		if l.judge(p.bucketOf(i, part.Tenant), terms, n.t); l.reason != admission.ReasonNone {
			limits = append(limits, l)
		}
	}
	limits = p.behind(limits, n.beforePart(k, part, d), lane, 1)
	for i := range limits {
		if limits[i].bucket {
			limits[i].Asked = asked(limits[i].Name)
		}
	}
	if part.Tokens > 0 && p.takesOwn(part) {
		others := int64(len(k.come))
		if slices.Contains(k.come, part.Tenant) {
			others--
		}
		limits = append(limits, n.closedBeside(p, part.Tenant, lane, others)...)
	}
	if len(limits) == 0 {
		return nil
	}
	shed := n.shed(lane, limits, n.t)
	if part.Tokens > 0 && p.takesOwn(part) {
		shed.RetryAfter = millis(n.back(p, d.tenant, lane, retryAfter(limits)))
	}
	return shed
}

// beforePart are the tokens, of buckets that a part names, which somebody lacks who
// goes before it.
func (n *naive) beforePart(k *naiveTaking, part admission.TakePart, d *naiveDemand) []naiveLimit {
	before := n.shortBefore(d, math.MaxUint64, n.t)
	class := n.share(k.pool, d)
	turn := naiveTurn{k.pool.rank(d.lane), class, k.pool.tag(d, class), math.MaxUint64, d, rateSource, nil}
	if k.by != nil && byTurn(turn, *k.by) > 0 {
		before = append(before, n.reserved(k.pool, k.by, n.t)...)
	}
	return deleteIf(before, func(l naiveLimit) bool {
		return !slices.Contains(part.Buckets, l.Name) || l.Scope == admission.ScopeTenant && part.Tenant == ""
	})
}

// takeLane is the lane of a part, and whether the pool takes its tenant.
func (p *naivePool) takeLane(part admission.TakePart) (lane string, known bool) {
	known = part.Tenant == "" || p.refused(part.Tenant) == nil
	if lane, ok := p.policy.Categories[part.Category]; ok && part.Category != "" {
		return lane, known
	}
	return p.terms(part.Tenant).Lane, known
}

// levels are how the buckets of a Take stand.
func (n *naive) levels(at admission.Instant, op *admission.Take) [][]admission.TakeLevel {
	p := n.pool(op.Pool)
	if p == nil || p.draining {
		return nil
	}
	rows := make([][]admission.TakeLevel, len(op.Parts))
	for i, part := range op.Parts {
		lane, _ := p.takeLane(part)
		for _, name := range part.Buckets {
			j := slices.IndexFunc(p.policy.Buckets, func(b admission.BucketPolicy) bool { return b.Name == name })
			if j < 0 || !takes(part, p.policy.Buckets[j]) {
				continue
			}
			b, terms := p.bucketOf(j, part.Tenant), p.bucketTerms(j, part.Tenant)
			level := admission.TakeLevel{
				Bucket: name, Scope: p.policy.Buckets[j].Scope, Capacity: terms.capacity, Refill: terms.refill, Period: terms.period,
			}
			leave := int64(0)
			if level.Scope == admission.ScopePool {
				leave = p.leave(lane, name)
			}
			if !terms.blocked && !b.paused(at) {
				level.Left = max(0, terms.capacity-leave-b.used(terms, at))
			}
			if level.FullIn = millis(b.wait(terms, at, terms.capacity, 0)); terms.blocked {
				level.FullIn = admission.Absent
			}
			rows[i] = append(rows[i], level)
		}
	}
	return rows
}
