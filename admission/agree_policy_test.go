package admission_test

import (
	"time"

	"github.com/admitd/admit/admission"
)

// drawPolicy draws a policy that is valid.
func (g *generator) drawPolicy() admission.Policy {
	for {
		policy := admission.Policy{Pools: []admission.PoolPolicy{g.drawPool("p")}}
		if g.chance(2, "two pools") {
			policy.Pools = append(policy.Pools, g.drawPool("q"))
		}
		if g.chance(20, "no p") {
			policy.Pools = policy.Pools[1:]
		}
		if len(policy.Validate()) == 0 {
			return policy
		}
	}
}

func (g *generator) drawPool(name string) admission.PoolPolicy {
	p := admission.PoolPolicy{
		Name:       name,
		MaxActive:  pick[int64](g, "max active", 0, 4, 3, 2, 1),
		PermitTTL:  pick(g, "permit ttl", 0, 5*time.Second, time.Second),
		Categories: make(map[string]string),
		MaxPause:   pick(g, "max pause", 0, 2*time.Second, time.Minute),
		Retry: admission.RetryPolicy{
			MaxAttempts: pick[int32](g, "max attempts", 0, 1, 2, 3),
			Base:        pick(g, "base", 0, time.Millisecond, 3*time.Second),
			Max:         pick(g, "max", 0, 5*time.Second),
		},
	}
	p.DeadRetention = pick(g, "dead retention", 0, time.Minute, 5*time.Minute)
	p.Limits = admission.LimitsPolicy{
		Entries:          pick[int64](g, "entries", 0, 0, 0, 10, 5),
		EntriesPerTenant: pick[int64](g, "entries per tenant", 0, 0, 4, 3),
		Tenants:          pick[int64](g, "tenants", 0, 0, 0, 3, 1),
		RequestIDs:       pick[int64](g, "request ids", 0, 0, 0, 10, 4, 2),
		EndedPermits:     pick[int64](g, "ended permits", 0, 0, 0, 4, 1),
		Waiting:          pick[int64](g, "waiting", 0, 0, 0, 10, 3, 2),
		WaitingPerTenant: pick[int64](g, "waiting per tenant", 0, 0, 0, 10, 2, 1),
		DedupeKeys:       pick[int64](g, "dedupe keys", 0, 0, 0, 10, 2, 1),

		NewTenantsPerSecond: pick[int64](g, "new tenants", 0, 0, 0, 1, 2),
		TenantRows:          pick[int64](g, "tenant rows", 0, 0, 2, 1),
	}
	p.Limits.PausedGroups, p.Limits.Shares = pick[int64](g, "paused groups", 0, 0, 1), pick[int64](g, "shares", 0, 0, 0, 2)
	shared := !g.chance(3, "not shared")
	p.Shadow = g.chance(12, "only watches")
	p.LockMaxActive = pick[int64](g, "lock max active", 0, 0, 2)
	p.DoneRetention = pick(g, "done retention", 0, 3*time.Second, time.Minute)
	p.RefuseUnknown = g.chance(6, "refuses unknown")
	for _, bucket := range bucketNames {
		if g.chance(3, "bucket") {
			p.Buckets = append(p.Buckets, g.drawBucket(bucket))
			if shared {
				g.letShare(&p.Buckets[len(p.Buckets)-1])
			}
		}
	}
	for _, cadence := range []string{"c", "d"} {
		if g.chance(2, "has a cadence") {
			p.Cadences = append(p.Cadences, g.drawCadence(cadence))
		}
	}
	g.drawLanes(&p)
	g.drawTenants(&p)
	return p
}

func (g *generator) drawBucket(name string) admission.BucketPolicy {
	b := admission.BucketPolicy{
		Name: name, Scope: admission.ScopePool, PerPermit: g.chance(3, "per permit"),
		Capacity: pick[int64](g, "capacity", 3, 2, 5, 10, 1),
		Refill:   pick[int64](g, "refill", 1, 1, 3, 7),
		Period:   pick(g, "period", time.Second, 7*time.Second, 100*time.Millisecond, time.Minute),
	}
	if name >= "f" {
		b.Scope = admission.ScopeTenant
	}
	switch {
	case g.chance(15, "blocked"):
		b.Capacity, b.Refill, b.Period, b.Blocked = 0, 0, 0, true
	case g.chance(10, "one shot"):
		b.Refill, b.Period, b.OneShot = 0, 0, true
	}
	return b
}

// letShare lets sidecars hold tokens of the bucket.
func (g *generator) letShare(b *admission.BucketPolicy) {
	if b.Blocked || b.OneShot || g.chance(12, "no share") {
		return
	}
	b.PerPermit = false
	b.Share = admission.TokenShare{
		Max: pick(g, "share max", b.Capacity, b.Capacity, 1, b.Capacity-1), TTL: pick(g, "share ttl", 0, time.Second, time.Minute),
		IdleReturn: pick(g, "idle return", 0, time.Second, 100*time.Millisecond),
		OnLoss:     pick(g, "on loss", 0, admission.OnLossClosed, admission.OnLossOpen, admission.OnLossSafe),
	}
	if b.Share.OnLoss == admission.OnLossSafe {
		b.Share.Safe = pick(g, "safe", 1, b.Capacity)
	}
}

func (g *generator) drawCadence(name string) admission.CadencePolicy {
	return admission.CadencePolicy{
		Name: name, Base: pick(g, "cadence base", time.Second, 3*time.Second),
		Factor: pick[int64](g, "factor", 0, 1, 3), Max: pick(g, "cadence max", 0, 3*time.Second, 10*time.Second),
	}
}

func (g *generator) drawLanes(p *admission.PoolPolicy) {
	lanes := pick(g, "lanes", laneNames[1:2], laneNames[:2], laneNames, laneNames,
		[]string{"lo", "hi"}, nil)
	for i, name := range lanes {
		l := admission.LanePolicy{Name: name}
		if g.chance(2, "cycle limit") {
			l.TenantCycleLimit = pick[int64](g, "limit", 1, 1, 2)
		}
		if g.chance(3, "batches") {
			l.Batch = admission.BatchPolicy{
				Size: pick[int64](g, "batch size", 2, 3), Only: g.chance(3, "only"),
				Linger: pick(g, "linger", 0, 0, time.Second, 10*time.Second),
			}
		}
		if p.MaxActive > 1 && i > 0 && g.chance(3, "leave slots") {
			l.LeaveSlots = pick(g, "slots", 1, p.MaxActive-1)
		}
		for _, b := range p.Buckets {
			if b.Scope == admission.ScopePool && b.Capacity > 1 && g.chance(4, "leave tokens") {
				l.LeaveTokens = map[string]int64{b.Name: pick(g, "tokens", 1, b.Capacity-1)}
			}
		}
		if i > 0 && g.chance(3, "yields") {
			l.Yield = g.drawYield()
		}
		p.Lanes = append(p.Lanes, l)
	}
	if len(lanes) == 0 {
		lanes = []string{"default"}
	}
	for _, category := range []string{"otp", "news", "bulk"} {
		if !g.chance(10, "unmapped") {
			p.Categories[category] = pick(g, "mapped", lanes...)
		}
	}
}

func (g *generator) drawTenants(p *admission.PoolPolicy) {
	p.Defaults = g.drawTenant(p, "")
	for _, id := range tenantNames[:3] {
		if g.chance(3, "override") {
			p.Overrides = append(p.Overrides, g.drawTenant(p, id))
		}
	}
}

func (g *generator) drawTenant(p *admission.PoolPolicy, id string) admission.TenantPolicy {
	t := admission.TenantPolicy{
		ID:        id,
		Weight:    pick[int64](g, "weight", 0, 1, 2, 3, 7),
		MaxActive: pick[int64](g, "tenant max active", 0, 2, 0, 3, 1),
	}
	if g.chance(2, "prefers") {
		t.PreferredActive = new(pick[int64](g, "preferred", 1, 2, 4, 0))
	}
	if len(p.Lanes) > 0 && g.chance(3, "own lane") {
		t.Lane = pick(g, "tenant lane", p.Lanes...).Name
	}
	if len(p.Lanes) > 0 && g.chance(3, "lane cap") {
		t.LaneMaxActive = map[string]int64{pick(g, "capped lane", p.Lanes...).Name: pick[int64](g, "lane max active", 1, 2)}
	}
	if id == "" {
		return t
	}
	for _, b := range p.Buckets {
		if b.Scope == admission.ScopeTenant && g.chance(3, "own bucket") {
			if t.Buckets == nil {
				t.Buckets = make(map[string]admission.BucketOverride)
			}
			t.Buckets[b.Name] = g.drawOverride(b)
		}
	}
	return t
}

func (g *generator) drawOverride(b admission.BucketPolicy) admission.BucketOverride {
	if b.Blocked || g.chance(6, "blocked") {
		return admission.BucketOverride{Blocked: true}
	}
	o := admission.BucketOverride{Capacity: pick[int64](g, "own capacity", 0, 1, 4)}
	if !b.OneShot {
		o.Refill = pick[int64](g, "own refill", 0, 2)
		o.Period = pick(g, "own period", 0, 3*time.Second)
	}
	return o
}

// drawYield draws marks of how much, or of what age, above.
func (g *generator) drawYield() *admission.YieldPolicy {
	y := &admission.YieldPolicy{Above: admission.Absent}
	if g.chance(2, "by depth") {
		y.Above = pick[int64](g, "above", 0, 1, 3)
		y.Resume = pick(g, "resume", 0, y.Above)
	} else {
		y.AboveAge = pick(g, "above age", time.Second, 100*time.Millisecond, 5*time.Second)
		y.ResumeAge = pick(g, "resume age", 0, y.AboveAge/2, y.AboveAge)
	}
	return y
}
