package admission

import (
	"slices"
	"strconv"
)

// What the policy has no more and is in use still drains: it takes nothing new,
// finishes what it has, and is gone when it is empty. Until then it stands in
// State.draining, as the policy last had it: a pool with all that is its own, a
// lane in a pool of the same name and nothing else.

// open returns the pool of that name if it takes new work, or nil.
func (r *registry) open(name string) *pool {
	if p := r.byName(name); p != nil && !p.draining {
		return p
	}
	return nil
}

// pool returns the policy's pool of that name, or nil.
func (p *Policy) pool(name string) *PoolPolicy {
	if i := slices.IndexFunc(p.Pools, func(q PoolPolicy) bool { return q.Name == name }); i >= 0 {
		return &p.Pools[i]
	}
	return nil
}

// lane returns the pool's lane of that name, or nil.
func (p *PoolPolicy) lane(name string) *LanePolicy {
	lanes := p.lanes()
	if i := slices.IndexFunc(lanes, func(l LanePolicy) bool { return l.Name == name }); i >= 0 {
		return &lanes[i]
	}
	return nil
}

// leftBy returns what is in use and not in the next policy, as the pools that
// drain and as what to tell of them.
func (s *State) leftBy(next *Policy) (left Policy, told []Draining) {
	for _, p := range s.pools.list {
		cfg := next.pool(p.name)
		if cfg == nil {
			if n := p.use(); n != (use{}) {
				left.Pools = append(left.Pools, *s.present(p))
				told = append(told, n.draining(p.name, ""))
			}
			continue
		}
		gone := PoolPolicy{Name: p.name}
		for _, l := range p.lanes {
			if n := l.use(); cfg.lane(l.name) == nil && n != (use{}) {
				gone.Lanes = append(gone.Lanes, *s.present(p).lane(l.name))
				told = append(told, n.draining(p.name, l.name))
			}
		}
		if len(gone.Lanes) > 0 {
			left.Pools = append(left.Pools, gone)
		}
	}
	return left, told
}

// present returns what a pool is configured by: the policy, with the lanes that
// drain below all others. A pool that drains as a whole is no more in the policy.
func (s *State) present(p *pool) *PoolPolicy {
	cfg, left := s.policy.pool(p.name), s.draining.pool(p.name)
	switch {
	case cfg == nil:
		return left
	case left == nil:
		return cfg
	}
	both := *cfg
	both.Lanes = slices.Clone(cfg.lanes())
	for _, l := range left.Lanes {
		both.Lanes = append(both.Lanes, l.within(cfg))
	}
	return &both
}

// within returns the lane with no more to leave than a pool has: a lane that may
// never be served would never be empty.
func (l LanePolicy) within(p *PoolPolicy) LanePolicy {
	l.LeaveSlots = max(0, min(l.LeaveSlots, p.MaxActive-1))
	leave := map[string]int64{}
	for _, b := range p.Buckets {
		if n := min(l.LeaveTokens[b.Name], b.Capacity-1); n > 0 {
			leave[b.Name] = n
		}
	}
	l.LeaveTokens = leave
	return l
}

// finishDrains drops the pools and lanes that have nothing left to finish.
func (s *State) finishDrains() {
	if !s.drained() {
		return
	}
	s.draining, _ = s.leftBy(&s.policy)
	s.configure()
}

// drained says whether anything that drains is empty.
func (s *State) drained() bool {
	for i := range s.draining.Pools {
		p := s.pools.byName(s.draining.Pools[i].Name)
		if p.draining && p.use() == (use{}) {
			return true
		}
		for _, l := range p.lanes {
			if l.draining && l.use() == (use{}) {
				return true
			}
		}
	}
	return false
}

// refusesToLeave says why a policy may not leave behind what it does: it is in
// use and not to drain, or too much would drain at once.
func (s *State) refusesToLeave(op *ApplyPolicy, left Policy) *Error {
	for i := range left.Pools {
		p := s.pools.byName(left.Pools[i].Name)
		if op.Policy.pool(p.name) == nil {
			if !p.draining && !op.Drain || len(left.Pools) > MaxPools {
				return inUse(p, "", "", p.use())
			}
			continue
		}
		for _, lc := range left.Pools[i].Lanes {
			if l := p.lane(lc.Name); !l.draining && !op.Drain || len(left.Pools[i].Lanes) > MaxLanes {
				return inUse(p, "lane", l.name, l.use())
			}
		}
	}
	if op.Drain {
		return nil // entries keep the lane that their category meant
	}
	for _, p := range s.pools.list {
		cfg := op.Policy.pool(p.name)
		for _, category := range sortedKeys(p.categories) {
			if cfg != nil && cfg.Categories[category] == "" && p.categoryUse[category] > 0 {
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

func (n use) draining(pool, lane string) Draining {
	return Draining{Pool: pool, Lane: lane, Permits: n.permits, Entries: n.entries, Waiting: n.waiters}
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
