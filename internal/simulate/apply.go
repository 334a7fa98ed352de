package simulate

import (
	"cmp"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// call is an operation with whom its answer is for.
type call struct {
	op     admission.Op
	job    *job    // of an Acquire
	worker *worker // of a NextDue
	// woken says that the core was asked before and promised claims.
	woken bool
	// then is told the result, of what is no worker's.
	then func(admission.Result)
}

// grant is a permit that an entry gave out.
type grant struct {
	permit admission.Permit
	job    *job
	worker *worker
	want   *want
	// call is the poll that claimed it, or nil.
	call     *call
	borrowed bool
}

// takes says whether a poll takes work of the lane.
func (c *call) takes(lane string) bool {
	op, ok := c.op.(*admission.NextDue)
	return ok && (len(op.Lanes) == 0 || slices.Contains(op.Lanes, lane))
}

// log makes the operations one log entry.
func (r *run) log(ops ...admission.Op) []admission.Result {
	r.index++
	r.counts.applies++
	return r.state.Apply(admission.Entry{Index: r.index, T: r.now, W: r.wall(), Ops: ops})
}

// apply makes the calls one log entry, with the parked polls that it may serve,
// and books what came of it: what was given back and what expired, then the
// grants in the order in which they were made, then the refusals. A call without
// an operation of its own is a tick.
func (r *run) apply(calls ...call) {
	calls = append(calls, r.attached(calls)...)
	ops := make([]admission.Op, len(calls))
	for i := range calls {
		ops[i] = calls[i].op
	}
	results := r.log(ops...)
	for i := range calls {
		r.settle(&calls[i], results[i])
	}
	for _, l := range r.ledgers {
		l.expire()
		l.unpinch()
	}
	ended := r.waitsEnded()
	grants := r.grants(calls, results, ended)
	for _, g := range grants {
		r.book(g)
	}
	r.look()
	for _, l := range r.ledgers {
		r.reclaimed(l, grants)
	}
	for i := range calls {
		r.conclude(&calls[i], results[i])
	}
	for _, end := range ended {
		r.gaveUpWaiting(end)
	}
	r.wake()
	for _, l := range r.ledgers {
		l.measure()
	}
}

// settle books what was given back and what came due, before the grants.
func (r *run) settle(c *call, result admission.Result) {
	if c.then != nil {
		return
	}
	switch op := c.op.(type) {
	case *admission.Release:
		r.returned(c.job, op, result.(*admission.ReleaseResult))
	case *admission.Schedule:
		r.scheduled(op, result.(*admission.ScheduleResult))
	case *admission.Renew:
		r.renewed(c.job, result.(*admission.RenewResult))
	}
}

// grants returns what the entry granted, in the order in which it was.
func (r *run) grants(calls []call, results []admission.Result, ended []waitEnd) []*grant {
	var grants []*grant
	for i := range calls {
		c := &calls[i]
		if c.then != nil {
			continue
		}
		switch res := results[i].(type) {
		case *admission.AcquireResult:
			if res.Err == nil && res.Decision.Granted() {
				grants = append(grants, &grant{permit: res.Decision.Permit, job: c.job})
			}
		case *admission.NextDueResult:
			l := r.ledger(c.op.(*admission.NextDue).Pool)
			for k := range res.Claims {
				claim := &res.Claims[k]
				grants = append(grants, &grant{permit: claim.Permit, job: l.jobs[claim.Key], worker: c.worker, call: c})
			}
		}
	}
	for _, end := range ended {
		if end.decision.Granted() {
			grants = append(grants, &grant{permit: end.decision.Permit, job: end.job})
		}
	}
	slices.SortFunc(grants, func(a, b *grant) int { return cmp.Compare(a.permit.Fence, b.permit.Fence) })
	return grants
}

// book books a grant and starts its work.
func (r *run) book(g *grant) {
	j := g.job
	l := j.source.lane.ledger
	w := j.source.want
	g.want = w
	g.borrowed = !w.entitled()
	if w.in != nil {
		w.in.book(w)
	}
	r.spend(g)
	switch {
	case g.call != nil:
		w.due--
	case j.waiting:
		w.waiting--
		j.waiting = false
	}
	w.take(1)
	l.charge(j.source.stream.Cost)
	w.tenant.settle()
	r.owe(w)
	r.start(g)
}

// conclude tells workers of refusals, and that their polls were answered.
func (r *run) conclude(c *call, result admission.Result) {
	if c.then != nil {
		c.then(result)
		return
	}
	switch res := result.(type) {
	case *admission.AcquireResult:
		if res.Err != nil {
			r.fail(c.job.source.stream, res.Err)
			return
		}
		r.answered(c.job, &res.Decision)
	case *admission.NextDueResult:
		c.worker.polled(c, len(res.Claims))
	}
}

// look sees the pools as they are after an entry.
func (r *run) look() {
	for i, h := range r.state.Health(r.now, r.wall(), "") {
		l := r.ledgers[i]
		l.health = h
		for k, row := range h.Lanes {
			if ln := l.lanes[k]; ln.yielding != row.Yielding {
				ln.yielding = row.Yielding
				ln.switches++
			}
		}
		for _, held := range h.Held {
			l.peaks[held.Reason] = max(l.peaks[held.Reason], held.Tenants)
		}
	}
}

// expire books the permits of those who vanished, as the entry has let them
// expire.
func (l *ledger) expire() {
	for range admission.MaxExpiries {
		if len(l.lost) == 0 || l.lost[0].expires > l.run.now {
			return
		}
		h := l.lost[0]
		l.lost = l.lost[1:]
		h.job.source.want.take(-1)
		h.job.expired()
		h.job.source.want.tenant.settle()
	}
}

// lose books a permit whose holder has vanished: it expires in its time.
func (l *ledger) lose(h *hold) {
	l.run.counts.lost++
	h.job.source.lost++
	h.job.lostAt = l.run.now
	i, _ := slices.BinarySearchFunc(l.lost, h, (*hold).compare)
	l.lost = slices.Insert(l.lost, i, h)
}

func (h *hold) compare(o *hold) int {
	return cmp.Or(
		cmp.Compare(h.expires, o.expires),
		cmp.Compare(h.token.Index, o.token.Index),
		cmp.Compare(h.token.Position, o.token.Position),
	)
}

// durations are times, unsorted until they are asked for.
type durations []time.Duration

// quantile returns the time within which that part of all were.
func (d durations) quantile(q float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	i := int(q*float64(len(d))+0.999999) - 1
	return d[max(min(i, len(d)-1), 0)]
}
