package admission

import "time"

// explain says why the ask is held back: every limit that blocks it, the first
// reason by precedence, and when a lone retry would succeed. With reserved it
// comes after the holder of the pool's tokens.
func (s *State) explain(a *ask, now Instant, holder position, reserved bool) *examination {
	x := s.newExamination(a.demand, a.op.need(), now)
	if reserved {
		x.holder = &holder
	}
	x.run()
	t, limits := a.demand.tenant, &x.pool.limits
	for _, door := range t.closedTo(a.demand.lane, now) {
		x.add(Cardinality, door.limit, door.opensAt)
	}
	if a.forgets(now) {
		x.limit("limits.request_ids", Cardinality, limits.RequestIDs, int64(x.pool.requests.len()), x.pool.requestsFreeAt())
	}
	if x.pool.jobsFull(t, a.op.DedupeKey) {
		x.limit("limits.dedupe_keys", Cardinality, limits.DedupeKeys, int64(len(x.pool.jobs)), never)
	}
	if a.op.MaxWait > 0 && x.reason != ReasonNone && !x.reason.final() {
		if x.pool.waiting >= limits.Waiting {
			x.limit("limits.waiting", QueueFull, limits.Waiting, x.pool.waiting, never)
		}
		if t.waiting >= limits.WaitingPerTenant {
			x.add(QueueFull, Limit{
				Name: "limits.waiting_per_tenant", Scope: ScopeTenant, Capacity: limits.WaitingPerTenant, Used: t.waiting, Asked: 1,
			}, never)
		}
	}
	return x
}

// limit adds one of the pool's limits of memory.
func (x *examination) limit(name string, why Reason, capacity, used int64, readyAt Instant) {
	x.add(why, Limit{Name: name, Scope: ScopePool, Capacity: capacity, Used: used, Asked: 1}, readyAt)
}

// examination collects what blocks one permit.
type examination struct {
	state  *State
	pool   *pool
	demand *demand
	need   need
	now    Instant
	holder *position // who reserves the pool's tokens before it, if anybody does

	reason   Reason
	blocking []Limit
	readyAt  Instant // when time alone has freed every limit so far, or never
	most     int64   // the greatest cost that can ever pass
	// onlyPoolTokens says that tokens of the pool's buckets are all it lacks.
	onlyPoolTokens bool
	// jobRuns says that a permit is live for the job.
	jobRuns bool
}

func (s *State) newExamination(d *demand, n need, now Instant) *examination {
	return &examination{
		state: s, pool: d.tenant.pool, demand: d, need: n, now: now, readyAt: now, most: Absent,
	}
}

// examine tests one permit against every limit.
func (s *State) examine(d *demand, n need, now Instant) *examination {
	x := s.newExamination(d, n, now)
	if holder, ok := s.reservation(x.pool, now); ok && holder.demand != d && d.passed(holder) {
		x.holder = &holder
	}
	x.run()
	return x
}

func (x *examination) run() {
	x.duplicate()
	x.pauses()
	if rules := x.demand.lane.batch; x.need.single && rules.Only {
		x.add(BatchOnly, Limit{Name: "batch.only", Scope: ScopeLane, Capacity: rules.Size, Asked: 1}, never)
	}
	x.slots()
	x.lockBusy()
	if x.demand.lane.yielding {
		x.add(LaneYield, Limit{Name: "yield", Scope: ScopeLane, Asked: 1}, never)
	}
	before := len(x.blocking)
	for i := range x.pool.buckets {
		b := &x.pool.buckets[i]
		x.poolBucket(i, b.bucketSpec, b.settled(b.bucketSpec, x.now))
	}
	after := len(x.blocking)
	x.fairUse()
	x.onlyPoolTokens = before == 0 && after > 0 && after == len(x.blocking)
}

// never says whether waiting can't help any more.
func (x *examination) never() bool {
	x.run()
	return x.reason.final()
}

// fairUse tests the tenant's own buckets. What came before in its own line and
// lacks tokens goes first.
func (x *examination) fairUse() {
	short := x.state.shortWaiter(x.demand, x.need.seq, x.now)
	for i, spec := range x.demand.tenant.share.buckets {
		b := x.demand.tenant.bucket(i, x.now)
		held := ReasonNone
		if short != nil {
			held = b.refusal(spec, spec.charge(short.cost), 0, TenantRate, x.now)
		}
		x.bucket(spec, b, 0, TenantRate, held)
	}
}

func (x *examination) duplicate() {
	live, done := x.demand.tenant.duplicate(x.need.job, x.now)
	if !live && !done {
		return
	}
	l := Limit{Name: "dedupe_key", Scope: ScopeTenant, Capacity: 1, Used: 1, Asked: 1}
	if x.jobRuns = live; live {
		l.Holders = 1
	}
	x.add(Duplicate, l, never)
}

func (x *examination) lockBusy() {
	t, key := x.demand.tenant, x.need.lock
	if t.lockBusy(key, x.need.seq) {
		holders := t.lockHolders(key)
		x.add(LockBusy, Limit{
			Name: "lock_key", Scope: ScopeTenant, Capacity: x.pool.lockMax, Used: holders, Asked: 1, Holders: holders,
		}, never)
	}
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
	if x.need.slotless {
		return
	}
	if t.atCap() {
		x.add(TenantCap, Limit{Name: "max_active", Scope: ScopeTenant, Capacity: t.share.maxActive, Used: t.active, Asked: 1, Holders: t.active}, never)
	}
	x.laneCaps()
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
	if k := x.demand.kind(); l.slotFree() && l.reclaimed(k) {
		kept := p.keptFor(l, k)
		x.add(ReclaimWait, Limit{
			Name: "preferred_active", Scope: ScopePool, Capacity: p.maxActive, Used: p.active, Asked: 1, Reserve: kept,
		}, never)
	}
}

func (x *examination) laneCaps() {
	t := x.demand.tenant
	for rank, limit := range t.share.laneMax {
		if rank <= x.demand.lane.rank && t.laneCapped(rank) {
			used := t.activeFrom(rank)
			x.add(LaneCap, Limit{Name: "lane_max_active", Scope: ScopeTenant, Capacity: limit, Used: used, Asked: 1, Holders: used}, never)
		}
	}
}

// poolBucket tests one of the pool's buckets. Where a waiter reserves it, time
// alone frees nothing.
func (x *examination) poolBucket(i int, spec *bucketSpec, b bucketState) {
	held := ReasonNone
	if x.holder != nil {
		held = x.state.lacks(*x.holder, i, x.now)
	}
	x.bucket(spec, b, x.demand.lane.leaveTokens[i], PoolRate, held)
}

// bucket tests a bucket of which the lane leaves a part. held is why it refuses
// somebody who goes first.
func (x *examination) bucket(spec *bucketSpec, b bucketState, leave int64, rate, held Reason) {
	asked := spec.charge(x.need.cost)
	l := Limit{Name: spec.name, Scope: spec.scope, Capacity: spec.capacity, Used: b.used, Asked: asked, Reserve: leave}
	if most := spec.capacity - leave; !spec.blocked && asked > most {
		if x.most == Absent || most < x.most {
			x.most = most
		}
		x.add(NeverGrantable, l, never)
		return
	}
	why, readyAt := b.refusal(spec, asked, leave, rate, x.now), b.readyAt(spec, asked, leave)
	if held != ReasonNone {
		why, readyAt = firstReason(why, held), never
	}
	if why != ReasonNone {
		x.add(why, l, readyAt)
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
	if shed.RetryAfter == Absent && (x.reason > Exhausted && x.reason != BatchOnly || x.reason == Paused || x.reason == Duplicate && x.jobRuns) {
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
