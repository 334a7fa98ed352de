package admission

import "time"

// renew extends permits, each on its own.
func (s *State) renew(op *Renew) *RenewResult {
	res := &RenewResult{Renewals: make([]Renewal, len(op.Tokens))}
	for i, token := range op.Tokens {
		h := s.holder(token)
		res.Renewals[i] = s.renewOne(h, token, op.TTL)
		if res.Pool == "" {
			res.Pool, res.Tenant = s.whose(h.permit, token)
		}
	}
	return res
}

// renewOne extends one permit: of a batch, with whichever part is named. A share is never
// extended: tokens that are held do not refill.
func (s *State) renewOne(h holding, token Token, ttl time.Duration) Renewal {
	p := h.permit
	switch {
	case p == nil && s.released(token) != nil:
		return Renewal{Result: LeaseAlreadyReleased}
	case p == nil || p.expires <= s.lease():
		return Renewal{Result: LeaseLost}
	case h.cancelled() || p.wanted > 0:
		return Renewal{Result: LeaseCancelled}
	}
	if ttl == 0 {
		ttl = p.ttl
	}
	if until := s.lease().Add(ttl); until > p.expires {
		s.removeExpiry(p)
		p = s.writePermit(p)
		p.expires = until
		s.addExpiry(p)
	}
	return Renewal{Result: LeaseRenewed, ExpiresIn: p.expires.Sub(s.lease())}
}

// whose returns the pool and the tenant of a permit that is live or was released.
func (s *State) whose(p *permitRow, token Token) (pool, tenant string) {
	if p != nil {
		return p.demand.tenant.pool.name, p.demand.tenant.id
	}
	if e := s.released(token); e != nil {
		return e.pool.name, e.tenant
	}
	return "", ""
}

// release gives a permit back: its tokens are settled, a refusing provider's
// bucket pauses, its entry goes on as the outcome says, and its slot is free.
func (s *State) release(op *Release) *ReleaseResult {
	h := s.holder(op.Token)
	p := h.permit
	res := &ReleaseResult{Result: LeaseLost}
	res.Pool, res.Tenant = s.whose(p, op.Token)
	if p == nil {
		if s.released(op.Token) != nil {
			res.Result = LeaseAlreadyReleased
		}
		return res
	}
	if op.Outcome == OutcomeThrottled {
		if res.Err = s.throttle(p, op); res.Err != nil {
			return res
		}
	}
	s.lapse(p)
	if op.ActualCost != Absent {
		s.settleCost(p, op.ActualCost)
	}
	res.Result = LeaseReleased
	if h.cancelled() {
		res.Result = LeaseCancelled
	} else if h.entry() != "" {
		s.finish(h, op.Outcome, !op.Miss, s.w)
	}
	s.letGo(h, res.Result == LeaseReleased && op.Outcome == OutcomeDone)
	s.remember(h)
	return res
}

// MaxExpiries bounds the permits that end by themselves in one log entry; the
// next goes on. Until then they still count, which only admits less.
const MaxExpiries = 1000

// expire ends permits whose time is up, oldest first. The attempt is spent; what
// comes of the entry counts from when the permit ended.
func (s *State) expire(p *pool, budget int) int {
	for budget > 0 {
		next, ok := p.expiries.Min()
		if !ok || next.at > s.lease() {
			break
		}
		budget -= s.end(s.permit(next.permit))
	}
	return budget
}

// settleCost corrects an estimate in the COST buckets that charged it.
func (s *State) settleCost(p *permitRow, actual int64) {
	s.eachCharged(p, func(spec *bucketSpec, b *bucketState, perPermit bool) {
		if perPermit {
			return
		}
		b.settle(spec, s.t)
		if actual <= p.cost {
			b.giveBack(p.cost - actual)
		} else {
			b.overspend(spec, actual-p.cost)
		}
	})
}

// throttle pauses the bucket whose provider refused.
func (s *State) throttle(p *permitRow, op *Release) *Error {
	found := false
	pool := p.demand.tenant.pool
	lone := op.Bucket == "" && len(pool.buckets) == 1
	s.eachCharged(p, func(spec *bucketSpec, b *bucketState, _ bool) {
		if spec.name == op.Bucket || lone && spec.scope == ScopePool {
			b.settle(spec, s.t)
			b.throttle(spec, s.t, op.RetryAfter, pool.maxPause)
			found = true
		}
	})
	switch {
	case found:
		return nil
	case op.Bucket == "":
		return &Error{Reason: InvalidField, Field: "bucket", Message: "must be named: the pool does not have exactly one POOL bucket that the permit charged"}
	}
	return &Error{Reason: InvalidField, Field: "bucket", Message: "is not a bucket that the permit charged"}
}

// eachCharged calls fn for every bucket that charged the permit and still is, with
// whether that charged 1 whatever the cost.
func (s *State) eachCharged(p *permitRow, fn func(spec *bucketSpec, b *bucketState, perPermit bool)) {
	t := p.demand.tenant
	for i := range t.pool.buckets {
		b := &t.pool.buckets[i]
		if perPermit, ok := b.charged(p); ok {
			fn(b.bucketSpec, &b.bucketState, perPermit)
		}
	}
	if len(t.share.buckets) == 0 {
		return
	}
	row := s.writeTenant(t)
	for i, spec := range t.share.buckets {
		if perPermit, ok := spec.charged(p); ok {
			fn(spec, &row.buckets[i], perPermit)
		}
	}
}
