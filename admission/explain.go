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
	x.consider(a)
	return x
}

// consider tests the ask against every limit, those of the pool's memory too.
func (x *examination) consider(a *ask) {
	x.run()
	t, l, limits, now := a.demand.tenant, a.demand.lane, &x.pool.limits, x.now
	for _, door := range t.closedTo(l, now) {
		x.add(Cardinality, door.limit, door.opensAt)
	}
	if a.op.RequestID != "" {
		ids := int64(x.pool.requests.len())
		limit := l.memory("limits.request_ids", ScopePool, limits.RequestIDs, ids)
		x.consult(onlyIf(a.forgets(now), Cardinality), limit, x.pool.requestsFreeAt(l))
	}
	if a.op.DedupeKey != "" {
		limit := l.memory("limits.dedupe_keys", ScopePool, limits.DedupeKeys, int64(x.pool.jobs.len()))
		x.consult(onlyIf(a.jobsFull(), Cardinality), limit, never)
	}
	x.readyAt = t.returnsAt(l, x.readyAt)
	if a.op.MaxWait == 0 || x.reason == ReasonNone || x.final {
		return // it would not wait
	}
	all := l.memory("limits.waiting", ScopePool, limits.Waiting, x.pool.waiting)
	x.consult(onlyIf(all.full(), QueueFull), all, never)
	own := l.memory("limits.waiting_per_tenant", ScopeTenant, limits.WaitingPerTenant, t.waiting)
	x.consult(onlyIf(own.full(), QueueFull), own, never)
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
	// expires is when, on the lease clock, the first of the permits ends that hold
	// what blocks, or never.
	expires Instant
	most    int64 // the greatest cost that can ever pass
	// onlyPoolTokens says that tokens of the pool's buckets are all it lacks.
	onlyPoolTokens bool
	// final says that something blocks for which waiting can't help.
	final bool
	// hopeless says that something blocks that neither time nor a release frees.
	hopeless bool
	// whole asks for what lets it pass as well: consulted is every limit then.
	whole     bool
	consulted []Consulted
	// taking and part are set for a part of a Take: only the buckets that it names are
	// tested, for what the parts before it take as well.
	taking *taking
	part   *TakePart
}

func (s *State) newExamination(d *demand, n need, now Instant) *examination {
	return &examination{
		state: s, pool: d.tenant.pool, demand: d, need: n, now: now, readyAt: now, expires: never, most: Absent,
	}
}

// examine tests one permit against every limit.
func (s *State) examine(d *demand, n need, now Instant) *examination {
	x := s.newExamination(d, n, now)
	if holder, ok := s.reservation(x.pool, now); ok && s.goesAfter(d, n, holder) {
		x.holder = &holder
	}
	x.run()
	return x
}

func (x *examination) run() {
	x.duplicate()
	x.pauses()
	if rules := x.demand.lane.batch; rules.Only {
		x.consult(onlyIf(x.need.single, BatchOnly), Limit{Name: "batch.only", Scope: ScopeLane, Capacity: rules.Size, Asked: 1}, never)
	}
	x.slots()
	x.lockBusy()
	if l := x.demand.lane; l.yield != nil || l.yielding {
		x.consult(onlyIf(l.yielding, LaneYield), Limit{Name: "yield", Scope: ScopeLane, Asked: 1}, never)
	}
	before := len(x.blocking)
	for i := range x.pool.buckets {
		if b := &x.pool.buckets[i]; x.names(b.bucketSpec) {
			x.poolBucket(i, b.bucketSpec, b.settled(b.bucketSpec, x.now))
		}
	}
	after := len(x.blocking)
	x.fairUse()
	x.onlyPoolTokens = before == 0 && after > 0 && after == len(x.blocking)
}

// fairUse tests the tenant's own buckets. What came before in its own line and
// lacks tokens goes first.
func (x *examination) fairUse() {
	short := x.state.shortWaiter(x.demand, x.need.seq, x.now)
	for i, spec := range x.demand.tenant.share.buckets {
		if !x.names(spec) {
			continue
		}
		b := x.demand.tenant.bucket(i, x.now)
		held := ReasonNone
		if short != nil {
			held = b.refusal(spec, spec.charge(short.cost), 0, TenantRate, x.now)
		}
		x.bucket(spec, b, 0, TenantRate, held)
	}
}

// names says whether the bucket is one of those that are charged.
func (x *examination) names(spec *bucketSpec) bool { return x.part == nil || x.part.takes(spec) }

// asks returns the tokens that are asked of the bucket.
func (x *examination) asks(spec *bucketSpec) int64 {
	n := spec.charge(x.need.cost)
	if x.taking != nil {
		n += x.taking.before(x.demand.tenant, spec)
	}
	return n
}

func (x *examination) duplicate() {
	if x.need.job == "" {
		return
	}
	live, done := x.demand.tenant.duplicate(x.need.job, x.now)
	l := Limit{Name: "dedupe_key", Scope: ScopeTenant, Capacity: 1, Asked: 1}
	if live || done {
		l.Used = 1
	}
	if live {
		l.Holders = 1
	}
	x.held(onlyIf(live || done, Duplicate), l, x.state.jobEnds(x.demand.tenant, x.need.job))
	x.hopeless = x.hopeless || done && !live
}

func (x *examination) lockBusy() {
	t, key := x.demand.tenant, x.need.lock
	if key == "" {
		return
	}
	holders := t.lockHolders(key)
	x.held(onlyIf(t.lockBusy(key, x.need.seq), LockBusy), Limit{
		Name: "lock_key", Scope: ScopeTenant, Capacity: x.pool.lockMax, Used: holders, Asked: 1, Holders: holders,
	}, t.lockEnds(key))
}

// consult notes a limit: one that blocks for a reason, or lets it pass.
func (x *examination) consult(why Reason, l Limit, readyAt Instant) {
	switch {
	case why != ReasonNone:
		x.add(why, l, readyAt)
	case x.whole:
		l.RetryAfter = Absent
		x.consulted = append(x.consulted, Consulted{Limit: l})
	}
}

// onlyIf returns the reason if it applies.
func onlyIf(blocks bool, why Reason) Reason {
	if !blocks {
		return ReasonNone
	}
	return why
}

// add notes a limit that blocks.
func (x *examination) add(why Reason, l Limit, readyAt Instant) {
	x.reason = firstReason(x.reason, why)
	x.readyAt = max(x.readyAt, readyAt)
	x.hopeless = x.hopeless || why.lasts()
	x.final = x.final || why.final()
	l.RetryAfter = untilMillis(x.now, readyAt)
	x.blocking = append(x.blocking, l)
	if x.whole {
		x.consulted = append(x.consulted, Consulted{l, why})
	}
}

// lasts says whether only another policy can lift what is refused for that reason.
func (r Reason) lasts() bool {
	return r == NeverGrantable || r == Blocked || r == Exhausted || r == BatchOnly
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
	if most := t.share.maxActive; most > 0 {
		x.held(onlyIf(t.atCap(), TenantCap), slotLimit("max_active", ScopeTenant, most, t.active), x.state.firstHolding(t, 0))
	}
	x.laneCaps()
	if p.maxActive == 0 {
		return
	}
	x.held(onlyIf(p.active >= p.maxActive, PoolCap), slotLimit("max_active", ScopePool, p.maxActive, p.active), p.firstExpiry(0))
	for _, above := range p.lanes[:l.rank+1] {
		if above.leaveSlots > 0 {
			limit := slotLimit("leave_slots", ScopeLane, p.maxActive, p.activeFrom(above.rank))
			limit.Reserve = above.leaveSlots
			x.held(onlyIf(limit.Used >= p.maxActive-above.leaveSlots, PoolCap), limit, p.firstExpiry(above.rank))
		}
	}
	if k := x.demand.kind(); p.keptFor(l, k) > 0 {
		limit := slotLimit("preferred_active", ScopePool, p.maxActive, p.active)
		limit.Reserve = p.keptFor(l, k)
		x.held(onlyIf(l.reclaimed(k), ReclaimWait), limit, p.firstExpiry(0))
	}
}

func (x *examination) laneCaps() {
	t := x.demand.tenant
	for rank, limit := range t.share.laneMax {
		if limit > 0 && rank <= x.demand.lane.rank {
			own := slotLimit("lane_max_active", ScopeTenant, limit, t.activeFrom(rank))
			x.held(onlyIf(t.laneCapped(rank), LaneCap), own, x.state.firstHolding(t, rank))
		}
	}
}

// slotLimit is a limit on permits, of which one more is asked for.
func slotLimit(name string, scope Scope, capacity, used int64) Limit {
	return Limit{Name: name, Scope: scope, Capacity: capacity, Used: used, Asked: 1, Holders: used}
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
	asked := x.asks(spec)
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
	x.consult(why, l, readyAt)
	if lacks := asked > spec.capacity-b.lent-leave; lacks && why != ReasonNone && !spec.blocked && !spec.oneShot {
		x.expires = min(x.expires, x.state.firstShare(x.demand.tenant, spec))
	}
}

// shed returns the examination's outcome as an answer.
func (x *examination) shed() *Shed {
	shed := &Shed{
		Reason: x.reason, Lane: x.demand.lane.name, Blocking: x.blocking, MaxGrantable: x.most,
		RetryAfter: untilMillis(x.now, x.readyAt), PollAfter: Absent, EarliestExpiry: Absent,
	}
	if x.expires != never {
		shed.EarliestExpiry = ceilMillis(max(x.expires.Sub(x.now.Add(-x.state.leaseOffset)), 0))
	}
	if shed.RetryAfter == Absent && !x.hopeless {
		shed.PollAfter = longestPoll
		if shed.EarliestExpiry != Absent {
			shed.PollAfter = min(shed.PollAfter, max(shed.EarliestExpiry, time.Millisecond))
		}
	}
	return shed
}

// longestPoll is the advice where nothing better is known.
const longestPoll = time.Second
