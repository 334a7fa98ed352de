package raftstore

import (
	"github.com/admitd/admit/admission"
)

// answer gives the callers of an entry of this term their answers, right after
// it was applied. The caller holds the read lock.
func (t *term) answer(st *admission.State, p *proposal, e admission.Entry, results []admission.Result) {
	at, _ := st.Now()
	for i, it := range p.items {
		result := results[i]
		if key := inLine(result); key != (admission.WaiterKey{}) {
			it.call.beginWait()
			t.waits.listen(key, it)
			continue
		}
		place := Place{Index: e.Index, Position: i}
		var parts []Place
		if it.whole != nil {
			if result = it.whole.add(it.offset, result.(*admission.ScheduleResult), place); result == nil {
				it.call.finish()
				continue
			}
			parts = it.whole.places
		}
		a := &it.call.answers[it.place]
		*a = Answer{Result: result, NextDueIn: admission.Absent, Place: place, Parts: parts}
		if n, ok := e.Ops[i].(*admission.NextDue); ok {
			a.NextDueIn = st.NextDueIn(n.Pool, e.W)
		}
		if k, ok := e.Ops[i].(*admission.Take); ok {
			a.Levels = st.TakeLevels(at, k)
		}
		a.Shedding = buildShedding(st, at, e.W, sheddingQuery(e.Ops[i], result, it), t.sheds)
		it.call.finish()
	}
}

// inLine returns the key of an Acquire that began to wait, or waits already.
func inLine(r admission.Result) admission.WaiterKey {
	if r, ok := r.(*admission.AcquireResult); ok && r.Err == nil {
		return r.Decision.Waiter
	}
	return admission.WaiterKey{}
}

// nothingHeld stands for the held rows of a tenant that has nothing to be held: the
// same to all of a pool.
const nothingHeld = -1

// buildShedding builds each of the sheddings that an entry's answers show once.
func buildShedding(
	st *admission.State, at admission.Instant, w admission.Wall, q admission.SheddingQuery,
	built map[admission.SheddingQuery]*admission.Shedding,
) *admission.Shedding {
	if q.Pool == "" {
		return nil
	}
	shown := q
	if q.Tenant != "" && !st.Wants(q.Pool, q.Tenant) {
		shown.Tenant, shown.HeldRows = "", nothingHeld
	}
	if s, ok := built[shown]; ok {
		return s
	}
	s := st.Shedding(at, w, q)
	built[shown] = &s
	return &s
}

// sheddingQuery returns what to show beside a result; no pool shows nothing.
func sheddingQuery(op admission.Op, result admission.Result, it *item) admission.SheddingQuery {
	switch r := result.(type) {
	case *admission.AcquireResult:
		a := op.(*admission.Acquire)
		return ifKnown(r.Err, admission.SheddingQuery{Pool: a.Pool, Tenant: a.Tenant})
	case *admission.ReportResult:
		d := op.(*admission.ReportDemand)
		return ifKnown(r.Err, admission.SheddingQuery{Pool: d.Pool, Tenant: d.Tenant})
	case *admission.NextDueResult:
		n := op.(*admission.NextDue)
		return ifKnown(r.Err, admission.SheddingQuery{Pool: n.Pool, HeldRows: it.heldRows, Call: r})
	case *admission.RenewResult:
		return admission.SheddingQuery{Pool: r.Pool, Tenant: r.Tenant}
	case *admission.ReleaseResult:
		return admission.SheddingQuery{Pool: r.Pool, Tenant: r.Tenant}
	case *admission.ScheduleResult:
		return ifKnown(r.Err, admission.SheddingQuery{Pool: it.flow.pool, Tenant: it.flow.tenant})
	}
	return admission.SheddingQuery{}
}

// ifKnown drops the query where the pool does not exist.
func ifKnown(err *admission.Error, q admission.SheddingQuery) admission.SheddingQuery {
	if err != nil && err.Reason == admission.PoolNotFound {
		return admission.SheddingQuery{}
	}
	return q
}

// add puts a part's results in their place. It returns the whole's result with
// the last part, before that nil.
func (w *wholeSchedule) add(offset int, part *admission.ScheduleResult, at Place) admission.Result {
	w.places = append(w.places, at)
	w.left--
	if part.Err != nil {
		w.failed++
		w.result.Err = part.Err
	} else {
		copy(w.result.Entries[offset:], part.Entries)
	}
	if w.left > 0 {
		return nil
	}
	if w.failed == w.parts {
		w.result.Entries = nil
		return &w.result
	}
	w.fillErrors()
	return &w.result
}

// fillErrors tells entries whose part had an error of it: the pool came or went
// between two parts.
func (w *wholeSchedule) fillErrors() {
	for i := range w.result.Entries {
		if e := &w.result.Entries[i]; e.Status == 0 {
			*e = admission.ScheduledEntry{Status: admission.ScheduleError, Err: w.result.Err}
		}
	}
	w.result.Err = nil
}
