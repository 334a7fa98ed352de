package raftstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// Do decides each request on its own, in order, and returns an answer for each
// in the requests' order, or an error if any outcome is not known. It blocks
// until all are decided and durable, or ctx ends.
//
// An Acquire, Take or LeaseShare that the state refuses already is answered at once,
// without a log entry: a refusal changes nothing, and what is refused now may as well
// have come a moment earlier. One with MaxWait that can't be granted waits in line; it
// ends 200 ms before ctx does, to tell the caller. If ctx ends it all the same,
// the line is told.
//
// A ReportDemand comes alone; what is reported of one tenant and lane is logged
// once in a second, and says meanwhile nothing or waits for its turn.
//
// Errors: *NotLeaderError, ErrNoQuorum, *OverloadedError, ErrShuttingDown, and
// the context's own mean that nothing was done; ErrOutcomeUnknown that
// something may have been.
func (s *Store) Do(ctx context.Context, reqs ...Request) ([]Answer, error) {
	t, err := s.leading()
	if err != nil {
		return nil, err
	}
	if _, report := reqs[0].Op.(*admission.ReportDemand); report && len(reqs) == 1 {
		a, err := t.report(ctx, reqs[0])
		return []Answer{a}, err
	}
	deadline, _ := ctx.Deadline()
	for _, r := range reqs {
		s.shorten(r, deadline)
	}
	answers := make([]Answer, len(reqs))
	if t.refuse(reqs, answers) == len(reqs) {
		return answers, nil
	}
	return t.decide(ctx, reqs, answers)
}

// decide proposes the requests that have no answer yet.
func (t *term) decide(ctx context.Context, reqs []Request, answers []Answer) ([]Answer, error) {
	c, err := newCall(ctx, reqs, answers)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(reqs, mayWait) {
		t.waits.enter(c, reqs)
		defer t.waits.leave(c)
	}
	if err := t.submit(c); err != nil {
		return nil, err
	}
	answers, err = c.wait()
	if err == nil || ctx.Err() == nil || !t.part(c) {
		return answers, err
	}
	// It was granted at the last moment, or nothing came of it.
	if answers, err = c.outcome(ctx.Err()); err == nil && !granted(answers[0]) {
		return nil, ctx.Err()
	}
	return answers, err
}

func granted(a Answer) bool {
	r, ok := a.Result.(*admission.AcquireResult)
	return ok && r.Err == nil && r.Decision.Granted()
}

// refuse answers what the state would refuse now, and what only asks, and returns how
// many that are.
func (t *term) refuse(reqs []Request, answers []Answer) (refused int) {
	if !slices.ContainsFunc(reqs, mayBeRefused) {
		return 0
	}
	at, w := t.now()
	sheds := make(map[admission.SheddingQuery]*admission.Shedding, 1)
	t.s.fsm.read(func(st *admission.State) {
		for i, r := range reqs {
			stands := false
			switch op := r.Op.(type) {
			case *admission.Take:
				if answers[i].Result, stands = st.DecideTake(at, op); stands {
					answers[i].Levels = st.TakeLevels(at, op)
				}
			case *admission.LeaseShare:
				answers[i].Result, stands = st.DecideLease(at, op)
			case *admission.Acquire:
				var res *admission.AcquireResult
				if res, stands = t.refuseAcquire(st, at, op, r.DryRun); stands {
					q := ifKnown(res.Err, admission.SheddingQuery{Pool: op.Pool, Tenant: op.Tenant})
					answers[i].Result, answers[i].DryRun = res, r.DryRun
					answers[i].Shedding = buildShedding(st, at, w, q, sheds)
				}
			}
			if !stands {
				answers[i] = Answer{}
				continue
			}
			refused++
			answers[i].NextDueIn, answers[i].Place = admission.Absent, offLog(st)
		}
	})
	return refused
}

// refuseAcquire returns what the state says of an Acquire, and whether that is its
// answer.
func (t *term) refuseAcquire(st *admission.State, at admission.Instant, a *admission.Acquire, dry bool) (*admission.AcquireResult, bool) {
	res := st.Decide(at, a)
	if !dry && t.mustLog(st, at, a, res) {
		return res, false
	}
	if res.Err == nil && res.Decision.Granted() && !res.Decision.Replayed {
		res.Decision.Permit.Lane, _ = st.LaneOf(a.Pool, a.Tenant, a.Category)
	}
	return res, true
}

// mustLog says whether an Acquire of which the state says res is to be logged. A
// refusal is not, but for the backlog that it tells.
func (t *term) mustLog(st *admission.State, at admission.Instant, a *admission.Acquire, res *admission.AcquireResult) bool {
	if a.Backlog > 0 && res.Err == nil {
		lane, _ := st.LaneOf(a.Pool, a.Tenant, a.Category)
		if t.reports.beside(reportKey{a.Pool, a.Tenant, lane}, a.Backlog, at) {
			return true
		}
		a.Backlog = 0
	}
	return res.Err == nil && res.Decision.Shed == nil
}

// mayBeRefused says whether the state alone may answer a request.
func mayBeRefused(r Request) bool {
	switch r.Op.(type) {
	case *admission.Acquire, *admission.Take, *admission.LeaseShare:
		return true
	}
	return false
}

// emptyPolls is how often a poll is proposed that comes back with nothing,
// though the core thought it would be served. Its answer then stands. One that was
// attached to an entry on a chance is not counted.
const emptyPolls = 3

// NextDue is Do for one *admission.NextDue, and holds on for up to maxWait while
// nothing can be claimed. It ends 200 ms before ctx does, to tell the caller. A
// poll that finds nothing writes nothing to the log.
//
// Errors are those of Do; *OverloadedError is also for too many parked polls.
func (s *Store) NextDue(ctx context.Context, req Request, maxWait time.Duration) (Answer, error) {
	op, ok := req.Op.(*admission.NextDue)
	if !ok {
		return Answer{}, fmt.Errorf("poll: %T is no NextDue", req.Op)
	}
	t, err := s.leading()
	if err != nil {
		return Answer{}, err
	}
	deadline, _ := ctx.Deadline()
	wait := s.patience(deadline, maxWait)
	p, err := t.polls.enter(ctx, req, wait > 0)
	if err != nil {
		return Answer{}, s.countRefusal(err)
	}
	if p == nil {
		return t.idle(op, req.HeldRows), nil
	}
	timer := s.clk.NewTimer(max(wait, 0))
	defer timer.Stop()
	for {
		held := p.beginWait()
		c, err := t.polls.await(p, timer)
		endSpan(held, err)
		if err != nil {
			return Answer{}, err
		}
		if c == nil {
			return s.goHome(ctx, t, req)
		}
		a, again, err := t.claim(c, p)
		if !again {
			return a, err
		}
	}
}

// goHome answers a poll that waited in vain. If it is a retry that came while the
// first try was under way, it is given the claims of that.
func (s *Store) goHome(ctx context.Context, t *term, req Request) (Answer, error) {
	op := req.Op.(*admission.NextDue)
	if !t.polls.remembered(op) {
		return t.idle(op, req.HeldRows), nil
	}
	answers, err := s.Do(ctx, req)
	if err != nil {
		return Answer{}, err
	}
	return answers[0], nil
}

// patience returns how long a call may wait that is to be answered by a deadline, if
// there is one.
func (s *Store) patience(deadline time.Time, maxWait time.Duration) time.Duration {
	if deadline.IsZero() {
		return maxWait
	}
	return min(maxWait, deadline.Sub(s.clk.Now().Wall)-answerTime)
}

// shorten has an Acquire wait no longer than leaves time to tell its caller.
func (s *Store) shorten(r Request, deadline time.Time) {
	a, ok := r.Op.(*admission.Acquire)
	switch {
	case !ok:
	case r.DryRun:
		a.MaxWait = 0
	case a.MaxWait != 0:
		a.MaxWait = max(s.patience(deadline, a.MaxWait), 0)
	}
}

// await waits until the poll is proposed, and returns the call; or until it is
// not to wait any longer, and returns nil.
func (ps *polls) await(p *parkedPoll, timer clock.Timer) (*call, error) {
	var up <-chan time.Time
	if p.park {
		up = timer.C()
	}
	select {
	case <-p.turn:
	case <-up:
		if ps.leave(p) {
			return nil, nil
		}
	case <-p.ctx.Done():
		if ps.leave(p) {
			return nil, p.ctx.Err()
		}
	}
	return p.call, p.err
}

// claim waits for a poll that was proposed. It says whether to wait again.
func (t *term) claim(c *call, p *parkedPoll) (Answer, bool, error) {
	answers, err := c.wait()
	if err != nil {
		t.polls.back(p, false, false)
		return Answer{}, false, err
	}
	r := answers[0].Result.(*admission.NextDueResult)
	served := len(r.Claims) > 0 || r.Replayed || r.Err != nil
	if !p.attached {
		p.empty++
	}
	again := !served && p.park && p.empty < emptyPolls
	t.polls.back(p, len(r.Claims) >= p.op.MaxItems, again)
	return answers[0], again, nil
}

// idle is the answer to a poll that found nothing.
func (t *term) idle(op *admission.NextDue, heldRows int) Answer {
	var a Answer
	at, w := t.now()
	t.s.fsm.read(func(st *admission.State) {
		call := st.Idle(op)
		a.Result = call
		a.Place = offLog(st)
		a.NextDueIn = st.NextDueIn(op.Pool, w)
		shedding := st.Shedding(at, w, admission.SheddingQuery{Pool: op.Pool, HeldRows: heldRows, Call: call})
		a.Shedding = &shedding
	})
	return a
}
