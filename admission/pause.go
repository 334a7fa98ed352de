package admission

// pause holds a tenant, a lane, a POOL bucket or a group, or lets it go.
func (s *State) pause(op Pause) *PauseResult {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return &PauseResult{Err: poolNotFound(op.Pool)}
	}
	switch op.Kind {
	case TargetTenant:
		return &PauseResult{Err: s.pauseTenant(p.tenant(op.Name), !op.Resume)}
	case TargetGroup:
		return &PauseResult{Err: s.pauseGroup(p.tenant(op.Tenant), op.Name, !op.Resume)}
	case TargetLane:
		if l := p.lane(op.Name); l != nil {
			s.pauseLane(l, !op.Resume)
			return &PauseResult{}
		}
	case TargetBucket:
		if b := p.bucket(op.Name); b != nil {
			s.pauseBucket(b, !op.Resume)
			return &PauseResult{}
		}
	}
	return &PauseResult{Err: &Error{
		Reason: TargetNotFound, Message: "the pool has no such target", Meta: []string{"pool", op.Pool, "target", op.Name},
	}}
}

// introduce makes a tenant known that an operator names, as by a request in the top
// lane.
func (s *State) introduce(t *tenant) *Error {
	if t.resident() {
		return nil
	}
	if err := t.refused(); err != nil {
		return err
	}
	if doors := t.closedTo(t.pool.lanes[0], s.t); len(doors) > 0 {
		return limitReached(t.pool.name, doors[0].limit.Name, doors[0].limit.Capacity)
	}
	s.register(t)
	return nil
}

// pauseTenant pauses or resumes a tenant.
func (s *State) pauseTenant(t *tenant, on bool) *Error {
	if !t.resident() && !on {
		return t.refused()
	}
	if err := s.introduce(t); err != nil {
		return err
	}
	row := s.writeTenant(t)
	row.paused = on
	for i, spec := range t.share.buckets {
		if b := &row.buckets[i]; !on && b.paused(s.t) {
			b.settle(spec, s.t)
			b.resume(s.t)
		}
	}
	s.unsettleTenant(t)
	s.noteIdle(t)
	return nil
}

func (s *State) pauseLane(l *lane, on bool) {
	if l.paused == on {
		return
	}
	l.paused = on
	l.pool.wanting.Scan(func(w wish) bool {
		s.unsettleTenant(w.tenant)
		return true
	})
}

func (s *State) pauseBucket(b *poolBucket, on bool) {
	b.settle(b.bucketSpec, s.t)
	if on {
		b.pauseByHand()
	} else {
		b.resume(s.t)
	}
}

// bucket returns the POOL bucket of that name, or nil.
func (p *pool) bucket(name string) *poolBucket {
	for i := range p.buckets {
		if p.buckets[i].name == name {
			return &p.buckets[i]
		}
	}
	return nil
}
