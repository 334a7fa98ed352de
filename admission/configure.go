package admission

import (
	"slices"
	"strconv"
)

// applyPolicy puts a policy into force. Identities outlive it: pools, lanes and
// buckets keep their state under their names.
func (s *State) applyPolicy(op ApplyPolicy) *PolicyResult {
	res, left := s.tryPolicy(op)
	if res.Changed {
		s.supersede()
		s.revision, s.appliedAt = res.Revision, s.w
		s.policy, s.draining = op.Policy, left
		s.configure()
	}
	return res
}

// CheckPolicy returns what ApplyPolicy would, changing nothing.
func (s *State) CheckPolicy(op ApplyPolicy) *PolicyResult {
	res, _ := s.tryPolicy(op)
	return res
}

// tryPolicy returns what would come of the policy, and what would drain.
func (s *State) tryPolicy(op ApplyPolicy) (*PolicyResult, Policy) {
	res := &PolicyResult{Revision: s.revision}
	if op.ExpectedRevision != AnyRevision && op.ExpectedRevision != s.revision {
		res.Err = revisionConflict(op.ExpectedRevision, s.revision)
		return res, Policy{}
	}
	if s.revision > 0 && s.policy.equal(op.Policy) {
		return res, Policy{}
	}
	if bad := op.Policy.Validate(); len(bad) > 0 {
		res.Err = &Error{Reason: PolicyInvalid, Field: "policy." + bad[0].Field, Message: bad[0].Message}
		return res, Policy{}
	}
	left, draining := s.leftBy(&op.Policy)
	if res.Err = s.refusesToLeave(&op, left); res.Err != nil {
		return res, left
	}
	res.Revision, res.Changed, res.Draining = s.revision+1, true, draining
	return res, left
}

func revisionConflict(expected, actual int64) *Error {
	return &Error{
		Reason: RevisionConflict, Field: "expected_revision", Message: "the policy in force is another revision",
		Meta: []string{"expected", strconv.FormatInt(expected, 10), "actual", strconv.FormatInt(actual, 10)},
	}
}

// lanes returns the pool's lanes, highest first.
func (p *PoolPolicy) lanes() []LanePolicy {
	if len(p.Lanes) == 0 {
		return []LanePolicy{{Name: defaultLane}}
	}
	return p.Lanes
}

// configure makes the pools what the policy says, and keeps what drains.
func (s *State) configure() {
	old := s.pools.names
	s.pools.list, s.pools.names = nil, make(map[string]*pool, len(s.policy.Pools))
	for _, name := range s.poolNames() {
		p := old[name]
		if p == nil {
			s.pools.nums++
			p = newPool(name, s.pools.nums)
		}
		delete(old, name)
		s.addPool(p)
		s.configurePool(p)
	}
	for _, name := range sortedKeys(old) {
		s.dropPool(old[name])
	}
}

// poolNames are those of the policy, then those that drain as a whole.
func (s *State) poolNames() []string {
	var names []string
	for i := range s.policy.Pools {
		names = append(names, s.policy.Pools[i].Name)
	}
	for i := range s.draining.Pools {
		if name := s.draining.Pools[i].Name; s.policy.pool(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

func (s *State) addPool(p *pool) {
	s.pools.list = append(s.pools.list, p)
	s.pools.names[p.name] = p
}

// configurePool makes the pool what the policy says of it.
func (s *State) configurePool(p *pool) {
	own, cfg := s.policy.pool(p.name), s.present(p)
	p.draining, p.refuseUnknown = own == nil, cfg.RefuseUnknown
	retry := cfg.Retry.withDefaults()
	p.maxActive, p.retry = cfg.MaxActive, &retry
	s.configureLimits(p, cfg)
	p.permitTTL = firstOf(cfg.PermitTTL, defaultTTL)
	p.maxPause = firstOf(cfg.MaxPause, defaultMaxPause)
	p.lockMax, p.shadow = firstOf(cfg.LockMaxActive, 1), cfg.Shadow
	p.doneRetention = firstOf(cfg.DoneRetention, defaultDoneRetention)
	p.deadRetention = firstOf(cfg.DeadRetention, defaultDeadRetention)
	p.configureLanes(cfg)
	for _, l := range p.lanes {
		l.draining = own != nil && own.lane(l.name) == nil
	}
	p.cadences = make(map[string]*CadencePolicy, len(cfg.Cadences))
	for _, c := range cfg.Cadences {
		c = c.withDefaults()
		p.cadences[c.Name] = &c
	}
	oldFairUse := p.fairUse
	s.configureBuckets(p, cfg)
	p.configureShares(cfg)
	s.reconfigureTenants(p, oldFairUse)
	s.recountLent(p)
	//unordered: each lock lets in its own
	for _, l := range p.locks.rows {
		s.relock(l)
	}
	s.reviewWaiters(p.waiting, func(t *tenant) bool { return t.pool == p })
}

func (p *pool) configureLanes(cfg *PoolPolicy) {
	lanes := make([]*lane, 0, len(cfg.lanes()))
	p.yields = false
	for rank, lc := range cfg.lanes() {
		l := p.lane(lc.Name)
		if l == nil {
			l = newLane(p, lc.Name)
		}
		l.rank, l.leaveSlots, l.cycleLimit, l.batch = rank, lc.LeaveSlots, lc.TenantCycleLimit, lc.Batch
		l.setYield(lc.Yield)
		p.yields = p.yields || l.yield != nil
		l.leaveTokens = l.leaveTokens[:0]
		for _, b := range cfg.Buckets {
			if b.Scope == ScopePool {
				leave := lc.LeaveTokens[b.Name]
				if rank > 0 {
					leave = max(leave, lanes[rank-1].leaveTokens[len(l.leaveTokens)])
				}
				l.leaveTokens = append(l.leaveTokens, leave)
			}
		}
		lanes = append(lanes, l)
	}
	p.lanes = lanes
	p.categories = make(map[string]*lane, len(cfg.Categories))
	for _, category := range sortedKeys(cfg.Categories) {
		p.categories[category] = p.lane(cfg.Categories[category])
	}
}

// configureBuckets keeps the state of buckets whose name and scope stay.
func (s *State) configureBuckets(p *pool, cfg *PoolPolicy) {
	oldPool, oldFairUse := p.buckets, p.fairUse
	p.buckets, p.fairUse = nil, nil
	for i := range cfg.Buckets {
		spec := cfg.Buckets[i].spec()
		if spec.scope == ScopeTenant {
			spec.charging = p.charging(spec, specNamed(oldFairUse, spec.name))
			p.fairUse = append(p.fairUse, spec)
			continue
		}
		b := poolBucket{bucketSpec: spec}
		var was *bucketSpec
		for j := range oldPool {
			if oldPool[j].name == spec.name {
				was, b.bucketState = oldPool[j].bucketSpec, oldPool[j].bucketState
				b.reshape(was, spec, s.t)
			}
		}
		spec.charging = p.charging(spec, was)
		p.buckets = append(p.buckets, b)
	}
}

func specNamed(specs []*bucketSpec, name string) *bucketSpec {
	for _, spec := range specs {
		if spec.name == name {
			return spec
		}
	}
	return nil
}

func (b *BucketPolicy) spec() *bucketSpec {
	spec := &bucketSpec{
		name: b.Name, scope: b.Scope, capacity: b.Capacity, refill: b.Refill, period: b.Period,
		perPermit: b.PerPermit, blocked: b.Blocked, oneShot: b.OneShot,
	}
	if b.Share.Max > 0 {
		terms := b.Share.withDefaults()
		spec.shared = &terms
	}
	return spec
}

// configureShares resolves what each tenant gets.
func (p *pool) configureShares(cfg *PoolPolicy) {
	var lowest *lane
	for _, l := range p.lanes {
		if !l.draining {
			lowest = l
		}
	}
	p.defaults = p.share(&cfg.Defaults, &share{weight: 1, lane: lowest, buckets: p.fairUse}, FromDefault)
	p.overrides = make(map[string]*share, len(cfg.Overrides))
	p.overridden = p.overridden[:0]
	for i := range cfg.Overrides {
		p.overrides[cfg.Overrides[i].ID] = p.share(&cfg.Overrides[i], p.defaults, FromPolicy)
		p.overridden = append(p.overridden, cfg.Overrides[i].ID)
	}
	slices.Sort(p.overridden)
}

// reconfigureTenants gives every known tenant its new share and carries its
// buckets over.
func (s *State) reconfigureTenants(p *pool, oldFairUse []*bucketSpec) {
	//unordered: each tenant is changed by itself, and seats are settled in order
	for _, t := range p.tenants.rows {
		s.dropLanes(t)
		s.reshare(t, oldFairUse)
	}
}

// reshare gives a known tenant the share that it has now. oldFairUse are the
// TENANT buckets that its present ones stand for.
func (s *State) reshare(t *tenant, oldFairUse []*bucketSpec) {
	was, debt := t.share, t.debt()
	s.setIdle(t, 0, false)
	t.pool.countStranger(t, -1)
	t.share = t.pool.shareOf(t.id)
	t.pool.countStranger(t, 1)
	t.pool.debt += t.debt() - debt
	row := s.writeTenant(t)
	states := make([]bucketState, len(t.pool.fairUse))
	for i, spec := range t.share.buckets {
		for j := range oldFairUse {
			if oldFairUse[j].name == spec.name {
				states[i] = row.buckets[j]
				states[i].reshape(was.buckets[j], spec, s.t)
			}
		}
	}
	row.buckets = states
	s.unsettleTenant(t)
	s.noteIdle(t)
}

// dropLanes forgets the tenant's demands in lanes that are gone.
func (s *State) dropLanes(t *tenant) {
	kept := t.demands[:0]
	for _, d := range t.demands {
		if t.pool.lane(d.lane.name) == d.lane {
			kept = append(kept, d)
			continue
		}
		if d.row.reported != 0 {
			s.setReport(d, 0, 0)
		}
		s.reseat(d)
		s.setLinger(d, 0)
		s.forgetDemand(d)
	}
	clear(t.demands[len(kept):])
	t.demands = kept
}

// dropPool forgets a pool that is not in use.
func (s *State) dropPool(p *pool) {
	//unordered: each row is dropped by itself
	for _, row := range p.puts {
		s.dropPut(row)
	}
	//unordered: each tenant is forgotten by itself
	for _, t := range p.tenants.rows {
		s.forget(t)
	}
	for p.ended.len() > 0 {
		s.forgetEnded(p)
	}
	for p.requests.len() > 0 {
		s.requests.Delete(p.requests.pop().item())
	}
	for p.dones.len() > 0 {
		s.dropDone(p.dones.pop())
	}
}
