package admission

// hear prepares an Acquire for dispatch. It returns nil when the answer needs
// none: an error, a replay, or a place in line that it has already.
func (s *State) hear(op *Acquire, now Instant) (*ask, *AcquireResult) {
	a := &ask{op: op}
	p := s.pools.byName(op.Pool)
	if p == nil {
		a.result.Err = poolNotFound(op.Pool)
		return nil, &a.result
	}
	if op.IssuedAt != 0 && s.w.Sub(op.IssuedAt) >= memoryWindow {
		a.result.Err = staleRequest()
		return nil, &a.result
	}
	t := p.tenant(op.Tenant)
	lane, err := t.laneFor(op.Category)
	if err != nil {
		a.result.Err = err
		return nil, &a.result
	}
	a.demand = t.demand(lane)
	if s.recall(a, now) {
		return nil, &a.result
	}
	return a, &a.result
}

// recall answers an ask whose request id was granted before or is in line.
func (s *State) recall(a *ask, now Instant) bool {
	d, id := a.demand, a.op.RequestID
	if id == "" {
		return false
	}
	if w := s.waitersByID.get(requestKey{d.tenant.pool.num, d.tenant.id, id}); w != nil {
		if w.digest != a.op.digest() {
			a.result.Err = requestMismatch()
		} else {
			a.result.Decision.Waiter = w.key
		}
		return true
	}
	seen, err := s.request(d.tenant.pool, a.op.Tenant, id, a.op.digest(), now)
	if err != nil {
		a.result.Err = err
		return true
	}
	if seen == nil {
		return false
	}
	a.result.Decision.Replayed = true
	a.result.Decision.Permit, a.result.Decision.Borrowed = s.presentState(seen, d, now)
	return true
}

// presentState returns the permit of a remembered Acquire as it is now.
func (s *State) presentState(seen *requestRow, d *demand, now Instant) (v Permit, borrowed bool) {
	v = Permit{
		Fence: seen.fence, State: PermitSpent,
		Pool: d.tenant.pool.name, Tenant: d.tenant.id, Lane: d.lane.name,
	}
	if len(seen.tokens) == 0 {
		return v, false
	}
	v.Token, v.State = seen.tokens[0], PermitLost
	if h := s.holder(v.Token); h.permit != nil {
		return s.view(h.permit, now), h.permit.borrowed
	}
	if s.released(v.Token) != nil {
		v.State = PermitReleased
	}
	return v, false
}

// answer grants the ask if everything lets it pass; else it waits if it may, and
// is shed if not.
func (d *dispatch) answer(a *ask) {
	if d.recall(a, d.t) { // by an earlier ask of this entry
		if w := d.waiter(a.result.Decision.Waiter); w != nil {
			d.comeBack(w, a.op, &a.result)
		}
		return
	}
	if !d.reserved && d.mayPass(a, d.t) {
		d.admit(a)
		return
	}
	x := d.explain(a, d.t, d.holder, d.reserved)
	switch {
	case a.demand.tenant.pool.shadow:
		d.letThrough(a, x.shed())
	case a.op.MaxWait > 0 && !x.final:
		d.await(a)
		if !d.reserved && x.onlyPoolTokens {
			d.reserved = true
			d.holder = position{demand: a.demand, source: d.waiter(a.result.Decision.Waiter).source()}
		}
	default:
		a.result.Decision.Shed = x.shed()
	}
}

// mayPass says whether the ask may be granted, nobody being before it.
func (s *State) mayPass(a *ask, now Instant) bool {
	return a.demand.tenant.mayRegister(a.demand.lane, now) && !a.forgets(now) && !a.jobsFull() && s.fits(a.demand, a.op.need(), now)
}

// final says whether waiting can't help: it is told at once, however long the
// caller would wait.
func (r Reason) final() bool { return r != ReasonNone && r != Paused && r <= BatchOnly }

// admit grants the ask.
func (s *State) admit(a *ask) {
	d, op := a.demand, a.op
	s.leaveOrders(d)
	p := s.grant(d, order{
		cost: op.Cost, ttl: op.TTL, nonce: op.Nonce, worker: op.WorkerID,
		lock: op.LockKey, job: op.DedupeKey, slotless: op.RateOnly, settle: op.Settle,
	})
	s.granted(p, op.RequestID, op.digest(), &a.result.Decision)
}

// granted notes a grant under its request id, and tells it.
func (s *State) granted(p *permitRow, id string, digest uint64, to *Decision) {
	t := p.demand.tenant
	if id != "" {
		r := &requestRow{pool: t.pool, tenant: t.id, id: id, digest: digest, fence: p.fence}
		if p.token != (Token{}) {
			r.tokens = []Token{p.token}
		}
		s.noteRequest(r)
	}
	to.Permit, to.Borrowed = s.view(p, s.t), p.borrowed
	s.reseatTenant(t)
}

// letThrough grants what a pool that only watches would have shed. It is charged
// nothing and counts in no cap.
func (s *State) letThrough(a *ask, shed *Shed) {
	d, op := a.demand, a.op
	a.result.Decision.WouldShed = shed
	if op.RateOnly || !d.tenant.mayRegister(d.lane, s.t) {
		a.result.Decision.Permit = Permit{
			Pool: op.Pool, Tenant: op.Tenant, Lane: d.lane.name, State: PermitSpent,
		}
		return
	}
	s.registerDemand(d)
	p := s.newPermit(d, order{cost: op.Cost, ttl: op.TTL, nonce: op.Nonce, worker: op.WorkerID})
	p.uncounted = true
	s.hold(p)
	id := op.RequestID
	if a.forgets(s.t) {
		id = ""
	}
	s.granted(p, id, op.digest(), &a.result.Decision)
}

// forgets says whether the ask has an id that the pool could not remember.
func (a *ask) forgets(now Instant) bool {
	return a.op.RequestID != "" && now < a.demand.tenant.pool.requestsFreeAt(a.demand.lane)
}

// Decide returns what the Acquire would get at an instant, changing nothing. A
// refusal is an answer: nothing needs to be logged for it. What would be granted,
// or would have to wait, is not refused.
func (s *State) Decide(at Instant, op *Acquire) *AcquireResult {
	at = max(at, s.t)
	a, res := s.hear(op, at)
	if a == nil {
		s.foresee(res, op, at)
		return res
	}
	t := a.demand.tenant
	if t.pool.shadow || t.pool.yieldStale(s.w.Add(at.Sub(s.t))) {
		return res
	}
	holder, reserved := s.reservation(t.pool, at)
	reserved = reserved && a.demand.passed(holder)
	room := t.mayEnter(a.demand.lane, at)
	if room && !reserved && !a.forgets(at) && !a.jobsFull() && s.fits(a.demand, op.need(), at) {
		return res
	}
	x := s.explain(a, at, holder, reserved)
	if op.MaxWait == 0 || x.final {
		res.Decision.Shed = x.shed()
	}
	return res
}
