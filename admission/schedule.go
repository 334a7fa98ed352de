package admission

// schedule upserts entries, each on its own.
func (s *State) schedule(op *Schedule) *ScheduleResult {
	p := s.pools.open(op.Pool)
	if p == nil {
		return &ScheduleResult{Err: poolNotFound(op.Pool)}
	}
	res := &ScheduleResult{Entries: make([]ScheduledEntry, len(op.Entries))}
	for i := range op.Entries {
		res.Entries[i] = s.scheduleOne(p, &op.Entries[i])
	}
	return res
}

func (s *State) scheduleOne(p *pool, spec *EntrySpec) ScheduledEntry {
	t := p.tenant(spec.Tenant)
	old := s.entry(t, spec.Key)
	if old != nil && old.sameAs(spec) {
		return ScheduledEntry{Status: ScheduleUnchanged}
	}
	lane, err := t.laneFor(spec.Category)
	if err != nil {
		return ScheduledEntry{Status: ScheduleError, Err: err}
	}
	recur, err := t.recurrenceFor(spec)
	if err != nil {
		return ScheduledEntry{Status: ScheduleError, Err: err}
	}
	status := Scheduled
	if old != nil {
		s.withdraw(old)
		status = ScheduleReplaced
	} else if why := s.entryRefusal(t, lane); why != ReasonNone {
		return ScheduledEntry{Status: ScheduleShed, Reason: why}
	}
	d := t.demand(lane)
	s.registerDemand(d)
	s.setIdle(t, 0, false)
	e := s.newEntry(d, spec)
	e.recur = recur
	s.insertEntry(e)
	s.enqueue(e)
	return ScheduledEntry{Status: status}
}

// newEntry resolves a spec. Lane and retry are those of this moment for good.
func (s *State) newEntry(d *demand, spec *EntrySpec) *entryRow {
	p := d.tenant.pool
	due := spec.DueAt
	if spec.Relative {
		due = s.w.Add(spec.DueIn)
	}
	attempts := spec.MaxAttempts
	if attempts == 0 {
		attempts = p.retry.MaxAttempts
	}
	s.seq++
	return &entryRow{
		version: s.version, state: entryQueued,
		relative: spec.Relative, given: spec.given(), givenAttempts: spec.MaxAttempts,
		maxAttempts: attempts, retry: p.retry,
		queue: s.queueOf(queueKey{d, spec.Route, spec.Group}),
		key:   spec.Key, category: spec.Category,
		due: due, first: due, seq: s.seq,
	}
}

// given is the due time or the delay as it was given.
func (spec *EntrySpec) given() int64 {
	if spec.Relative {
		return int64(spec.DueIn)
	}
	return int64(spec.DueAt)
}

// sameAs says whether the spec is what the entry was last scheduled with.
func (e *entryRow) sameAs(spec *EntrySpec) bool {
	return e.category == spec.Category && e.queue.route.name == spec.Route && e.queue.group == spec.Group &&
		e.sameRecurrence(spec) && e.relative == spec.Relative && e.given == spec.given() && e.givenAttempts == spec.MaxAttempts
}

// recurrenceFor resolves how the entry is to come back, nil if it is not.
func (t *tenant) recurrenceFor(spec *EntrySpec) (*recurrence, *Error) {
	switch {
	case spec.Every > 0:
		return &recurrence{every: spec.Every}, nil
	case spec.Cadence == "":
		return nil, nil
	}
	if c := t.pool.cadences[spec.Cadence]; c != nil {
		return &recurrence{cadence: c}, nil
	}
	return nil, unknownCadence(t.pool.name, spec.Cadence)
}

func (e *entryRow) sameRecurrence(spec *EntrySpec) bool {
	switch {
	case e.recur == nil:
		return spec.Every == 0 && spec.Cadence == ""
	case e.recur.cadence != nil:
		return e.recur.cadence.Name == spec.Cadence
	}
	return e.recur.every == spec.Every
}

// entryRefusal says why the tenant may have no further entry in the lane.
func (s *State) entryRefusal(t *tenant, l *lane) Reason {
	p := t.pool
	switch {
	case p.entries >= l.partOf(p.limits.Entries) || t.entries >= l.partOf(p.limits.EntriesPerTenant):
		return QueueFull
	case !t.mayRegister(l, s.t):
		return Cardinality
	}
	return ReasonNone
}

// laneFor returns the lane that the category means for the tenant, if the pool
// takes anything new of it.
func (t *tenant) laneFor(category string) (*lane, *Error) {
	if err := t.refused(); err != nil {
		return nil, err
	}
	if category == "" {
		return t.share.lane, nil
	}
	if l := t.pool.categories[category]; l != nil {
		return l, nil
	}
	return nil, unknownCategory(t.pool.name, category)
}

// withdraw takes an entry out of the index. A claim on it lives on as cancelled.
func (s *State) withdraw(e *entryRow) (wasClaimed bool) {
	switch e.state {
	case entryQueued:
		s.dequeue(e)
	case entryClaimed:
		s.cancel(e.claim)
		wasClaimed = true
	}
	s.removeEntry(e)
	return wasClaimed
}

// unschedule removes an entry, whatever its state, and what was redriven of its
// occurrences; those that are dead stay.
func (s *State) unschedule(op Unschedule) *UnscheduleResult {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return &UnscheduleResult{Err: poolNotFound(op.Pool)}
	}
	res, found := &UnscheduleResult{}, false
	for _, e := range s.occurrences(p.tenant(op.Tenant), op.Key) {
		if e.letter == 0 || e.state != entryDead {
			found = true
			res.WasClaimed = s.withdraw(e) || res.WasClaimed
		}
	}
	if !found {
		res.Err = entryNotFound(op.Pool, op.Tenant, op.Key)
	}
	return res
}
