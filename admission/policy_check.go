package admission

import (
	"fmt"
	"slices"
	"time"
)

// The ranges that the API documents.
const (
	MaxTokens       = 1 << 53
	MaxSlots        = 1 << 31
	MinTTL          = time.Second
	MaxTTL          = 24 * time.Hour
	MaxPeriod       = 366 * 24 * time.Hour
	MaxPools        = 1000
	MaxBuckets      = 32
	MaxLanes        = 16
	MaxCategories   = 1000
	MaxOverrides    = 10_000
	MaxTenantRows   = 1000 // of one PutTenants
	MaxWeight       = 1_000_000
	MaxAttempts     = 1000
	MaxItems        = 1000
	maxLinger       = time.Hour
	maxShareTTL     = time.Hour
	minIdleReturn   = 100 * time.Millisecond
	MaxCadences     = 100
	MinEvery        = time.Second
	maxRetryBase    = 24 * time.Hour
	maxRetryMax     = 30 * 24 * time.Hour
	maxMemory       = 1_000_000_000 // of any limit
	maxPoolName     = 64
	maxIDLength     = 128
	reservedNameMsg = "another name: max_active, leave_slots, lane_max_active, paused, yield, lock_key and dedupe_key name limits of their own"
)

// checker collects what is wrong with a policy.
type checker struct{ found []Violation }

// Validate returns every rule that the policy breaks, each with the path of the
// field and what was expected there.
func (p Policy) Validate() []Violation {
	c := &checker{}
	c.count("pools", len(p.Pools), MaxPools)
	names := map[string]bool{}
	for i := range p.Pools {
		at := fmt.Sprintf("pools[%d]", i)
		c.name(at+".name", p.Pools[i].Name)
		c.once(names, at+".name", p.Pools[i].Name)
		c.pool(at, &p.Pools[i])
	}
	return c.found
}

func (c *checker) add(field, format string, args ...any) {
	c.found = append(c.found, Violation{Field: field, Message: "expected " + fmt.Sprintf(format, args...)})
}

func (c *checker) count(field string, n, most int) {
	if n > most {
		c.add(field, "at most %d, found %d", most, n)
	}
}

func (c *checker) once(seen map[string]bool, field, name string) {
	if seen[name] && name != "" {
		c.add(field, "each name once, found %q again", name)
	}
	seen[name] = true
}

func (c *checker) name(field, name string) {
	if len(name) == 0 || len(name) > maxPoolName || !every(name, isNameByte) {
		c.add(field, "1 to %d of A-Z a-z 0-9 . _ -", maxPoolName)
	}
}

// between checks a number; 0 stands for absent unless the range holds it.
func (c *checker) between(field string, n, least, most int64) {
	if n != 0 && (n < least || n > most) {
		c.add(field, "%d to %d", least, most)
	}
}

func (c *checker) lasting(field string, d, least, most time.Duration) {
	if d != 0 && (d < least || d > most) {
		c.add(field, "a duration from %s to %s", short(least), short(most))
	}
}

// short prints a duration without its zero parts.
func short(d time.Duration) string {
	if days := d / (24 * time.Hour); days > 1 && d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dh", days*24)
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(s) > len(zero) && s[len(s)-len(zero):] == zero {
			s = s[:len(s)-2]
		}
	}
	return s
}

func (c *checker) pool(at string, p *PoolPolicy) {
	c.between(at+".max_active", p.MaxActive, 1, MaxSlots)
	c.lasting(at+".permit_ttl", p.PermitTTL, MinTTL, MaxTTL)
	c.lasting(at+".max_pause", p.MaxPause, time.Second, 24*time.Hour)
	c.between(at+".lock_max_active", p.LockMaxActive, 1, MaxSlots)
	c.lasting(at+".done_retention", p.DoneRetention, time.Second, MaxPeriod)
	c.lasting(at+".dead_retention", p.DeadRetention, time.Minute, MaxPeriod)
	c.buckets(at, p)
	c.lanes(at, p)
	c.categories(at, p)
	c.tenants(at, p)
	c.cadences(at, p)
	c.retry(at+".retry", &p.Retry)
	c.limits(at+".limits", &p.Limits)
	c.envoy(at+".envoy", p)
}

func (c *checker) buckets(at string, p *PoolPolicy) {
	c.count(at+".buckets", len(p.Buckets), MaxBuckets)
	names := map[string]bool{}
	for i := range p.Buckets {
		b := &p.Buckets[i]
		at := fmt.Sprintf("%s.buckets[%d]", at, i)
		c.name(at+".name", b.Name)
		c.once(names, at+".name", b.Name)
		if slices.Contains([]string{"max_active", "leave_slots", "lane_max_active", "paused", "paused_group", "yield", "lock_key", "dedupe_key"}, b.Name) {
			c.add(at+".name", reservedNameMsg)
		}
		if b.Scope != ScopePool && b.Scope != ScopeTenant {
			c.add(at+".scope", "POOL or TENANT")
		}
		c.bucketNumbers(at, b)
		if b.Share != (TokenShare{}) {
			c.tokenShare(at+".share", b)
		}
	}
}

func (c *checker) tokenShare(at string, b *BucketPolicy) {
	t := &b.Share
	if b.Blocked || b.OneShot || b.PerPermit {
		c.add(at, "none: the bucket is blocked or one_shot, or charges PERMIT")
		return
	}
	if t.Max < 1 || t.Max > b.Capacity {
		c.add(at+".max", "1 to capacity, which is %d", b.Capacity)
	}
	c.lasting(at+".ttl", t.TTL, MinTTL, maxShareTTL)
	c.lasting(at+".idle_return", t.IdleReturn, minIdleReturn, maxShareTTL)
	if ttl := t.withDefaults().TTL; t.IdleReturn > ttl {
		c.add(at+".idle_return", "at most ttl, which is %s", short(ttl))
	}
	switch {
	case t.OnLoss > OnLossSafe:
		c.add(at+".on_loss", "CLOSED, OPEN or SAFE")
	case t.OnLoss != OnLossSafe && t.Safe != 0:
		c.add(at+".safe", "none: on_loss is not SAFE")
	case t.OnLoss == OnLossSafe && (t.Safe < 1 || t.Safe > b.Capacity):
		c.add(at+".safe", "1 to capacity, which is %d", b.Capacity)
	}
}

func (c *checker) bucketNumbers(at string, b *BucketPolicy) {
	switch {
	case b.Blocked && (b.Capacity != 0 || b.Refill != 0 || b.Period != 0 || b.OneShot):
		c.add(at+".blocked", "no capacity, refill, period or one_shot beside it")
		return
	case b.Blocked:
		return
	case b.OneShot && (b.Refill != 0 || b.Period != 0):
		c.add(at+".one_shot", "no refill or period beside it")
	case b.Capacity == 0:
		c.add(at+".capacity", "1 to %d", int64(MaxTokens))
	}
	c.between(at+".capacity", b.Capacity, 1, MaxTokens)
	if b.OneShot {
		return
	}
	if b.Refill == 0 {
		c.add(at+".refill", "1 to %d", int64(MaxTokens))
	}
	if b.Period == 0 {
		c.add(at+".period", "a duration from 1ms to %s", short(MaxPeriod))
	}
	c.between(at+".refill", b.Refill, 1, MaxTokens)
	c.lasting(at+".period", b.Period, time.Millisecond, MaxPeriod)
}

func (c *checker) lanes(at string, p *PoolPolicy) {
	c.count(at+".lanes", len(p.Lanes), MaxLanes)
	names := map[string]bool{}
	for i := range p.Lanes {
		l := &p.Lanes[i]
		at := fmt.Sprintf("%s.lanes[%d]", at, i)
		c.name(at+".name", l.Name)
		c.once(names, at+".name", l.Name)
		c.between(at+".tenant_cycle_limit", l.TenantCycleLimit, 1, MaxItems)
		c.batch(at+".batch", &l.Batch)
		switch {
		case l.LeaveSlots < 0:
			c.add(at+".leave_slots", "0 or more")
		case l.LeaveSlots > 0 && p.MaxActive == 0:
			c.add(at+".leave_slots", "a max_active of the pool to leave slots of")
		case l.LeaveSlots > 0 && l.LeaveSlots >= p.MaxActive:
			c.add(at+".leave_slots", "0 to max_active - 1, which is %d", p.MaxActive-1)
		}
		for _, name := range sortedKeys(l.LeaveTokens) {
			c.leaveTokens(at+".leave_tokens["+name+"]", p, name, l.LeaveTokens[name])
		}
		if l.Yield != nil {
			c.yield(at+".yield", i, l.Yield)
		}
	}
}

func (c *checker) yield(at string, rank int, y *YieldPolicy) {
	switch {
	case rank == 0:
		c.add(at, "none: there is no lane above this one")
		return
	case y.Above == Absent && y.AboveAge == 0:
		c.add(at, "above or above_age")
	}
	if y.Above < Absent || y.Above > maxMemory {
		c.add(at+".above", "0 to %d", maxMemory)
	} else if y.Resume < Absent || y.Resume > y.Above {
		c.add(at+".resume", "0 to above")
	}
	c.lasting(at+".above_age", y.AboveAge, time.Millisecond, MaxPeriod)
	if y.AboveAge >= 0 && (y.ResumeAge < 0 || y.ResumeAge > y.AboveAge) {
		c.add(at+".resume_age", "a duration of at most above_age")
	}
}

func (c *checker) batch(at string, b *BatchPolicy) {
	if b.Size == 0 && *b != (BatchPolicy{}) {
		c.add(at+".size", "2 to %d", int64(MaxItems))
	}
	c.between(at+".size", b.Size, 2, MaxItems)
	c.lasting(at+".linger", b.Linger, time.Nanosecond, maxLinger)
}

func (c *checker) leaveTokens(at string, p *PoolPolicy, name string, n int64) {
	i := slices.IndexFunc(p.Buckets, func(b BucketPolicy) bool { return b.Name == name && b.Scope == ScopePool })
	switch {
	case i < 0:
		c.add(at, "the name of a POOL bucket of this pool")
	case p.Buckets[i].Blocked:
		c.add(at, "a bucket that is not blocked")
	case n < 0 || n >= p.Buckets[i].Capacity:
		c.add(at, "0 to capacity - 1, which is %d", p.Buckets[i].Capacity-1)
	}
}

func (c *checker) categories(at string, p *PoolPolicy) {
	c.count(at+".categories", len(p.Categories), MaxCategories)
	for _, category := range sortedKeys(p.Categories) {
		field := at + ".categories[" + category + "]"
		if !validID(category) {
			c.add(field, "a category of 1 to %d of A-Z a-z 0-9 . _ : / -", maxIDLength)
		}
		c.laneName(field, p, p.Categories[category])
	}
}

func (c *checker) laneName(field string, p *PoolPolicy, name string) {
	known := slices.ContainsFunc(p.Lanes, func(l LanePolicy) bool { return l.Name == name })
	if !known && !(len(p.Lanes) == 0 && name == defaultLane) {
		c.add(field, "the name of a lane of this pool, found %q", name)
	}
}

func (c *checker) tenants(at string, p *PoolPolicy) {
	defaults := at + ".tenants.defaults"
	if p.Defaults.ID != "" {
		c.add(defaults+".id", "no id: the defaults are everybody's")
	}
	if len(p.Defaults.Buckets) > 0 {
		c.add(defaults+".buckets", "none: the defaults of a TENANT bucket are the bucket's own numbers")
	}
	c.tenant(defaults, p, &p.Defaults)
	c.count(at+".tenants.overrides", len(p.Overrides), MaxOverrides)
	ids := map[string]bool{}
	for i := range p.Overrides {
		t := &p.Overrides[i]
		at := fmt.Sprintf("%s.tenants.overrides[%d]", at, i)
		c.named(at, p, t, ids)
	}
}

// named checks what one tenant has of its own; ids are those of the others.
func (c *checker) named(at string, p *PoolPolicy, t *TenantPolicy, ids map[string]bool) {
	if !validID(t.ID) {
		c.add(at+".id", "1 to %d of A-Z a-z 0-9 . _ : / -", maxIDLength)
	}
	c.once(ids, at+".id", t.ID)
	c.tenant(at, p, t)
	for _, name := range sortedKeys(t.Buckets) {
		c.override(at+".buckets["+name+"]", p, name, t.Buckets[name])
	}
}

func (c *checker) tenant(at string, p *PoolPolicy, t *TenantPolicy) {
	c.between(at+".weight", t.Weight, 1, MaxWeight)
	c.between(at+".max_active", t.MaxActive, 1, MaxSlots)
	if t.PreferredActive != nil {
		most := int64(MaxSlots)
		if limit := firstOf(t.MaxActive, p.Defaults.MaxActive); limit > 0 {
			most = limit
		}
		if n := *t.PreferredActive; n < 0 || n > most {
			c.add(at+".preferred_active", "0 to %d", most)
		}
	}
	if t.Lane != "" {
		c.laneName(at+".lane", p, t.Lane)
	}
	for _, name := range sortedKeys(t.LaneMaxActive) {
		field := at + ".lane_max_active[" + name + "]"
		c.laneName(field, p, name)
		if n := t.LaneMaxActive[name]; n < 1 || n > MaxSlots {
			c.add(field, "1 to %d", int64(MaxSlots))
		}
	}
}

func (c *checker) override(at string, p *PoolPolicy, name string, o BucketOverride) {
	i := slices.IndexFunc(p.Buckets, func(b BucketPolicy) bool { return b.Name == name && b.Scope == ScopeTenant })
	if i < 0 {
		c.add(at, "the name of a TENANT bucket of this pool")
		return
	}
	c.between(at+".capacity", o.Capacity, 1, MaxTokens)
	c.between(at+".refill", o.Refill, 1, MaxTokens)
	c.lasting(at+".period", o.Period, time.Millisecond, MaxPeriod)
	if field, expected := o.misfit(p.Buckets[i].Blocked, p.Buckets[i].OneShot); expected != "" {
		c.add(at+field, "%s", expected)
	}
}

func (c *checker) retry(at string, r *RetryPolicy) {
	c.between(at+".max_attempts", int64(r.MaxAttempts), 1, MaxAttempts)
	c.lasting(at+".base", r.Base, time.Millisecond, maxRetryBase)
	c.lasting(at+".max", r.Max, time.Millisecond, maxRetryMax)
	if d := r.withDefaults(); d.Max < d.Base {
		c.add(at+".max", "at least base, which is %s", short(d.Base))
	}
}

func (c *checker) cadences(at string, p *PoolPolicy) {
	c.count(at+".cadences", len(p.Cadences), MaxCadences)
	names := map[string]bool{}
	for i := range p.Cadences {
		cad := &p.Cadences[i]
		at := fmt.Sprintf("%s.cadences[%d]", at, i)
		c.name(at+".name", cad.Name)
		c.once(names, at+".name", cad.Name)
		if cad.Base == 0 {
			c.add(at+".base", "a duration from %s to %s", short(MinEvery), short(MaxPeriod))
		}
		c.lasting(at+".base", cad.Base, MinEvery, MaxPeriod)
		c.between(at+".factor", cad.Factor, 1, 1000)
		c.lasting(at+".max", cad.Max, MinEvery, MaxPeriod)
		if d := cad.withDefaults(); d.Max < d.Base {
			c.add(at+".max", "at least base, which is %s", short(d.Base))
		}
	}
}

func (c *checker) limits(at string, l *LimitsPolicy) {
	c.between(at+".entries", l.Entries, 1, maxMemory)
	c.between(at+".entries_per_tenant", l.EntriesPerTenant, 1, maxMemory)
	c.between(at+".tenants", l.Tenants, 1, maxMemory)
	c.between(at+".new_tenants_per_second", l.NewTenantsPerSecond, 1, maxMemory)
	c.between(at+".tenant_rows", l.TenantRows, 1, maxMemory)
	c.between(at+".request_ids", l.RequestIDs, 1, maxMemory)
	c.between(at+".ended_permits", l.EndedPermits, 1, maxMemory)
	c.between(at+".waiting", l.Waiting, 1, maxMemory)
	c.between(at+".waiting_per_tenant", l.WaitingPerTenant, 1, maxMemory)
	c.between(at+".dedupe_keys", l.DedupeKeys, 1, maxMemory)
	c.between(at+".paused_groups", l.PausedGroups, 1, maxMemory)
	c.between(at+".shares", l.Shares, 1, maxMemory)
}

// validID says whether a tenant, key, route, group or category is well formed.
func validID(s string) bool {
	return len(s) > 0 && len(s) <= maxIDLength && every(s, func(b byte) bool {
		return isNameByte(b) || b == ':' || b == '/'
	})
}

func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '.' || b == '_' || b == '-'
}

func every(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return true
}
