package admission

// hear prepares an Acquire for dispatch. It returns nil when the answer needs
// none: an error, a replay, or a reason that no other grant can change.
func (s *State) hear(op *Acquire, now Instant) (*ask, *AcquireResult) {
	a := &ask{op: op}
	p := s.pools.byName(op.Pool)
	if p == nil {
		a.result.Err = poolNotFound(op.Pool)
		return nil, &a.result
	}
	t := p.tenant(op.Tenant)
	lane, err := t.laneFor(op.Category)
	if err != nil {
		a.result.Err = err
		return nil, &a.result
	}
	a.demand = t.demand(lane)
	if s.replay(a, now) {
		return nil, &a.result
	}
	return a, &a.result
}

// replay answers an ask whose request id was granted before.
func (s *State) replay(a *ask, now Instant) bool {
	d := a.demand
	if a.op.RequestID == "" {
		return false
	}
	seen, err := s.request(d.tenant.pool, a.op.Tenant, a.op.RequestID, a.op.digest(), now)
	if err != nil {
		a.result.Err = err
		return true
	}
	if seen == nil {
		return false
	}
	a.result.Decision.Replayed = true
	a.result.Decision.Permit = s.presentState(seen, d, now)
	return true
}

// presentState returns the permit of a remembered Acquire as it is now.
func (s *State) presentState(seen *requestRow, d *demand, now Instant) Permit {
	token := seen.tokens[0]
	if p := s.holder(token); p != nil {
		return s.view(p, now)
	}
	v := Permit{
		Token: token, Fence: seen.fence, State: PermitLost,
		Pool: d.tenant.pool.name, Tenant: d.tenant.id, Lane: d.lane.name,
	}
	if s.released(token) != nil {
		v.State = PermitReleased
	}
	return v
}

// answer grants the ask if everything lets it pass, and sheds it otherwise.
func (s *State) answer(a *ask) {
	if s.replay(a, s.t) { // by an earlier ask of this entry
		return
	}
	d := a.demand
	if !s.fits(d, a.op.Cost, s.t) || !d.tenant.mayRegister() || a.forgets(s.t) {
		a.result.Decision.Shed = s.explain(a, s.t)
		return
	}
	if d.row != nil {
		s.leaveSeat(d)
	}
	p := s.grant(d, order{cost: a.op.Cost, ttl: a.op.TTL, nonce: a.op.Nonce, worker: a.op.WorkerID})
	if a.op.RequestID != "" {
		s.noteRequest(&requestRow{
			pool: d.tenant.pool, tenant: d.tenant.id, id: a.op.RequestID, digest: a.op.digest(),
			tokens: []Token{p.token}, fence: p.fence,
		})
	}
	a.result.Decision.Permit = s.view(p, s.t)
	s.reseatTenant(d.tenant)
}

// forgets says whether the ask has an id that the pool could not remember.
func (a *ask) forgets(now Instant) bool {
	return a.op.RequestID != "" && a.demand.tenant.pool.requestsFull(now)
}

// fits says whether one permit of that cost may be granted to the demand now:
// slots, reserves, buckets, caps and pauses, all together.
func (s *State) fits(d *demand, cost int64, now Instant) bool {
	t := d.tenant
	if t.paused() || d.lane.paused || t.atCap() || !d.lane.roomFor(cost, now) {
		return false
	}
	why, _ := t.rateReason(cost, now)
	return why == ReasonNone
}

// Decide returns what the Acquire would get at an instant, changing nothing. A
// refusal is an answer: nothing needs to be logged for it.
func (s *State) Decide(at Instant, op *Acquire) *AcquireResult {
	at = max(at, s.t)
	a, res := s.hear(op, at)
	if a == nil {
		return res
	}
	t := a.demand.tenant
	// An entry of that moment would forget idle tenants first.
	room := t.mayRegister() || t.pool.idleBy(at)
	if !room || !s.fits(a.demand, op.Cost, at) || a.forgets(at) {
		res.Decision.Shed = s.explain(a, at)
	}
	return res
}
