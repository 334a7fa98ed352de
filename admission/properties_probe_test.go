package admission

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// probe runs a history and looks at it between entries.
func probe(t *testing.T, look func(t *rapid.T, h *history)) {
	n := NewTally()
	rapid.Check(t, func(t *rapid.T) {
		h := begin(t, n, policies.Draw(t, "policy"))
		t.Repeat(map[string]func(*rapid.T){
			"entry":        func(t *rapid.T) { h.apply(h.next(t, 6)) },
			"second entry": func(t *rapid.T) { h.apply(h.next(t, 6)) },
			"look":         func(t *rapid.T) { look(t, h) },
		})
	})
	n.Report(t)
}

// whatIf applies operations so much later to a copy of the state.
func (h *history) whatIf(t tester, d time.Duration, ops ...Op) (*State, []Result) {
	t.Helper()
	s := restored(t, h.State)
	return s, s.Apply(h.later(d, ops...))
}

// Whatever is refused, stale or repeated changes nothing: the state is that of the
// same entry without it [I6]. (With several pools, they are dispatched in the order
// in which the entry first asks of them, so that places in line, which are numbered
// over all pools, may be numbered otherwise. So may they after somebody looked in whose
// earlier try is in line.)
func TestRefusalsLeaveNoTrace(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		if len(h.policy.Pools) > 1 {
			return
		}
		e := h.next(t, 6)
		if toldTwice(e) {
			return
		}
		without := restored(t, h.State)
		results := h.apply(e)
		kept := e
		kept.Ops = nil
		for i, op := range e.Ops {
			if !refused(h, op, results[i]) || inLine(without, op) || inLine(h.State, op) {
				kept.Ops = append(kept.Ops, op)
			}
		}
		without.Apply(kept)
		sameRows(t, h.State, without)
	})
}

// inLine says whether the operation is an Acquire of which a try is in line.
func inLine(s *State, op Op) bool {
	a, ok := op.(*Acquire)
	if !ok || a.RequestID == "" || s.pools.byName(a.Pool) == nil {
		return false
	}
	return s.waitersByID.get(requestKey{s.pools.byName(a.Pool).num, a.Tenant, a.RequestID}) != nil
}

// toldTwice says whether two Acquires of the entry have one request id and a backlog
// is told with it: that of the second counts only in an entry without the first.
func toldTwice(e Entry) bool {
	seen := map[[3]string]int64{}
	for _, op := range e.Ops {
		a, ok := op.(*Acquire)
		if !ok || a.RequestID == "" {
			continue
		}
		key := [3]string{a.Pool, a.Tenant, a.RequestID}
		if _, before := seen[key]; before && (a.Backlog > 0 || seen[key] > 0) {
			return true
		}
		seen[key] = max(seen[key], a.Backlog)
	}
	return false
}

// refused says whether an operation's result promises that it changed nothing.
func refused(h *history, op Op, r Result) bool {
	switch r := r.(type) {
	case *PolicyResult:
		return !r.Changed
	case *PauseResult:
		return r.Err != nil
	case *AcquireResult:
		a := op.(*Acquire) // its backlog counts whatever was decided, and so does that it would wait
		noted := r.Err == nil && (a.Backlog > 0 || a.MaxWait > 0 && h.pools.byName(a.Pool).yields)
		return !noted && (r.Err != nil || r.Decision.Shed != nil || r.Decision.Replayed)
	case *NextDueResult:
		return r.Err != nil || r.Replayed
	case *TakeResult:
		return !changes(op.(*Take), r)
	case *LeaseShareResult:
		return r.Err != nil || r.Shed != nil
	case *RenewResult:
		for _, row := range r.Renewals {
			if row.Result == LeaseRenewed {
				return false
			}
		}
		return true
	case *ReleaseResult:
		return r.Err != nil || r.Result == LeaseLost || r.Result == LeaseAlreadyReleased
	case *ScheduleResult:
		for _, row := range r.Entries {
			if row.Status == Scheduled || row.Status == ScheduleReplaced {
				return false
			}
		}
		return true
	case *UnscheduleResult:
		return r.Err != nil
	case *ReportResult:
		return r.Err != nil
	}
	return false
}

// A decision without an entry says what an entry with that Acquire alone would.
// Decided ahead of the state, a grant is one too: time only frees; but whether
// enough is forgotten to remember one more, only an entry can tell. (A refusal
// ahead of the state may be out of date, for permits may expire till then.)
func TestDecideAgreesWithApply(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawAcquire(t)
		ahead := one(t, "ahead", 0, time.Millisecond, time.Second, time.Minute)
		decided := h.Decide(h.t.Add(ahead), op)
		_, results := h.whatIf(t, ahead, op)
		applied := results[0].(*AcquireResult)
		granted := !decided.Decision.Replayed && decided.Err == nil && decided.Decision.Shed == nil && h.lone(op)
		if shed := applied.Decision.Shed; granted && shed != nil && shed.Reason != Cardinality {
			t.Fatalf("decided a grant, applied %s", shed.Reason)
		}
		h.apply(h.later(ahead)) // time passes first, so that nothing is left for the entry to free
		if p := h.pools.byName(op.Pool); p != nil && p.yieldStale(h.w) {
			return // only an entry can tell
		}
		decided = h.Decide(h.t, op)
		_, results = h.whatIf(t, 0, op)
		applied = results[0].(*AcquireResult)
		want(t, "replayed", decided.Decision.Replayed, applied.Decision.Replayed)
		if !reflect.DeepEqual(decided.Err, applied.Err) || !reflect.DeepEqual(decided.Decision.Shed, applied.Decision.Shed) {
			t.Fatalf("%+v\ndecided: %+v %+v\napplied: %+v %+v", op, decided.Err, decided.Decision.Shed, applied.Err, applied.Decision.Shed)
		}
	})
}

// lone says whether an Acquire that does not wait is asked where nothing else takes
// what comes free.
func (h *history) lone(op *Acquire) bool {
	p := h.pools.byName(op.Pool)
	return op.MaxWait == 0 && (p == nil || p.quiet())
}

// quiet says whether time alone gives the pool's tokens and slots to nobody: nobody
// waits, no lane may begin to yield, and nobody is reported to want a slot once his
// tokens come.
func (p *pool) quiet() bool {
	quiet := p.waiting == 0 && !p.yields
	p.rates.Scan(func(next wakeup) bool {
		quiet = quiet && next.source != fromReports
		return quiet
	})
	return quiet
}

// A told retry_after comes true for a lone retry, and a millisecond earlier it
// would have been too early [I12]. What was told counts on the backlog that came with
// the ask.
func TestRetryAfterComesTrue(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawAcquire(t)
		if op.MaxWait, op.IssuedAt = 0, 0; !h.lone(op) {
			return
		}
		told, results := h.whatIf(t, 0, op)
		d := results[0].(*AcquireResult)
		if d.Err != nil || d.Decision.Shed == nil || d.Decision.Shed.RetryAfter == Absent {
			return
		}
		next := *h
		if next.State = told; !next.lone(op) {
			return // his backlog is demand now
		}
		after := d.Decision.Shed.RetryAfter
		_, results = next.whatIf(t, after, op)
		if shed := results[0].(*AcquireResult).Decision.Shed; shed != nil {
			t.Fatalf("%+v was told to retry after %s and then shed: %+v", op, after, shed)
		}
		_, results = next.whatIf(t, after-time.Millisecond, op)
		if results[0].(*AcquireResult).Decision.Shed == nil {
			t.Fatalf("%+v was told to retry after %s and could have a millisecond before", op, after)
		}
	})
}

// PollDelay may be early, never late: before its time a poll gets nothing, unless
// a permit expired till then, which is an event of its own.
func TestPollDelayIsNeverLate(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		poll := &NextDue{Pool: h.drawPoolName(t), MaxItems: 1}
		h.drawScope(t, poll)
		wait, ok := h.PollDelay(h.t, h.w, poll)
		if !ok {
			wait = time.Hour
		}
		if at, any := h.Deadline(); any {
			wait = min(wait, at.Sub(h.t))
		}
		if wait == 0 {
			return
		}
		early := wait - 1
		if rapid.Bool().Draw(t, "at once") {
			early = 0
		}
		_, results := h.whatIf(t, early, poll)
		if claims := results[0].(*NextDueResult).Claims; len(claims) > 0 {
			t.Fatalf("a poll was put off by %s (%t), but after %s it claims %+v", wait, ok, early, claims)
		}
	})
}

// Nothing is stranded: once nothing holds it, every entry that is not dead is
// claimed, whatever happened before [I5].
func TestNothingIsStranded(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		s := restored(t, h.State)
		open, ops := Policy{}, []Op(nil)
		for _, pool := range s.pools.list {
			p := s.present(pool) // with what drains
			open.Pools = append(open.Pools, PoolPolicy{Name: p.Name, Lanes: p.Lanes, Categories: p.Categories})
			lanes := open.Pools[len(open.Pools)-1].lanes()
			free := make([]LanePolicy, len(lanes))
			for i, l := range lanes {
				free[i].Name = l.Name
				ops = append(ops, Pause{Pool: p.Name, Kind: TargetLane, Name: l.Name, Resume: true})
			}
			open.Pools[len(open.Pools)-1].Lanes = free
			for _, tenant := range tenantNames {
				ops = append(ops, Pause{Pool: p.Name, Kind: TargetTenant, Name: tenant, Resume: true},
					&PutTenants{Pool: p.Name, Rows: []TenantPut{{Tenant: TenantPolicy{ID: tenant}, Remove: true}}})
				for _, group := range groupNames[2:] {
					ops = append(ops, Pause{Pool: p.Name, Kind: TargetGroup, Tenant: tenant, Name: group, Resume: true})
				}
			}
			ops = append(ops, &NextDue{Pool: p.Name, MaxItems: 1000})
		}
		e := h.later(time.Hour, append([]Op{ApplyPolicy{Policy: open, ExpectedRevision: AnyRevision}}, ops...)...)
		e.W = h.highest.Add(100 * time.Hour)
		s.Apply(e)
		check(t, s)
		s.entries.Scan(func(i entryItem) bool {
			if i.row.state == entryQueued {
				t.Errorf("entry %s of %s is still queued", i.row.key, i.row.demand().tenant.id)
			}
			return true
		})
	})
}
