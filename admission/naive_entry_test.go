package admission_test

import (
	"hash/fnv"
	"time"

	"github.com/admitd/admit/admission"
)

// naiveEntry is an entry of the due-work index.
type naiveEntry struct {
	tenant string
	spec   admission.EntrySpec // as last given
	lane   string
	retry  admission.RetryPolicy

	due, first admission.Wall
	seq        uint64
	waits      bool // for a retry, until it is promoted
	attempts   int32
	unstarted  int
	claim      *naivePermit
	history    []admission.Attempt // the latest that failed
	letter     bool                // an occurrence that died
	occurrence uint64              // its place in line then

	dead     bool
	death    uint64 // its place among the dead
	diedAt   admission.Wall
	buriedAt admission.Instant
	redriven bool
	cameDue  admission.Wall // of one that was redriven

	// Of one that recurs.
	cadence *admission.CadencePolicy
	misses  int            // in a row
	left    int            // boundaries of the grid to deliver, this one included
	resume  admission.Wall // the boundary after those and after the skipped ones
}

// dueAt is when an entry, or this occurrence of it, first came due.
func (e *naiveEntry) dueAt() admission.Wall {
	if e.redriven {
		return e.cameDue
	}
	return e.first
}

func (e *naiveEntry) queued() bool { return e.claim == nil && !e.dead }

func (p *naivePool) entry(tenant, key string) *naiveEntry {
	for _, e := range p.entries {
		if e.tenant == tenant && e.spec.Key == key && !e.letter {
			return e
		}
	}
	return nil
}

func (n *naive) schedule(op *admission.Schedule) *admission.ScheduleResult {
	p := n.openPool(op.Pool)
	if p == nil {
		return &admission.ScheduleResult{Err: noPool(op.Pool)}
	}
	res := &admission.ScheduleResult{}
	for _, spec := range op.Entries {
		res.Entries = append(res.Entries, n.scheduleOne(p, spec))
	}
	return res
}

func (n *naive) scheduleOne(p *naivePool, spec admission.EntrySpec) admission.ScheduledEntry {
	old := p.entry(spec.Tenant, spec.Key)
	if old != nil && sameSpec(old.spec, spec) {
		return admission.ScheduledEntry{Status: admission.ScheduleUnchanged}
	}
	lane, err := p.laneOf(spec.Tenant, spec.Category)
	if err != nil {
		return admission.ScheduledEntry{Status: admission.ScheduleError, Err: err}
	}
	cadence, ok := p.cadence(spec.Cadence)
	if !ok {
		return admission.ScheduledEntry{
			Status: admission.ScheduleError, Err: noCadence(p.policy.Name, spec.Cadence),
		}
	}
	if old == nil {
		if reason := n.noRoom(p, spec.Tenant, lane); reason != admission.ReasonNone {
			return admission.ScheduledEntry{Status: admission.ScheduleShed, Reason: reason}
		}
	}
	e := &naiveEntry{tenant: spec.Tenant, spec: spec, lane: lane, retry: p.policy.Retry, due: spec.DueAt, cadence: cadence}
	e.retry.MaxAttempts = orElse(spec.MaxAttempts, e.retry.MaxAttempts)
	if spec.Relative {
		e.due = n.w.Add(spec.DueIn)
	}
	e.first = e.due
	n.seq++
	e.seq = n.seq
	status := admission.Scheduled
	if old != nil {
		n.drop(p, old)
		status = admission.ScheduleReplaced
	}
	p.entries = append(p.entries, e)
	n.refresh(p, e)
	n.meet(p, p.tenant(spec.Tenant))
	return admission.ScheduledEntry{Status: status}
}

// sameSpec says whether the fields that matter are equal.
func sameSpec(a, b admission.EntrySpec) bool {
	if a.Relative {
		a.DueAt = 0
	} else {
		a.DueIn = 0
	}
	if b.Relative {
		b.DueAt = 0
	} else {
		b.DueIn = 0
	}
	return a == b
}

func noCategory(pool, category string) *admission.Error {
	return &admission.Error{
		Reason: admission.UnknownCategory, Field: "category",
		Meta: []string{"pool", pool, "category", category},
	}
}

// noRoom says why a new entry of a tenant is one too many, if it is.
func (n *naive) noRoom(p *naivePool, tenant, lane string) admission.Reason {
	switch {
	case int64(len(p.entries)) >= p.part(lane, p.policy.Limits.Entries),
		p.entriesOf(tenant) >= p.part(lane, p.policy.Limits.EntriesPerTenant):
		return admission.QueueFull
	case n.full(p, tenant, lane):
		return admission.Cardinality
	}
	return admission.ReasonNone
}

// drop removes an entry; a claim on it is cancelled.
func (n *naive) drop(p *naivePool, e *naiveEntry) {
	if e.claim != nil {
		e.claim.cancelled = true
	}
	p.entries = deleteIf(p.entries, func(other *naiveEntry) bool { return other == e })
	if e.queued() {
		n.refresh(p, e)
	}
	n.touch(p, p.tenant(e.tenant))
}

func (n *naive) unschedule(op admission.Unschedule) *admission.UnscheduleResult {
	p := n.pool(op.Pool)
	if p == nil {
		return &admission.UnscheduleResult{Err: noPool(op.Pool)}
	}
	named := deleteIf(p.entries, func(e *naiveEntry) bool {
		return e.tenant != op.Tenant || e.spec.Key != op.Key || e.letter && e.dead
	})
	if len(named) == 0 {
		return &admission.UnscheduleResult{Err: &admission.Error{
			Reason: admission.EntryNotFound, Field: "key",
			Meta: []string{"pool", op.Pool, "tenant", op.Tenant, "key", op.Key},
		}}
	}
	res := &admission.UnscheduleResult{}
	for _, e := range named {
		res.WasClaimed = res.WasClaimed || e.claim != nil
		n.drop(p, e)
	}
	return res
}

// report ends a claim as its holder says.
func (n *naive) report(p *naivePool, e *naiveEntry, op *admission.Release) {
	switch op.Outcome {
	case admission.OutcomeThrottled:
		e.claim, e.waits = nil, e.due > e.first
		e.attempts--
	case admission.OutcomeNotStarted:
		if e.unstarted == 3 {
			n.fail(p, e, admission.OutcomeFailed, n.w)
			return
		}
		e.claim, e.waits = nil, e.due > e.first
		e.attempts--
		e.unstarted++
	case admission.OutcomeFailed, admission.OutcomeDead:
		n.fail(p, e, op.Outcome, n.w)
	default:
		if e.recurs() {
			n.recur(e, !op.Miss, n.w)
		} else {
			n.drop(p, e)
		}
	}
}

// naiveBackoff is base doubled for each attempt but the first, at most max: half
// of it fixed, half by a hash of key and attempt.
func naiveBackoff(retry admission.RetryPolicy, key string, attempt int32) time.Duration {
	d := retry.Base
	for range attempt - 1 {
		if d = min(2*d, retry.Max); d == retry.Max {
			break
		}
	}
	d = min(d, retry.Max)
	h := fnv.New64a()
	h.Write([]byte(key))
	h.Write([]byte{byte(attempt), byte(attempt >> 8), byte(attempt >> 16), byte(attempt >> 24)})
	return d/2 + time.Duration(h.Sum64()%uint64(d-d/2+1))
}
