package admission

import "time"

// partOf returns what of one of the pool's limits the lane may fill: the top lane
// all, the others a tenth less, so that a flood below never shuts out what is
// urgent.
func (l *lane) partOf(limit int64) int64 {
	if l.rank == 0 {
		return limit
	}
	return limit - limit/10
}

// memory is one of the limits of what the pool may hold, for one thing more of the
// lane.
func (l *lane) memory(name string, scope Scope, capacity, used int64) Limit {
	return Limit{Name: name, Scope: scope, Capacity: capacity, Used: used, Asked: 1, Reserve: capacity - l.partOf(capacity)}
}

// full says whether nothing is left of the limit for what is asked.
func (l *Limit) full() bool { return l.Used+l.Asked > l.Capacity-l.Reserve }

// configureLimits keeps what is used of limits.new_tenants_per_second.
func (s *State) configureLimits(p *pool, cfg *PoolPolicy) {
	was := p.newcomers
	p.limits = cfg.Limits.withDefaults()
	rate := p.limits.NewTenantsPerSecond
	p.newcomers = &bucketSpec{name: "limits.new_tenants_per_second", capacity: rate, refill: rate, period: time.Second}
	if was != nil {
		p.newTenants.reshape(was, p.newcomers, s.t)
	}
}

// closedDoor is a limit that keeps a new tenant out.
type closedDoor struct {
	limit Limit
	// opensAt is when time alone will have opened it, or never.
	opensAt Instant
}

// closedTo returns the limits that keep the tenant out of the pool, asking for the
// lane. One that is resident, or that the pool has a word of, is in; one that is spare
// needs a place, but is not new.
func (t *tenant) closedTo(l *lane, now Instant) []closedDoor { return t.closedBeside(0, l, now) }

// closedBeside is closedTo beside so many others that come in as well.
func (t *tenant) closedBeside(others int64, l *lane, now Instant) (doors []closedDoor) {
	p := t.pool
	if t.resident() || !t.strange() {
		return nil
	}
	if p.strangers+others >= l.partOf(p.limits.Tenants) {
		doors = append(doors, closedDoor{l.memory("limits.tenants", ScopePool, p.limits.Tenants, p.strangers+others), never})
	}
	if t.known() {
		return doors
	}
	spec, b := p.newcomers, p.newTenants.settled(p.newcomers, now)
	limit := l.memory(spec.name, ScopePool, spec.capacity, b.used+others)
	if b.refusal(spec, 1+others, limit.Reserve, Cardinality, now) != ReasonNone {
		doors = append(doors, closedDoor{limit, b.readyAt(spec, 1+others, limit.Reserve)})
	}
	return doors
}

// returnsAt returns when the pool lets the tenant in that asks again at that moment.
// One that is idle needs a place again by then: where there are too many already that
// is not foretold. After its spareTime it is forgotten, and new.
func (t *tenant) returnsAt(l *lane, at Instant) Instant {
	if at == never || !t.known() || !t.strange() || t.row.idleAt == 0 || t.row.idleAt > at || t.ahead() {
		return at
	}
	others := t.pool.strangers
	if t.resident() {
		others--
	}
	if others >= l.partOf(t.pool.limits.Tenants) {
		return never
	}
	if at.Sub(t.row.idleAt) < spareTime {
		return at
	}
	spec := t.pool.newcomers
	return max(at, t.pool.newTenants.readyAt(spec, 1, spec.capacity-l.partOf(spec.capacity)))
}

// mayRegister says whether the pool's limits let the tenant in.
func (t *tenant) mayRegister(l *lane, now Instant) bool { return len(t.closedTo(l, now)) == 0 }

// mayEnter says whether an entry of that moment would let the tenant in: it would
// find idle ones first.
func (t *tenant) mayEnter(l *lane, at Instant) bool {
	doors := t.closedTo(l, at)
	crowded := len(doors) == 1 && doors[0].opensAt == never
	return len(doors) == 0 || crowded && t.pool.idleBy(at)
}

// admitNewcomer counts a tenant of which the pool has no word as new.
func (s *State) admitNewcomer(t *tenant) {
	if t.strange() {
		t.pool.newTenants.settle(t.pool.newcomers, s.t)
		t.pool.newTenants.take(1)
	}
}
