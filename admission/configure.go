package admission

import "strconv"

// applyPolicy puts a policy into force. Identities outlive it: pools, lanes and
// buckets keep their state under their names.
func (s *State) applyPolicy(op ApplyPolicy) *PolicyResult {
	res := &PolicyResult{Revision: s.revision}
	if op.ExpectedRevision != AnyRevision && op.ExpectedRevision != s.revision {
		res.Err = revisionConflict(op.ExpectedRevision, s.revision)
		return res
	}
	if s.revision > 0 && s.policy.equal(op.Policy) {
		return res
	}
	if bad := op.Policy.Validate(); len(bad) > 0 {
		res.Err = &Error{Reason: PolicyInvalid, Field: "policy." + bad[0].Field, Message: bad[0].Message}
		return res
	}
	if res.Err = s.inUse(op.Policy); res.Err != nil {
		return res
	}
	s.revision++
	s.policy, s.appliedAt = op.Policy, s.w
	s.configure()
	res.Revision, res.Changed = s.revision, true
	return res
}

func revisionConflict(expected, actual int64) *Error {
	return &Error{
		Reason: RevisionConflict, Field: "expected_revision", Message: "the policy in force is another revision",
		Meta: []string{"expected", strconv.FormatInt(expected, 10), "actual", strconv.FormatInt(actual, 10)},
	}
}

// inUse says what of the state the policy would orphan.
func (s *State) inUse(next Policy) *Error {
	kept := map[string]*PoolPolicy{}
	for i := range next.Pools {
		kept[next.Pools[i].Name] = &next.Pools[i]
	}
	for _, p := range s.pools.list {
		cfg := kept[p.name]
		if cfg == nil {
			if n := p.use(); n != (use{}) {
				return inUse(p, "", "", n)
			}
			continue
		}
		lanes := map[string]bool{}
		for _, l := range cfg.lanes() {
			lanes[l.Name] = true
		}
		for _, l := range p.lanes {
			if n := l.use(); !lanes[l.name] && n != (use{}) {
				return inUse(p, "lane", l.name, n)
			}
		}
		for _, category := range sortedKeys(p.categories) {
			if _, ok := cfg.Categories[category]; !ok && p.categoryUse[category] > 0 {
				return inUse(p, "category", category, use{entries: p.categoryUse[category]})
			}
		}
	}
	return nil
}

// use is what stands in the way of removing something.
type use struct{ permits, waiters, entries int64 }

func (l *lane) use() use { return use{l.permits, l.waiters, l.entries} }

func (p *pool) use() (n use) {
	for _, l := range p.lanes {
		n.permits += l.permits
	}
	n.waiters, n.entries = p.waiting, p.entries
	return n
}

func inUse(p *pool, kind, name string, n use) *Error {
	meta := []string{
		"pool", p.name,
		"permits", strconv.FormatInt(n.permits, 10), "entries", strconv.FormatInt(n.entries, 10),
		"waiting", strconv.FormatInt(n.waiters, 10),
	}
	message := "pool " + p.name
	if kind != "" {
		meta = append(meta, kind, name)
		message = kind + " " + name + " of " + message
	}
	return &Error{
		Reason: InUse, Field: "policy", Meta: meta,
		Message: message + " is to go, but has " + meta[3] + " live permits, " + meta[5] + " entries and " + meta[7] + " waiting",
	}
}

// lanes returns the pool's lanes, highest first.
func (p *PoolPolicy) lanes() []LanePolicy {
	if len(p.Lanes) == 0 {
		return []LanePolicy{{Name: defaultLane}}
	}
	return p.Lanes
}

// configure makes the pools what the policy says.
func (s *State) configure() {
	old := s.pools.names
	s.pools.list, s.pools.names = nil, make(map[string]*pool, len(s.policy.Pools))
	for i := range s.policy.Pools {
		cfg := &s.policy.Pools[i]
		p := old[cfg.Name]
		if p == nil {
			s.pools.nums++
			p = newPool(cfg.Name, s.pools.nums)
		}
		delete(old, cfg.Name)
		s.pools.list = append(s.pools.list, p)
		s.pools.names[cfg.Name] = p
		s.configurePool(p, cfg)
	}
	for _, name := range sortedKeys(old) {
		s.dropPool(old[name])
	}
}

func (s *State) configurePool(p *pool, cfg *PoolPolicy) {
	retry := cfg.Retry.withDefaults()
	p.maxActive, p.retry, p.limits = cfg.MaxActive, &retry, cfg.Limits.withDefaults()
	p.permitTTL = firstOf(cfg.PermitTTL, defaultTTL)
	p.maxPause = firstOf(cfg.MaxPause, defaultMaxPause)
	p.lockMax, p.shadow = firstOf(cfg.LockMaxActive, 1), cfg.Shadow
	p.doneRetention = firstOf(cfg.DoneRetention, defaultDoneRetention)
	p.deadRetention = firstOf(cfg.DeadRetention, defaultDeadRetention)
	p.configureLanes(cfg)
	p.cadences = make(map[string]*CadencePolicy, len(cfg.Cadences))
	for _, c := range cfg.Cadences {
		c = c.withDefaults()
		p.cadences[c.Name] = &c
	}
	oldFairUse := p.fairUse
	s.configureBuckets(p, cfg)
	p.configureShares(cfg)
	s.reconfigureTenants(p, oldFairUse)
	s.reviewWaiters(p)
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

// configureBuckets keeps the state of buckets whose name and scope stay. One that
// charges another way is another bucket to the permits that are out.
func (s *State) configureBuckets(p *pool, cfg *PoolPolicy) {
	oldPool, oldFairUse := p.buckets, p.fairUse
	p.buckets, p.fairUse = nil, nil
	for i := range cfg.Buckets {
		spec := cfg.Buckets[i].spec()
		if spec.scope == ScopeTenant {
			spec.id = p.bucketID(spec, specNamed(oldFairUse, spec.name))
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
		spec.id = p.bucketID(spec, was)
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

func (p *pool) bucketID(spec, was *bucketSpec) uint32 {
	if was != nil && was.perPermit == spec.perPermit {
		return was.id
	}
	p.bucketIDs++
	return p.bucketIDs
}

func (b *BucketPolicy) spec() *bucketSpec {
	return &bucketSpec{
		name: b.Name, scope: b.Scope, capacity: b.Capacity, refill: b.Refill, period: b.Period,
		perPermit: b.PerPermit, blocked: b.Blocked, oneShot: b.OneShot,
	}
}

// configureShares resolves what each tenant gets.
func (p *pool) configureShares(cfg *PoolPolicy) {
	lowest := p.lanes[len(p.lanes)-1]
	p.defaults = p.share(&cfg.Defaults, &share{weight: 1, lane: lowest, buckets: p.fairUse})
	p.overrides = make(map[string]*share, len(cfg.Overrides))
	for i := range cfg.Overrides {
		p.overrides[cfg.Overrides[i].ID] = p.share(&cfg.Overrides[i], p.defaults)
	}
}

// share returns the base with what the tenant has of its own.
func (p *pool) share(t *TenantPolicy, base *share) *share {
	sh := *base
	sh.weight = firstOf(t.Weight, base.weight)
	sh.maxActive = firstOf(t.MaxActive, base.maxActive)
	if t.PreferredActive != nil {
		sh.preferred = *t.PreferredActive
	}
	if t.Lane != "" {
		sh.lane = p.lane(t.Lane)
	}
	if len(t.Buckets) > 0 {
		sh.buckets = make([]*bucketSpec, len(p.fairUse))
		for i, spec := range p.fairUse {
			sh.buckets[i] = spec.override(t.Buckets[spec.name])
		}
	}
	return &sh
}

func (b *bucketSpec) override(o BucketOverride) *bucketSpec {
	own := *b
	own.blocked = o.Blocked || b.blocked && o.Capacity == 0
	own.capacity = firstOf(o.Capacity, b.capacity)
	own.refill = firstOf(o.Refill, b.refill)
	own.period = firstOf(o.Period, b.period)
	return &own
}

// reconfigureTenants gives every known tenant its new share and carries its
// buckets over.
func (s *State) reconfigureTenants(p *pool, oldFairUse []*bucketSpec) {
	p.strangers = 0
	//unordered: each tenant is changed by itself, and seats are settled in order
	for _, t := range p.tenants {
		was := t.share
		t.share = p.shareOf(t.id)
		if t.strange() {
			p.strangers++
		}
		row := s.writeTenant(t)
		states := make([]bucketState, len(p.fairUse))
		for i, spec := range t.share.buckets {
			for j := range oldFairUse {
				if oldFairUse[j].name == spec.name {
					states[i] = row.buckets[j]
					states[i].reshape(was.buckets[j], spec, s.t)
				}
			}
		}
		row.buckets = states
		s.dropLanes(t)
		s.unsettleTenant(t)
		s.noteIdle(t)
	}
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
			s.reseat(d)
		}
		s.setLinger(d, 0)
		s.demands.Delete(d.row)
	}
	clear(t.demands[len(kept):])
	t.demands = kept
}

// dropPool forgets a pool that is not in use.
func (s *State) dropPool(p *pool) {
	//unordered: each tenant is forgotten by itself
	for _, t := range p.tenants {
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
