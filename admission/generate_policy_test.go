package admission

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// policies draws policies that are valid.
var policies = rapid.Custom(drawPolicy)

func drawPolicy(t *rapid.T) Policy {
	policy := Policy{}
	for _, name := range poolNames[:1+one(t, "pools", 0, 0, 1)] {
		policy.Pools = append(policy.Pools, drawPool(t, name))
	}
	if bad := policy.Validate(); len(bad) > 0 {
		t.Fatalf("a drawn policy is invalid: %v", bad)
	}
	return policy
}

func drawPool(t *rapid.T, name string) PoolPolicy {
	p := PoolPolicy{
		Name:          name,
		MaxActive:     one[int64](t, "max_active", 0, 1, 3, 6),
		PermitTTL:     one(t, "permit_ttl", 0, 0, time.Second, 5*time.Second),
		MaxPause:      one(t, "max_pause", 0, 2*time.Second),
		DeadRetention: one(t, "dead_retention", 0, time.Minute, 5*time.Minute),
		Retry:         RetryPolicy{MaxAttempts: int32(number(t, "max_attempts", 0, 3)), Base: one(t, "base", 0, 700*time.Millisecond)},
	}
	p.LockMaxActive, p.DoneRetention = one[int64](t, "lock_max_active", 0, 0, 2), one(t, "done_retention", 0, time.Second, time.Minute)
	p.Shadow = odds(t, "shadow", 16)
	drawBuckets(t, &p)
	drawLanes(t, &p)
	drawShares(t, &p)
	drawLimits(t, &p)
	drawCadences(t, &p)
	return p
}

func drawBuckets(t *rapid.T, p *PoolPolicy) {
	p.Buckets = nil
	shared := !odds(t, "not shared", 3)
	for _, name := range bucketNames[:one(t, "buckets", 0, 1, 1, 2, 3)] {
		b := BucketPolicy{Name: name, Scope: one(t, "scope", ScopePool, ScopeTenant), PerPermit: rapid.Bool().Draw(t, "per permit")}
		switch number(t, "kind", 0, 15) {
		case 14:
			b.Blocked = true
		case 15:
			b.OneShot, b.Capacity = true, number(t, "capacity", 1, 8)
		default:
			b.Capacity, b.Refill = number(t, "capacity", 1, 8), number(t, "refill", 1, 4)
			b.Period = one(t, "period", time.Second, 100*time.Millisecond, 7*time.Second, 333333333*time.Nanosecond)
		}
		if shared && !b.Blocked && !b.OneShot && !odds(t, "no share", 8) {
			b.PerPermit, b.Share = false, drawTokenShare(t, &b)
		}
		p.Buckets = append(p.Buckets, b)
	}
}

func drawTokenShare(t *rapid.T, b *BucketPolicy) TokenShare {
	share := TokenShare{
		Max: max(number(t, "share max", 1, int(b.Capacity)), b.Capacity/2), TTL: one(t, "share ttl", 0, time.Second, time.Minute),
		IdleReturn: one(t, "idle return", 0, time.Second), OnLoss: one(t, "on loss", 0, OnLossClosed, OnLossOpen, OnLossSafe),
	}
	if share.OnLoss == OnLossSafe {
		share.Safe = number(t, "safe", 1, int(b.Capacity))
	}
	return share
}

func drawLanes(t *rapid.T, p *PoolPolicy) {
	p.Lanes, p.Categories = nil, map[string]string{}
	for _, name := range rapid.Permutation(laneNames).Draw(t, "lanes")[:number(t, "lane count", 0, 3)] {
		l := LanePolicy{Name: name, TenantCycleLimit: one[int64](t, "cycle limit", 0, 0, 1, 2)}
		if odds(t, "batches", 3) {
			l.Batch = BatchPolicy{
				Size: number(t, "batch size", 2, 3), Only: odds(t, "only batches", 3),
				Linger: one(t, "linger", 0, 0, 400*time.Millisecond, 3*time.Second),
			}
		}
		if p.MaxActive > 0 {
			l.LeaveSlots = min(one[int64](t, "leave slots", 0, 0, 1, 2), p.MaxActive-1)
		}
		for _, b := range p.Buckets {
			if b.Scope == ScopePool && !b.Blocked && odds(t, "leaves tokens", 3) {
				if l.LeaveTokens == nil {
					l.LeaveTokens = map[string]int64{}
				}
				l.LeaveTokens[b.Name] = number(t, "leave tokens", 0, int(b.Capacity-1))
			}
		}
		if len(p.Lanes) > 0 && odds(t, "yields", 3) {
			l.Yield = drawYield(t)
		}
		p.Lanes = append(p.Lanes, l)
	}
	for _, category := range categoryNames[1:] {
		if p.Lanes != nil && !odds(t, "unmapped", 8) {
			p.Categories[category] = one(t, "lane", p.Lanes...).Name
		}
	}
}

func drawYield(t *rapid.T) *YieldPolicy {
	y := &YieldPolicy{Above: one[int64](t, "above", Absent, 0, 1, 3)}
	if y.Resume = Absent; y.Above != Absent {
		y.Resume = number(t, "resume", 0, int(y.Above))
	}
	if y.Above == Absent || rapid.Bool().Draw(t, "by age") {
		y.AboveAge = one(t, "above_age", time.Second, 4*time.Second)
		y.ResumeAge = one(t, "resume_age", 0, y.AboveAge)
	}
	return y
}

func drawShares(t *rapid.T, p *PoolPolicy) {
	p.Defaults, p.Overrides = drawShare(t, p), nil
	for _, id := range tenantNames {
		if !odds(t, "overridden", 3) {
			continue
		}
		p.Overrides = append(p.Overrides, drawOverride(t, p, id))
	}
	p.RefuseUnknown = odds(t, "refuse unknown", 8)
}

func drawOverride(t *rapid.T, p *PoolPolicy, id string) TenantPolicy {
	own := drawShare(t, p)
	own.ID = id
	if own.PreferredActive != nil {
		if limit := firstOf(own.MaxActive, p.Defaults.MaxActive); limit > 0 {
			*own.PreferredActive = min(*own.PreferredActive, limit)
		}
	}
	own.Buckets = map[string]BucketOverride{}
	for _, b := range p.Buckets {
		if b.Scope == ScopeTenant && rapid.Bool().Draw(t, "own bucket") {
			own.Buckets[b.Name] = drawBucketOverride(t, b)
		}
	}
	return own
}

func drawShare(t *rapid.T, p *PoolPolicy) TenantPolicy {
	share := TenantPolicy{
		Weight:    one[int64](t, "weight", 0, 1, 2, 3, 7),
		MaxActive: one[int64](t, "tenant max_active", 0, 0, 1, 2, 4),
	}
	if rapid.Bool().Draw(t, "prefers") {
		n := number(t, "preferred_active", 0, 3)
		if share.MaxActive > 0 {
			n = min(n, share.MaxActive)
		}
		share.PreferredActive = &n
	}
	if len(p.Lanes) > 0 && odds(t, "lane of its own", 3) {
		share.Lane = one(t, "lane", p.Lanes...).Name
	}
	if len(p.Lanes) > 0 && odds(t, "lane cap", 4) {
		share.LaneMaxActive = map[string]int64{one(t, "capped lane", p.Lanes...).Name: number(t, "lane_max_active", 1, 2)}
	}
	return share
}

func drawBucketOverride(t *rapid.T, b BucketPolicy) BucketOverride {
	o := BucketOverride{Capacity: number(t, "own capacity", 1, 12)}
	if !b.OneShot {
		o.Refill, o.Period = number(t, "own refill", 1, 5), one(t, "own period", time.Second, 3*time.Second)
	}
	if odds(t, "own block", 8) {
		o = BucketOverride{Blocked: true}
	}
	return o
}

func drawLimits(t *rapid.T, p *PoolPolicy) {
	p.Limits = LimitsPolicy{
		Entries:             one[int64](t, "entries", 0, 0, 0, 6),
		EntriesPerTenant:    one[int64](t, "entries per tenant", 0, 0, 0, 3),
		Tenants:             one[int64](t, "tenants", 0, 0, 0, 2),
		NewTenantsPerSecond: one[int64](t, "new tenants", 0, 0, 0, 1),
		TenantRows:          one[int64](t, "tenant rows", 0, 0, 0, 1),
		RequestIDs:          one[int64](t, "request ids", 0, 0, 0, 2),
		EndedPermits:        one[int64](t, "ended permits", 0, 0, 0, 2),
		Waiting:             one[int64](t, "waiting", 0, 0, 0, 3),
		WaitingPerTenant:    one[int64](t, "waiting per tenant", 0, 0, 0, 1),
		DedupeKeys:          one[int64](t, "dedupe keys", 0, 0, 0, 2),
		PausedGroups:        one[int64](t, "paused groups", 0, 0, 0, 1),
		Shares:              one[int64](t, "shares", 0, 0, 0, 1, 3),
	}
}

func drawCadences(t *rapid.T, p *PoolPolicy) {
	p.Cadences = nil
	if odds(t, "no cadence", 3) {
		return
	}
	c := CadencePolicy{Name: "c", Base: time.Duration(number(t, "cadence base", 1, 3)) * time.Second, Factor: number(t, "factor", 0, 3)}
	c.Max = one(t, "cadence max", 0, c.Base, 5*time.Second, 10*time.Second)
	p.Cadences = []CadencePolicy{c}
}

// changePolicy draws a policy near the one in force: mostly one that fits what
// is in use. It may break a rule of policies.
func changePolicy(t *rapid.T, old Policy) Policy {
	next := Policy{Pools: slices.Clone(old.Pools)}
	if len(next.Pools) == 0 || odds(t, "anew", 6) {
		return drawPolicy(t)
	}
	p := &next.Pools[number(t, "pool", 0, len(next.Pools)-1)]
	switch one(t, "change", "buckets", "lanes", "order", "shares", "limits", "cap", "cadences") {
	case "buckets":
		drawBuckets(t, p)
	case "lanes":
		drawLanes(t, p)
	case "order":
		if len(p.Lanes) > 0 {
			p.Lanes = rapid.Permutation(p.Lanes).Draw(t, "lanes")
			p.Lanes[0].Yield = nil
		}
	case "shares":
		drawShares(t, p)
	case "limits":
		drawLimits(t, p)
	case "cadences":
		drawCadences(t, p)
	case "cap":
		p.MaxActive = one[int64](t, "max_active", 1, 2, 3, 0)
	}
	return next
}
