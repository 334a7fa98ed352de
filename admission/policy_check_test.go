package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// sound is a policy that uses everything and breaks no rule.
func sound() Policy {
	three := int64(3)
	return Policy{Pools: []PoolPolicy{{
		Name: "p", MaxActive: 10, PermitTTL: time.Minute, MaxPause: time.Hour,
		LockMaxActive: MaxSlots, DoneRetention: MaxPeriod, DeadRetention: time.Minute, Shadow: true,
		Buckets: []BucketPolicy{
			{Name: "provider", Scope: ScopePool, Capacity: 10, Refill: 5, Period: time.Second, Share: TokenShare{
				Max: 10, TTL: time.Hour, IdleReturn: time.Hour, OnLoss: OnLossSafe, Safe: 10,
			}},
			{Name: "fair", Scope: ScopeTenant, Capacity: 10, Refill: 5, Period: time.Second, PerPermit: true},
			{Name: "once", Scope: ScopeTenant, Capacity: 10, OneShot: true},
			{Name: "shut", Scope: ScopeTenant, Blocked: true},
			{Name: "closed", Scope: ScopePool, Blocked: true},
		},
		Lanes: []LanePolicy{{Name: "high"}, {
			Name: "low", LeaveSlots: 9, LeaveTokens: map[string]int64{"provider": 9}, TenantCycleLimit: 1000,
			Yield: &YieldPolicy{Above: 1_000_000_000, Resume: 1_000_000_000, AboveAge: MaxPeriod, ResumeAge: MaxPeriod},
		}},
		Categories: map[string]string{"otp": "high", "a:b/c": "low"},
		Defaults:   TenantPolicy{Weight: 1_000_000, PreferredActive: &three, MaxActive: 3, Lane: "low"},
		Overrides: []TenantPolicy{{ID: "acme", Weight: 2, PreferredActive: &three, Buckets: map[string]BucketOverride{
			"fair": {Capacity: MaxTokens, Refill: MaxTokens, Period: MaxPeriod}, "once": {Capacity: 3},
			"shut": {Capacity: 1, Refill: 1, Period: time.Millisecond},
		}}, {ID: "shady", Buckets: map[string]BucketOverride{"fair": {Blocked: true}}}},
		Retry: RetryPolicy{MaxAttempts: 1000, Base: time.Millisecond, Max: 720 * time.Hour},
		Limits: LimitsPolicy{
			Entries: 1, EntriesPerTenant: 1, Tenants: 1, RequestIDs: 1, EndedPermits: 1_000_000_000,
			Waiting: 1, WaitingPerTenant: 1, DedupeKeys: 1, Shares: 1,
		},
	}}}
}

// Every rule is told with the field that breaks it, and breaking one tells of no
// other.
func TestEveryRuleOfPolicies(t *testing.T) {
	if bad := sound().Validate(); len(bad) > 0 {
		t.Fatalf("a sound policy: %v", bad)
	}
	for _, c := range []struct {
		field string
		spoil func(p *PoolPolicy)
	}{
		{"name", func(p *PoolPolicy) { p.Name = "" }},
		{"name", func(p *PoolPolicy) { p.Name = "a b" }},
		{"name", func(p *PoolPolicy) { p.Name = strings.Repeat("x", 65) }},
		{"max_active", func(p *PoolPolicy) { p.MaxActive = MaxSlots + 1 }},
		{"permit_ttl", func(p *PoolPolicy) { p.PermitTTL = time.Second - 1 }},
		{"permit_ttl", func(p *PoolPolicy) { p.PermitTTL = MaxTTL + 1 }},
		{"max_pause", func(p *PoolPolicy) { p.MaxPause = 24*time.Hour + 1 }},
		{"max_pause", func(p *PoolPolicy) { p.MaxPause = time.Millisecond }},
		{"lock_max_active", func(p *PoolPolicy) { p.LockMaxActive = -1 }},
		{"lock_max_active", func(p *PoolPolicy) { p.LockMaxActive = MaxSlots + 1 }},
		{"done_retention", func(p *PoolPolicy) { p.DoneRetention = time.Second - 1 }},
		{"done_retention", func(p *PoolPolicy) { p.DoneRetention = MaxPeriod + 1 }},
		{"dead_retention", func(p *PoolPolicy) { p.DeadRetention = time.Minute - 1 }},
		{"dead_retention", func(p *PoolPolicy) { p.DeadRetention = MaxPeriod + 1 }},

		{"buckets[0].name", func(p *PoolPolicy) { p.Buckets[0].Name = "max_active"; p.Lanes[1].LeaveTokens = nil }},
		{"buckets[1].name", func(p *PoolPolicy) { p.Buckets[1].Name = "provider"; p.Overrides = nil }},
		{"buckets[3].name", func(p *PoolPolicy) { p.Buckets[3].Name = "a/b"; p.Overrides = nil }},
		{"buckets[0].scope", func(p *PoolPolicy) { p.Buckets[0].Scope = 0; p.Lanes[1].LeaveTokens = nil }},
		{"buckets[1].scope", func(p *PoolPolicy) { p.Buckets[1].Scope = ScopeLane; p.Overrides = nil }},
		{"buckets[1].capacity", func(p *PoolPolicy) { p.Buckets[1].Capacity = 0 }},
		{"buckets[1].capacity", func(p *PoolPolicy) { p.Buckets[1].Capacity = MaxTokens + 1 }},
		{"buckets[1].capacity", func(p *PoolPolicy) { p.Buckets[1].Capacity = -1 }},
		{"buckets[1].refill", func(p *PoolPolicy) { p.Buckets[1].Refill = 0 }},
		{"buckets[1].refill", func(p *PoolPolicy) { p.Buckets[1].Refill = MaxTokens + 1 }},
		{"buckets[1].period", func(p *PoolPolicy) { p.Buckets[1].Period = 0 }},
		{"buckets[1].period", func(p *PoolPolicy) { p.Buckets[1].Period = time.Millisecond - 1 }},
		{"buckets[1].period", func(p *PoolPolicy) { p.Buckets[1].Period = MaxPeriod + 1 }},
		{"buckets[2].one_shot", func(p *PoolPolicy) { p.Buckets[2].Refill = 1 }},
		{"buckets[2].one_shot", func(p *PoolPolicy) { p.Buckets[2].Period = time.Second }},
		{"buckets[2].capacity", func(p *PoolPolicy) { p.Buckets[2].Capacity = 0 }},
		{"buckets[3].blocked", func(p *PoolPolicy) { p.Buckets[3].Capacity = 1 }},
		{"buckets[3].blocked", func(p *PoolPolicy) { p.Buckets[3].OneShot = true; p.Overrides = nil }},

		{"buckets[0].share.max", func(p *PoolPolicy) { p.Buckets[0].Share.Max = 0 }},
		{"buckets[0].share.max", func(p *PoolPolicy) { p.Buckets[0].Share.Max = 11 }},
		{"buckets[0].share.ttl", func(p *PoolPolicy) { p.Buckets[0].Share.TTL = time.Hour + 1 }},
		{"buckets[0].share.ttl", func(p *PoolPolicy) { p.Buckets[0].Share = TokenShare{Max: 1, TTL: time.Millisecond} }},
		{"buckets[0].share.idle_return", func(p *PoolPolicy) { p.Buckets[0].Share.IdleReturn = time.Millisecond }},
		{"buckets[0].share.idle_return", func(p *PoolPolicy) { p.Buckets[0].Share.TTL = 0 }},
		{"buckets[0].share.on_loss", func(p *PoolPolicy) { p.Buckets[0].Share.OnLoss = OnLossSafe + 1 }},
		{"buckets[0].share.safe", func(p *PoolPolicy) { p.Buckets[0].Share.OnLoss = OnLossOpen }},
		{"buckets[0].share.safe", func(p *PoolPolicy) { p.Buckets[0].Share.Safe = 0 }},
		{"buckets[0].share.safe", func(p *PoolPolicy) { p.Buckets[0].Share.Safe = 11 }},
		{"buckets[0].share", func(p *PoolPolicy) { p.Buckets[0].PerPermit = true }},
		{"buckets[2].share", func(p *PoolPolicy) { p.Buckets[2].Share.Max = 1 }},
		{"buckets[3].share", func(p *PoolPolicy) { p.Buckets[3].Share.Max = 1 }},

		{"lanes[0].name", func(p *PoolPolicy) { p.Lanes[0].Name = ""; p.Categories = nil }},
		{"lanes[1].name", func(p *PoolPolicy) { p.Lanes[1].Name = "high"; p.Categories = nil; p.Defaults.Lane = "" }},
		{"lanes[1].leave_slots", func(p *PoolPolicy) { p.Lanes[1].LeaveSlots = -1 }},
		{"lanes[1].leave_slots", func(p *PoolPolicy) { p.Lanes[1].LeaveSlots = 10 }},
		{"lanes[1].leave_slots", func(p *PoolPolicy) { p.MaxActive = 0 }},
		{"lanes[0].yield", func(p *PoolPolicy) { p.Lanes[0].Yield = &YieldPolicy{Above: 5} }},
		{"lanes[1].yield", func(p *PoolPolicy) { p.Lanes[1].Yield = &YieldPolicy{Above: Absent, Resume: Absent} }},
		{"lanes[1].yield.above", func(p *PoolPolicy) { p.Lanes[1].Yield.Above = 1_000_000_001 }},
		{"lanes[1].yield.above", func(p *PoolPolicy) { p.Lanes[1].Yield.Above = Absent - 1 }},
		{"lanes[1].yield.resume", func(p *PoolPolicy) { p.Lanes[1].Yield.Resume = 1_000_000_001 }},
		{"lanes[1].yield.resume", func(p *PoolPolicy) { p.Lanes[1].Yield.Resume = Absent - 1 }},
		{"lanes[1].yield.resume", func(p *PoolPolicy) { p.Lanes[1].Yield.Above = Absent }},
		{"lanes[1].yield.above_age", func(p *PoolPolicy) { p.Lanes[1].Yield.AboveAge = -1 }},
		{"lanes[1].yield.above_age", func(p *PoolPolicy) { p.Lanes[1].Yield.AboveAge = MaxPeriod + 1 }},
		{"lanes[1].yield.resume_age", func(p *PoolPolicy) { p.Lanes[1].Yield.AboveAge = time.Hour }},
		{"lanes[1].yield.resume_age", func(p *PoolPolicy) { p.Lanes[1].Yield.AboveAge = 0 }},
		{"lanes[1].yield.resume_age", func(p *PoolPolicy) { p.Lanes[1].Yield.ResumeAge = -1 }},
		{"lanes[1].leave_tokens[provider]", func(p *PoolPolicy) { p.Lanes[1].LeaveTokens["provider"] = 10 }},
		{"lanes[1].leave_tokens[provider]", func(p *PoolPolicy) { p.Lanes[1].LeaveTokens["provider"] = -1 }},
		{"lanes[1].leave_tokens[fair]", func(p *PoolPolicy) { p.Lanes[1].LeaveTokens["fair"] = 1 }},
		{"lanes[1].leave_tokens[none]", func(p *PoolPolicy) { p.Lanes[1].LeaveTokens["none"] = 1 }},
		{"lanes[1].leave_tokens[closed]", func(p *PoolPolicy) { p.Lanes[1].LeaveTokens["closed"] = 0 }},
		{"lanes[1].tenant_cycle_limit", func(p *PoolPolicy) { p.Lanes[1].TenantCycleLimit = 1001 }},
		{"lanes[1].tenant_cycle_limit", func(p *PoolPolicy) { p.Lanes[1].TenantCycleLimit = -1 }},

		{"categories[otp]", func(p *PoolPolicy) { p.Categories["otp"] = "none" }},
		{"categories[o t]", func(p *PoolPolicy) { p.Categories["o t"] = "high" }},

		{"tenants.defaults.id", func(p *PoolPolicy) { p.Defaults.ID = "x" }},
		{"tenants.defaults.buckets", func(p *PoolPolicy) { p.Defaults.Buckets = map[string]BucketOverride{"fair": {}} }},
		{"tenants.defaults.weight", func(p *PoolPolicy) { p.Defaults.Weight = MaxWeight + 1 }},
		{"tenants.defaults.max_active", func(p *PoolPolicy) { p.Defaults.MaxActive = -1 }},
		{"tenants.defaults.lane", func(p *PoolPolicy) { p.Defaults.Lane = "none" }},
		{"tenants.defaults.preferred_active", func(p *PoolPolicy) { four := int64(4); p.Defaults.PreferredActive = &four }},
		{"tenants.overrides[0].preferred_active", func(p *PoolPolicy) { four := int64(4); p.Overrides[0].PreferredActive = &four }},
		{"tenants.overrides[0].preferred_active", func(p *PoolPolicy) { less := int64(-1); p.Overrides[0].PreferredActive = &less }},
		{"tenants.overrides[0].id", func(p *PoolPolicy) { p.Overrides[0].ID = "" }},
		{"tenants.overrides[0].id", func(p *PoolPolicy) { p.Overrides[0].ID = strings.Repeat("x", 129) }},
		{"tenants.overrides[1].id", func(p *PoolPolicy) { p.Overrides[1].ID = "acme" }},
		{"tenants.overrides[1].weight", func(p *PoolPolicy) { p.Overrides[1].Weight = -1 }},
		{"tenants.overrides[0].buckets[none]", func(p *PoolPolicy) { p.Overrides[0].Buckets["none"] = BucketOverride{Capacity: 1} }},
		{"tenants.overrides[0].buckets[provider]", func(p *PoolPolicy) { p.Overrides[0].Buckets["provider"] = BucketOverride{Capacity: 1} }},
		{"tenants.overrides[0].buckets[fair].capacity", func(p *PoolPolicy) { p.Overrides[0].Buckets["fair"] = BucketOverride{Capacity: MaxTokens + 1} }},
		{"tenants.overrides[0].buckets[fair].refill", func(p *PoolPolicy) { p.Overrides[0].Buckets["fair"] = BucketOverride{Refill: -1} }},
		{"tenants.overrides[0].buckets[fair].period", func(p *PoolPolicy) { p.Overrides[0].Buckets["fair"] = BucketOverride{Period: 1} }},
		{"tenants.overrides[0].buckets[fair].blocked", func(p *PoolPolicy) { p.Overrides[0].Buckets["fair"] = BucketOverride{Blocked: true, Capacity: 1} }},
		{"tenants.overrides[0].buckets[once]", func(p *PoolPolicy) { p.Overrides[0].Buckets["once"] = BucketOverride{Refill: 1} }},
		{"tenants.overrides[0].buckets[shut]", func(p *PoolPolicy) { p.Overrides[0].Buckets["shut"] = BucketOverride{Capacity: 1, Refill: 1} }},

		{"retry.max_attempts", func(p *PoolPolicy) { p.Retry.MaxAttempts = 1001 }},
		{"retry.max_attempts", func(p *PoolPolicy) { p.Retry.MaxAttempts = -1 }},
		{"retry.base", func(p *PoolPolicy) { p.Retry.Base = 24*time.Hour + 1 }},
		{"retry.max", func(p *PoolPolicy) { p.Retry.Max = 720*time.Hour + 1 }},
		{"retry.max", func(p *PoolPolicy) { p.Retry = RetryPolicy{Base: 2 * time.Second, Max: time.Second} }},
		{"limits.entries", func(p *PoolPolicy) { p.Limits.Entries = -1 }},
		{"limits.entries_per_tenant", func(p *PoolPolicy) { p.Limits.EntriesPerTenant = 1_000_000_001 }},
		{"limits.tenants", func(p *PoolPolicy) { p.Limits.Tenants = -1 }},
		{"limits.request_ids", func(p *PoolPolicy) { p.Limits.RequestIDs = -1 }},
		{"limits.paused_groups", func(p *PoolPolicy) { p.Limits.PausedGroups = -1 }},
		{"limits.shares", func(p *PoolPolicy) { p.Limits.Shares = -1 }},
		{"limits.ended_permits", func(p *PoolPolicy) { p.Limits.EndedPermits = 1_000_000_001 }},

		{"buckets", func(p *PoolPolicy) {
			for i := range MaxBuckets {
				p.Buckets = append(p.Buckets, BucketPolicy{Name: fmt.Sprint("b", i), Scope: ScopePool, Blocked: true})
			}
		}},
		{"lanes", func(p *PoolPolicy) {
			for i := range MaxLanes {
				p.Lanes = append(p.Lanes, LanePolicy{Name: fmt.Sprint("l", i)})
			}
		}},
		{"categories", func(p *PoolPolicy) {
			for i := range MaxCategories {
				p.Categories[fmt.Sprint("c", i)] = "high"
			}
		}},
		{"tenants.overrides", func(p *PoolPolicy) {
			for i := range MaxOverrides {
				p.Overrides = append(p.Overrides, TenantPolicy{ID: fmt.Sprint("t", i)})
			}
		}},
	} {
		policy := sound()
		c.spoil(&policy.Pools[0])
		bad := policy.Validate()
		if len(bad) != 1 || bad[0].Field != "pools[0]."+c.field || !strings.HasPrefix(bad[0].Message, "expected ") {
			t.Errorf("want one complaint about %s, got %+v", c.field, bad)
		}
	}
}

// Pools have names of their own, and there is a limit to them.
func TestRulesAboutPools(t *testing.T) {
	policy := sound()
	policy.Pools = append(policy.Pools, policy.Pools[0])
	if bad := policy.Validate(); len(bad) != 1 || bad[0].Field != "pools[1].name" {
		t.Errorf("a name twice: %+v", bad)
	}
	policy = Policy{}
	for i := range MaxPools + 1 {
		policy.Pools = append(policy.Pools, PoolPolicy{Name: fmt.Sprint("p", i)})
	}
	if bad := policy.Validate(); len(bad) != 1 || bad[0].Field != "pools" {
		t.Errorf("too many: %+v", bad)
	}
}

// All that is wrong is told at once.
func TestEveryViolationIsTold(t *testing.T) {
	policy := sound()
	policy.Pools[0].PermitTTL, policy.Pools[0].Buckets[1].Refill, policy.Pools[0].Categories["otp"] = 1, 0, "none"
	var fields []string
	for _, v := range policy.Validate() {
		fields = append(fields, v.Field)
	}
	if wanted := []string{"pools[0].permit_ttl", "pools[0].buckets[1].refill", "pools[0].categories[otp]"}; !slices.Equal(fields, wanted) {
		t.Errorf("told %v, want %v", fields, wanted)
	}
}
