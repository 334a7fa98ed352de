package admission

import "slices"

// A group is a set of entries of one tenant that can be paused together: one run,
// one campaign. What is replicated of it is that it is paused, known or not by an
// entry; its queues follow from the entries.

// groupKey finds the queues of a named group.
type groupKey struct {
	tenant *tenant
	name   string
}

// pausedGroup is the row of a group that is paused.
type pausedGroup struct {
	tenant *tenant
	name   string
}

func pausedGroupLess(a, b pausedGroup) bool {
	if a.tenant.num != b.tenant.num {
		return a.tenant.num < b.tenant.num
	}
	return a.name < b.name
}

// groupPaused says whether the tenant's group of that name is paused.
func (s *State) groupPaused(t *tenant, name string) bool {
	if t.pausedGroups == 0 {
		return false
	}
	_, ok := s.pausedGroups.Get(pausedGroup{t, name})
	return ok
}

// joinGroup enters a new queue among those of its group.
func (s *State) joinGroup(q *queue) {
	if q.group == "" {
		return
	}
	t := q.route.demand.tenant
	q.paused = s.groupPaused(t, q.group)
	key := groupKey{t, q.group}
	q.sibling = len(s.grouped.get(key))
	s.grouped.set(key, append(s.grouped.get(key), q))
}

// leaveGroup takes a queue out of those of its group.
func (s *State) leaveGroup(q *queue) {
	if q.group == "" {
		return
	}
	key := groupKey{q.route.demand.tenant, q.group}
	queues := s.grouped.get(key)
	last := len(queues) - 1
	queues[last].sibling = q.sibling
	queues[q.sibling], queues[last] = queues[last], nil
	if s.grouped.set(key, queues[:last]); last == 0 {
		s.grouped.drop(key)
	}
}

// pauseGroup holds a group of the tenant, or lets it go. The cost goes by the
// queues that the group has, not by its entries.
func (s *State) pauseGroup(t *tenant, name string, on bool) *Error {
	if s.groupPaused(t, name) == on {
		if t.resident() {
			return nil
		}
		return t.refused()
	}
	p := t.pool
	if on && p.pausedGroups >= p.limits.PausedGroups {
		return limitReached(p.name, "limits.paused_groups", p.limits.PausedGroups)
	}
	if err := s.introduce(t); err != nil {
		return err
	}
	if on {
		s.adoptPausedGroup(pausedGroup{t, name})
	} else {
		s.forgetPausedGroup(pausedGroup{t, name})
	}
	queues := slices.Clone(s.grouped.get(groupKey{t, name}))
	slices.SortFunc(queues, func(a, b *queue) int { return a.headed.compare(b.headed) })
	for _, q := range queues { // routes that have turns again come in this order
		s.setPaused(q, on)
	}
	s.noteIdle(t)
	return nil
}

func (s *State) adoptPausedGroup(g pausedGroup) {
	s.pausedGroups.Set(g)
	g.tenant.pausedGroups++
	g.tenant.pool.pausedGroups++
}

func (s *State) forgetPausedGroup(g pausedGroup) {
	s.pausedGroups.Delete(g)
	g.tenant.pausedGroups--
	g.tenant.pool.pausedGroups--
}

// forgetPausedGroups forgets those of a tenant that goes with its pool.
func (s *State) forgetPausedGroups(t *tenant) {
	var paused []pausedGroup
	s.pausedGroups.Ascend(pausedGroup{tenant: t}, func(g pausedGroup) bool {
		if g.tenant == t {
			paused = append(paused, g)
		}
		return g.tenant == t
	})
	for _, g := range paused {
		s.forgetPausedGroup(g)
	}
}

// setPaused moves a queue between what is served and what is held.
func (s *State) setPaused(q *queue, on bool) {
	if q.row == nil {
		q.paused = on
		return
	}
	n := q.ripe
	s.countDue(q, -n)
	s.retract(q)
	q.paused = on
	s.offer(q)
	s.countDue(q, n)
	s.unsettle(q.route.demand)
}
