package admission

import "time"

// EntryState is how an entry stands.
type EntryState struct {
	ListedEntry
	// DueIn is the time until it comes due, not positive once it is.
	DueIn time.Duration
	// Ahead counts the entries of its route before it, and RoutesAhead the routes of
	// its tenant in its lane whose turn comes before its own, maxRoutesAhead at most.
	// Both are 0 where it is not due, or its group is paused.
	Ahead       int64
	RoutesAhead int64
}

// maxRoutesAhead bounds the routes that are counted, and the groups of its own
// route whose entries are.
const maxRoutesAhead = 1000

// PermitInfo is how a permit stands.
type PermitInfo struct {
	Permit
	Entry  string
	Worker string
	Cost   int64
	// Borrowed says that it is beyond what the tenant is entitled to, Uncounted that
	// it holds no slot.
	Borrowed  bool
	Uncounted bool
}

func (s *State) explainEntry(e *Explanation, w Wall, q *ExplainQuery) *Error {
	p := s.pools.byName(q.Request.Pool)
	if p == nil {
		return poolNotFound(q.Request.Pool)
	}
	row := s.entry(p.tenant(q.Request.Tenant), q.Key)
	if row == nil {
		return entryNotFound(q.Request.Pool, q.Request.Tenant, q.Key)
	}
	d := row.demand()
	e.Entry = &EntryState{ListedEntry: row.listed(), DueIn: row.due.Sub(w)}
	switch row.state {
	case entryQueued:
		e.Entry.Ahead, e.Entry.RoutesAhead = s.turnOf(row)
		x := s.wholeExamination(e, d, oneEntry, fromEntries)
		if row.queue.paused {
			x.add(Paused, Limit{Name: "paused_group", Scope: ScopeTenant, Asked: 1}, never)
		}
		x.run()
		e.conclude(x)
		return nil
	case entryClaimed:
		e.Permit = s.permitInfo(s.claimOn(row), e.At)
	}
	e.describe(d)
	return nil
}

// turnOf tells what goes before a queued entry within its demand.
func (s *State) turnOf(e *entryRow) (entries, routes int64) {
	r := e.queue.route
	if e.queue.row == nil || e.queue.paused || e.delayed {
		return 0, 0
	}
	for _, q := range r.ready[:min(len(r.ready), maxRoutesAhead)] {
		entries += rank(s.line, spot{queue: q.num, at: e.place()}, spotLess) -
			rank(s.line, spot{queue: q.num, at: place{first: beginning}}, spotLess)
	}
	for at := r.demand.ring.front; at != r && routes < maxRoutesAhead; at = at.next {
		routes++
	}
	return entries, routes
}

func (s *State) explainPermit(e *Explanation, t Token) *Error {
	h := s.holder(t)
	if h.permit == nil {
		ended := s.released(t)
		if ended == nil {
			e.Permit = &PermitInfo{Permit: Permit{Token: t, State: PermitLost}}
			return nil
		}
		e.Pool, e.Tenant = ended.pool.name, ended.tenant
		e.Permit = &PermitInfo{Permit: Permit{Token: t, Pool: e.Pool, Tenant: e.Tenant, State: PermitReleased}}
		return nil
	}
	e.Permit = s.permitInfo(h, e.At)
	e.describe(h.permit.demand)
	return nil
}

// claimOn returns under what the entry is claimed.
func (s *State) claimOn(e *entryRow) holding {
	if part := s.part(e.claim); part != nil {
		return holding{s.permit(part.permit), part}
	}
	return holding{permit: s.permit(e.claim)}
}

func (s *State) permitInfo(h holding, now Instant) *PermitInfo {
	p := h.permit
	return &PermitInfo{
		Permit: s.viewOf(h, now), Entry: h.entry(), Worker: p.worker, Cost: p.cost,
		Borrowed: p.borrowed, Uncounted: p.uncounted,
	}
}
