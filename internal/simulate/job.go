package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/admitd/admit/admission"
)

// source is the work of one tenant in one stream, and how it fared.
type source struct {
	stream *Stream
	lane   *lane
	want   *want
	fleet  *fleet // who asks for its permits, or nil
	work   *rand.Rand

	jobs, grants, done, lost int64
	// dead are those given up: after too many attempts, or never grantable.
	dead  int64
	waits durations
	sheds map[admission.Reason]int64
}

// job is one piece of work.
type job struct {
	source *source
	key    string
	// since is when it came due, or was first asked for.
	since   admission.Instant
	asked   bool
	waiting bool // in line
	away    bool // shed, and counted in lane.away
	worker  *worker
	hold    *hold
	// lostAt is when its last permit was lost, 0 if it was not.
	lostAt admission.Instant
}

// hold is a permit in somebody's hands.
type hold struct {
	job     *job
	worker  *worker
	token   admission.Token
	expires admission.Instant
	ttl     time.Duration
}

// start puts the permit into the worker's hands.
func (r *run) start(g *grant) {
	j, s := g.job, g.job.source
	s.grants++
	s.waits = append(s.waits, r.now.Sub(j.since))
	if j.lostAt != 0 {
		r.counts.recovered = append(r.counts.recovered, r.now.Sub(j.lostAt))
		j.lostAt = 0
	}
	w := g.worker
	if w == nil {
		w = j.worker
	}
	h := &hold{job: j, worker: w, token: g.permit.Token, ttl: g.permit.ExpiresIn, expires: r.now.Add(g.permit.ExpiresIn)}
	j.hold = h
	w.take(h)
	takes := s.stream.Work.draw(s.work)
	r.events.enter(r.now.Add(takes), func() { r.finish(h) })
	if takes > h.ttl/2 {
		r.events.enter(r.now.Add(h.ttl/2), func() { r.renew(h) })
	}
}

// held says whether somebody still has the permit in hand.
func (h *hold) held() bool { return h.worker != nil }

func (r *run) renew(h *hold) {
	if h.held() {
		r.apply(call{op: &admission.Renew{Tokens: []admission.Token{h.token}}, job: h.job})
		r.events.enter(r.now.Add(h.ttl/2), func() { r.renew(h) })
	}
}

func (r *run) renewed(j *job, res *admission.RenewResult) {
	if res.Renewals[0].Result == admission.LeaseRenewed {
		j.hold.expires = r.now.Add(res.Renewals[0].ExpiresIn)
	}
}

// finish ends a job: its worker vanishes with it, or gives the permit back.
func (r *run) finish(h *hold) {
	if !h.held() {
		return
	}
	s := h.job.source
	fate, crash := s.work.Float64(), s.work.Float64()
	if crash < h.worker.fleet.workers.CrashRate {
		h.worker.vanish()
		return
	}
	op := &admission.Release{Token: h.token, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent}
	switch {
	case fate < s.stream.ThrottleRate:
		op.Outcome, op.RetryAfter, op.Bucket = admission.OutcomeThrottled, s.stream.RetryAfter, s.stream.Bucket
	case fate < s.stream.ThrottleRate+s.stream.FailureRate:
		op.Outcome = admission.OutcomeFailed
	}
	h.worker.give(h)
	r.apply(call{op: op, job: h.job})
}

// returned books a release. Due work that did not go well comes back in its time;
// what was asked for directly is asked for again after a throttle only.
func (r *run) returned(j *job, op *admission.Release, res *admission.ReleaseResult) {
	if res.Err != nil {
		r.fail(j.source.stream, res.Err)
		return
	}
	w := j.source.want
	w.take(-1)
	j.hold = nil
	w.tenant.settle()
	switch {
	case j.source.fleet != nil:
		j.source.fleet.freed(j)
		if op.Outcome == admission.OutcomeThrottled {
			j.asked = false
			j.source.fleet.queue(j)
		} else {
			j.end()
		}
	case op.Outcome == admission.OutcomeDone:
		j.end()
	default:
		r.requeued(j)
	}
}

// end ends a job for good.
func (j *job) end() {
	j.source.done++
	j.over()
}

// giveUp ends a job that will never be done.
func (j *job) giveUp() {
	j.source.dead++
	j.over()
}

func (j *job) over() {
	l := j.source.lane.ledger
	l.run.counts.over++
	delete(l.jobs, j.key)
}

// expired is when the permit of a job whose worker vanished has run out.
func (j *job) expired() {
	j.hold = nil
	if f := j.source.fleet; f != nil {
		j.asked = false
		f.queue(j)
		return
	}
	j.source.lane.ledger.run.requeued(j)
}

// requeued books due work that waits for its next attempt, or has none left.
func (r *run) requeued(j *job) {
	s := j.source
	e, err := r.state.GetEntry(s.lane.ledger.name, s.want.tenant.id, j.key)
	if err != nil || e.DiedAt != 0 {
		j.giveUp()
		return
	}
	at := max(admission.Instant(e.DueAt.Sub(epoch)), r.now)
	j.since = at
	if at == r.now {
		r.cameDue(j)
		return
	}
	r.events.enter(at, func() { r.cameDue(j) })
}

// cameDue counts a job as due.
func (r *run) cameDue(j *job) {
	w := j.source.want
	w.due++
	w.tenant.settle()
}
