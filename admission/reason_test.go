package admission

import (
	"testing"
	"time"
)

// cause makes a reason hold for what tenant a asks in the lower of two lanes. Most
// can hold together.
type cause struct {
	policy func(p *PoolPolicy, a *TenantPolicy)
	// first takes and brings what must be there; then closes what would be in the
	// way of that.
	first, then func(s *story)
	ask         func(op *Acquire)
	// poll is set where only the answer of a NextDue tells the reason.
	poll func(op *NextDue)
}

// causes has one for every reason.
var causes = [reasonCount]cause{
	NeverGrantable: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Buckets = append(p.Buckets, hourly("big", ScopePool)) },
		ask:    func(op *Acquire) { op.Cost = 6 },
	},
	Duplicate: {
		first: func(s *story) {
			s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "high", Cost: 1, DedupeKey: "job"})
		},
		ask: func(op *Acquire) { op.DedupeKey = "job" },
	},
	Paused: {then: func(s *story) { s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a"}) }},
	Blocked: {policy: func(p *PoolPolicy, a *TenantPolicy) {
		p.Buckets = append(p.Buckets, hourly("own", ScopeTenant))
		a.Buckets = map[string]BucketOverride{"own": {Blocked: true}}
	}},
	Exhausted: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) {
			p.Buckets = append(p.Buckets, BucketPolicy{Name: "once", Scope: ScopePool, Capacity: 1, OneShot: true})
		},
		first: func(s *story) { s.acquire(&Acquire{Pool: "p", Tenant: "b", Category: "high", Cost: 1}) },
	},
	QueueFull: {
		policy: func(p *PoolPolicy, a *TenantPolicy) { a.MaxActive, p.Limits.Waiting = 1, 1 },
		first: func(s *story) {
			s.holds("a")
			s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute})
		},
		ask: func(op *Acquire) { op.MaxWait = time.Minute },
	},
	Cardinality: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Limits.DedupeKeys = 1 },
		first:  func(s *story) { s.acquire(&Acquire{Pool: "p", Tenant: "b", Category: "high", Cost: 1, DedupeKey: "x"}) },
		ask:    func(op *Acquire) { op.DedupeKey = "y" },
	},
	BatchOnly: {policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Lanes[1].Batch = BatchPolicy{Size: 2, Only: true} }},
	TenantCap: {
		policy: func(_ *PoolPolicy, a *TenantPolicy) { a.MaxActive = 1 },
		first:  func(s *story) { s.holds("a") },
	},
	LaneCap: {
		policy: func(_ *PoolPolicy, a *TenantPolicy) { a.LaneMaxActive = map[string]int64{"high": 1} },
		first:  func(s *story) { s.holds("a") },
	},
	NodeCap: {
		policy: func(_ *PoolPolicy, a *TenantPolicy) { a.MaxActive = 2 },
		first: func(s *story) {
			s.plan(in(0, "a", "k1"), in(0, "a", "k2"))
			s.do(&NextDue{Pool: "p", MaxItems: 1, Node: Node{ID: "n", Owned: 1, Total: 2}})
		},
		poll: func(op *NextDue) { op.Node = Node{ID: "n", Owned: 1, Total: 2} },
	},
	LockBusy: {
		first: func(s *story) { s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "high", Cost: 1, LockKey: "key"}) },
		ask:   func(op *Acquire) { op.LockKey = "key" },
	},
	TenantRate: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Buckets = append(p.Buckets, hourly("fair", ScopeTenant)) },
		then: func(s *story) {
			for _, b := range s.Tenant(s.t, "p", "a").Levels {
				if b.Bucket == "fair" {
					s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "high", Cost: b.Level, RateOnly: true})
				}
			}
		},
	},
	LaneYield: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Lanes[1].Yield = &YieldPolicy{} },
		first: func(s *story) {
			spec := in(0, "b", "urgent")
			spec.Category = "high"
			s.plan(spec)
		},
	},
	ProviderPaused: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Buckets = append(p.Buckets, hourly("provider", ScopePool)) },
		then:   func(s *story) { s.do(Pause{Pool: "p", Kind: TargetBucket, Name: "provider"}) },
	},
	PoolCap: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.MaxActive = 1 },
		first:  func(s *story) { s.holds("b") },
	},
	PoolRate: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) { p.Buckets = append(p.Buckets, hourly("rate", ScopePool)) },
		then: func(s *story) {
			for _, b := range s.Health(s.t, s.w, "p")[0].Buckets {
				if b.Bucket == "rate" {
					s.acquire(&Acquire{Pool: "p", Tenant: "b", Category: "high", Cost: b.Level, RateOnly: true})
				}
			}
		},
	},
	ReclaimWait: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) {
			prefers := int64(1)
			p.MaxActive, p.Overrides = 1, append(p.Overrides, TenantPolicy{ID: "e", PreferredActive: &prefers})
		},
		first: func(s *story) { s.do(&ReportDemand{Pool: "p", Tenant: "e", Backlog: 1, TTL: time.Minute}) },
	},
	CycleCap: {
		policy: func(p *PoolPolicy, _ *TenantPolicy) {
			if p.Lanes[1].TenantCycleLimit = 1; p.MaxActive > 0 {
				p.MaxActive++ // for the one permit of the cycle
			}
		},
		first: func(s *story) { s.plan(in(0, "a", "k1"), in(0, "a", "k2")) },
		poll:  func(*NextDue) {},
	},
	BatchFull: {
		first: func(s *story) { s.plan(in(0, "a", "k1"), in(0, "a", "k2")) },
		poll:  func(op *NextDue) { op.MaxItems = 1 },
	},
}

// hourly is a bucket of five tokens that none comes back to meanwhile.
func hourly(name string, scope Scope) BucketPolicy {
	return BucketPolicy{Name: name, Scope: scope, Capacity: 5, Refill: 1, Period: time.Hour}
}

// holds sees to it that the tenant has a permit.
func (s *story) holds(tenant string) {
	s.Helper()
	if s.Tenant(s.t, "p", tenant).Active == 0 {
		s.acquire(&Acquire{Pool: "p", Tenant: tenant, Category: "high", Cost: 1})
	}
}

// told tells the story of the reasons, and returns the reason that is told.
func told(t *testing.T, of ...Reason) Reason {
	t.Helper()
	p, a := PoolPolicy{
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"high": "high"},
	}, TenantPolicy{ID: "a"}
	op := &Acquire{Pool: "p", Tenant: "a", Cost: 1}
	poll := (*NextDue)(nil)
	for _, r := range of {
		c := causes[r]
		if c.policy != nil {
			c.policy(&p, &a)
		}
		if c.ask != nil {
			c.ask(op)
		}
		if c.poll != nil && poll == nil {
			poll = &NextDue{Pool: "p", MaxItems: 10}
		}
		if c.poll != nil {
			c.poll(poll)
		}
	}
	p.Overrides = append(p.Overrides, a)
	s := tell(t, p)
	for i := len(of) - 1; i >= 0; i-- {
		if first := causes[of[i]].first; first != nil {
			first(s)
		}
	}
	for _, r := range of {
		if then := causes[r].then; then != nil {
			then(s)
		}
	}
	if poll != nil {
		return s.toldByPoll(poll)
	}
	s.allHold(op, of)
	return shedOf(s.acquire(op))
}

// toldByPoll polls, and returns why the rest of a's entries are held.
func (s *story) toldByPoll(op *NextDue) Reason {
	s.Helper()
	r := s.do(op)[0].(*NextDueResult)
	held := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", Tenant: "a", Call: r}).Held
	if r.Err != nil || len(held) != 1 {
		s.Fatalf("%v, held: %+v", r.Err, held)
	}
	return held[0].Reason
}

// allHold checks that every reason of the story holds for the request.
func (s *story) allHold(op *Acquire, of []Reason) {
	s.Helper()
	if len(of) == 1 {
		return
	}
	e, err := s.Explain(s.t, s.w, &ExplainQuery{Request: *op})
	if err != nil {
		s.Fatalf("explain: %v", err)
	}
	holds := map[Reason]bool{}
	for _, l := range e.Limits {
		holds[l.Reason] = true
	}
	for _, r := range of {
		if !holds[r] {
			s.Errorf("%s does not hold: %+v", r, e.Limits)
		}
	}
}

// Every reason has a story in which it is told.
func TestEveryReasonIsTold(t *testing.T) {
	for r := ReasonNone + 1; r < reasonCount; r++ {
		t.Run(r.String(), func(t *testing.T) { want(t, "told", told(t, r), r) })
	}
}

// Where two reasons hold, the first in the precedence is told: for each two that
// stand side by side, and around those that can't hold together.
func TestTheFirstReasonIsTold(t *testing.T) {
	apart := map[[2]Reason]string{
		{Exhausted, QueueFull}:   "what can never pass is not told that the line is full",
		{QueueFull, Cardinality}: "nor is what memory has no room for; see below for entries",
		{NodeCap, LockBusy}:      "a node's part is of entries, which need no lock",
	}
	pairs := [][2]Reason{{Exhausted, Cardinality}, {LaneCap, LockBusy}, {NodeCap, TenantRate}}
	for r := NeverGrantable; r < BatchFull; r++ {
		if pair := [2]Reason{r, r + 1}; apart[pair] == "" {
			pairs = append(pairs, pair)
		}
	}
	for _, pair := range pairs {
		t.Run(pair[0].String()+" before "+pair[1].String(), func(t *testing.T) { want(t, "told", told(t, pair[:]...), pair[0]) })
	}
}

// An entry for which there is no room is told so before that its tenant would be
// one too many.
func TestAFullIndexIsToldBeforeCardinality(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{Entries: 1, Tenants: 1}})
	s.plan(in(0, "b", "k"))
	want(t, "both", s.plan(in(0, "a", "k"))[0].Reason, QueueFull)
	s = tell(t, PoolPolicy{Limits: LimitsPolicy{Entries: 2, Tenants: 1}})
	s.plan(in(0, "b", "k"))
	want(t, "one", s.plan(in(0, "a", "k"))[0].Reason, Cardinality)
}

// Slots and tokens that a lane leaves to those above are told as a reserve.
func TestAReserveIsTold(t *testing.T) {
	s := tell(t, PoolPolicy{
		MaxActive: 2, Buckets: []BucketPolicy{hourly("rate", ScopePool)}, Categories: map[string]string{"high": "high"},
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low", LeaveSlots: 1, LeaveTokens: map[string]int64{"rate": 4}}},
	})
	s.granted("a")
	d := s.ask("a")
	want(t, "reason", shedOf(d), PoolCap)
	reserves := map[string]int64{}
	for _, l := range d.Shed.Blocking {
		reserves[l.Name] = l.Reserve
	}
	want(t, "slots left", reserves["leave_slots"], 1)
	want(t, "tokens left", reserves["rate"], 4)
	d = s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, RateOnly: true})
	want(t, "reason where no slot is needed", shedOf(d), PoolRate)
	want(t, "the top lane's", shedOf(s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "high", Cost: 1})), ReasonNone)
}
