package admission

import "time"

// explain says why the ask is held back: every limit that blocks it, the first
// reason by precedence, and when a lone retry would succeed.
func (s *State) explain(a *ask, now Instant) *Shed {
	x := s.examine(a.demand, a.op.Cost, now)
	if !a.demand.tenant.mayRegister() {
		x.add(Cardinality, Limit{Name: "limits.tenants", Scope: ScopePool, Capacity: x.pool.limits.Tenants, Used: x.pool.strangers, Asked: 1}, never)
	}
	if a.op.RequestID != "" && x.pool.requestsFull(now) {
		x.add(Cardinality, Limit{Name: "limits.request_ids", Scope: ScopePool, Capacity: x.pool.limits.RequestIDs, Used: int64(x.pool.requests.len()), Asked: 1},
			x.pool.requestsFreeAt())
	}
	return x.shed()
}

// examination collects what blocks one permit.
type examination struct {
	state  *State
	pool   *pool
	demand *demand
	cost   int64
	now    Instant

	reason   Reason
	blocking []Limit
	readyAt  Instant // when time alone has freed every limit so far, or never
	most     int64   // the greatest cost that can ever pass
}

// examine tests one permit of that cost against every limit.
func (s *State) examine(d *demand, cost int64, now Instant) *examination {
	x := &examination{state: s, pool: d.tenant.pool, demand: d, cost: cost, now: now, readyAt: now, most: Absent}
	x.pauses()
	x.slots()
	for i := range x.pool.buckets {
		b := &x.pool.buckets[i]
		x.bucket(b.bucketSpec, b.settled(b.bucketSpec, now), d.lane.leaveTokens[i], PoolRate)
	}
	for i, spec := range d.tenant.share.buckets {
		x.bucket(spec, d.tenant.bucket(i, now), 0, TenantRate)
	}
	return x
}

func (x *examination) add(r Reason, l Limit, readyAt Instant) {
	if x.reason == ReasonNone || r < x.reason {
		x.reason = r
	}
	x.readyAt = max(x.readyAt, readyAt)
	l.RetryAfter = untilMillis(x.now, readyAt)
	x.blocking = append(x.blocking, l)
}

func (x *examination) pauses() {
	if x.demand.tenant.paused() {
		x.add(Paused, Limit{Name: "paused", Scope: ScopeTenant, Asked: 1}, never)
	}
	if x.demand.lane.paused {
		x.add(Paused, Limit{Name: "paused", Scope: ScopeLane, Asked: 1}, never)
	}
}

func (x *examination) slots() {
	t, p, l := x.demand.tenant, x.pool, x.demand.lane
	if t.atCap() {
		x.add(TenantCap, Limit{Name: "max_active", Scope: ScopeTenant, Capacity: t.share.maxActive, Used: t.active, Asked: 1, Holders: t.active}, never)
	}
	if p.maxActive == 0 {
		return
	}
	if p.active >= p.maxActive {
		x.add(PoolCap, Limit{Name: "max_active", Scope: ScopePool, Capacity: p.maxActive, Used: p.active, Asked: 1, Holders: p.active}, never)
	}
	for _, above := range p.lanes[:l.rank+1] {
		used := p.activeFrom(above.rank)
		if above.leaveSlots > 0 && used >= p.maxActive-above.leaveSlots {
			x.add(PoolCap, Limit{
				Name: "leave_slots", Scope: ScopeLane, Capacity: p.maxActive, Used: used, Asked: 1,
				Reserve: above.leaveSlots, Holders: used,
			}, never)
		}
	}
}

func (x *examination) bucket(spec *bucketSpec, b bucketState, leave int64, rate Reason) {
	asked := spec.charge(x.cost)
	l := Limit{Name: spec.name, Scope: spec.scope, Capacity: spec.capacity, Used: b.used, Asked: asked, Reserve: leave}
	if most := spec.capacity - leave; !spec.blocked && asked > most {
		if x.most == Absent || most < x.most {
			x.most = most
		}
		x.add(NeverGrantable, l, never)
		return
	}
	if why := b.refusal(spec, asked, leave, rate, x.now); why != ReasonNone {
		x.add(why, l, b.readyAt(spec, asked, leave))
	}
}

// shed returns the examination's outcome as an answer.
func (x *examination) shed() *Shed {
	shed := &Shed{
		Reason: x.reason, Lane: x.demand.lane.name, Blocking: x.blocking, MaxGrantable: x.most,
		RetryAfter: untilMillis(x.now, x.readyAt), PollAfter: Absent, EarliestExpiry: Absent,
	}
	if at, ok := x.earliestExpiry(); ok {
		shed.EarliestExpiry = ceilMillis(max(at.Sub(x.now.Add(-x.state.leaseOffset)), 0))
	}
	if shed.RetryAfter == Absent && (x.reason == Paused || x.reason > Exhausted) {
		shed.PollAfter = longestPoll
		if shed.EarliestExpiry != Absent {
			shed.PollAfter = min(shed.PollAfter, max(shed.EarliestExpiry, time.Millisecond))
		}
	}
	return shed
}

// longestPoll is the advice where nothing better is known.
const longestPoll = time.Second

// earliestExpiry returns when, on the lease clock, the first of the permits that
// hold the blocking slots expires.
func (x *examination) earliestExpiry() (at Instant, ok bool) {
	at = never
	for _, l := range x.blocking {
		if l.Holders == 0 {
			continue
		}
		var first expiry
		var held bool
		if l.Scope == ScopeTenant {
			first, held = x.state.firstHolding(x.demand.tenant)
		} else {
			first, held = x.pool.expiries.Min()
		}
		if held && first.at < at {
			at, ok = first.at, true
		}
	}
	return at, ok
}

// firstHolding returns the tenant's permit that expires first.
func (s *State) firstHolding(t *tenant) (found expiry, ok bool) {
	s.holdings.Ascend(expiry{tenant: t.num, at: -1 << 63}, func(e expiry) bool {
		found, ok = e, e.tenant == t.num
		return false
	})
	return found, ok
}
