package simulate

import (
	"time"

	"github.com/admitd/admit/admission"
)

// queue lets a job wait for a worker who asks for its permit; a sidecar answers at once.
func (f *fleet) queue(j *job) {
	if len(f.sidecars) > 0 {
		f.serve(j)
		return
	}
	f.pending = append(f.pending, j)
	f.stir()
}

// stir lets idle workers ask, once what happens now is over.
func (f *fleet) stir() {
	if f.started && !f.stirred {
		f.stirred = true
		f.run.events.enter(f.run.now, f.hire)
	}
}

// hire gives pending jobs to idle workers; where their number is not bounded,
// each job has one of its own.
func (f *fleet) hire() {
	f.stirred = false
	for len(f.pending) > 0 {
		w := &worker{fleet: f, name: f.workers.Name}
		if f.workers.Count > 0 {
			if len(f.idle) == 0 {
				return
			}
			w, f.idle = f.idle[0], f.idle[1:]
		}
		j := f.pending[0]
		f.pending = f.pending[1:]
		j.worker = w
		if !j.asked {
			j.asked, j.since = true, f.run.now
		}
		f.ask(j)
	}
}

// ask asks for the job's permit.
func (f *fleet) ask(j *job) {
	s := j.source
	if j.away {
		j.away = false
		s.lane.away--
	}
	f.run.apply(call{job: j, op: &admission.Acquire{
		Pool: f.workers.Pool, Tenant: s.want.tenant.id, Category: s.stream.Category, Cost: s.stream.Cost,
		TTL: f.workers.TTL, MaxWait: f.workers.MaxWait, Backlog: admission.Absent, WorkerID: j.worker.name,
		Nonce: f.run.nextNonce(),
	}})
}

// answered is when an Acquire was decided, or its wait has ended.
func (r *run) answered(j *job, d *admission.Decision) {
	s := j.source
	if d.Shed == nil {
		if !d.Granted() {
			r.asks[d.Waiter] = j
			j.waiting = true
			s.want.waiting++
			s.want.tenant.settle()
		}
		return
	}
	s.sheds[d.Shed.Reason]++
	wait := max(d.Shed.RetryAfter, d.Shed.PollAfter)
	if wait == admission.Absent {
		s.fleet.freed(j)
		j.giveUp()
		return
	}
	j.away = d.Shed.Reason >= admission.LaneYield // held by the pool, not by the tenant's own limits
	if j.away {
		s.lane.away++
	}
	r.events.enter(r.now.Add(max(wait, time.Millisecond)), func() { s.fleet.ask(j) })
}

// waitEnd is how the wait of a job's Acquire ended.
type waitEnd struct {
	job      *job
	decision *admission.Decision
}

// waitsEnded returns the waits that the last entry ended.
func (r *run) waitsEnded() []waitEnd {
	var ended []waitEnd
	for _, end := range r.state.Ended() {
		ended = append(ended, waitEnd{r.asks[end.Waiter], &end.Result.Decision})
		delete(r.asks, end.Waiter)
	}
	return ended
}

// gaveUpWaiting is when a wait was over before its turn came.
func (r *run) gaveUpWaiting(end waitEnd) {
	if end.decision.Granted() {
		return
	}
	w := end.job.source.want
	w.waiting--
	end.job.waiting = false
	w.tenant.settle()
	r.answered(end.job, end.decision)
}

// freed is when a job needs its worker no longer.
func (f *fleet) freed(j *job) {
	w := j.worker
	j.worker = nil
	if f.workers.Count > 0 {
		f.rest(w)
	}
}
