package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// submitted is a submission and what it was told.
type submitted struct {
	Submission
	told chan asked
}

// submission is told at most once, else the test fails.
func submission(t testing.TB, op admission.Op) *submitted {
	s := &submitted{told: make(chan asked, 1)}
	s.Op = op
	s.Done = func(a Answer, err error) {
		out := asked{answer: a, err: err}
		out.AcquireResult, _ = a.Result.(*admission.AcquireResult)
		select {
		case s.told <- out:
		default:
			t.Error("it was told twice")
		}
	}
	return s
}

// submit has all decided and returns what each was told.
func (n *node) submit(ops ...admission.Op) []asked {
	n.t.Helper()
	subs, list := make([]*submitted, len(ops)), make([]*Submission, len(ops))
	for i, op := range ops {
		subs[i] = submission(n.t, op)
		list[i] = &subs[i].Submission
	}
	n.Submit(n.t.Context(), list...)
	out := make([]asked, len(ops))
	for i, s := range subs {
		out[i] = told(n.t, s.told)
	}
	return out
}

func TestSubmissionsAreDecidedEachOnItsOwn(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.mustAcquire("acme")
	before := n.index()
	got := n.submit(
		&admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1},
		&admission.Release{Token: held, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent},
		&admission.Renew{Tokens: []admission.Token{{Index: 1}}},
		&admission.Acquire{Pool: "nowhere", Tenant: "acme", Cost: 1},
		&admission.Acquire{Pool: "mail", Tenant: "other", Cost: 1},
	)
	for i, a := range got {
		if a.err != nil || a.answer.Result == nil {
			t.Fatalf("%d was told %+v", i, a)
		}
	}
	if !got[0].Decision.Granted() || !got[4].Decision.Granted() || got[0].answer.Shedding == nil {
		t.Errorf("the Acquires were told %+v and %+v", got[0], got[4])
	}
	if got[0].answer.Shedding != got[4].answer.Shedding {
		t.Error("a pool's shedding was built for each tenant of which nothing is held")
	}
	if r := got[1].answer.Result.(*admission.ReleaseResult); r.Result != admission.LeaseReleased {
		t.Errorf("the Release was told %+v", r)
	}
	if r := got[2].answer.Result.(*admission.RenewResult); r.Renewals[0].Result != admission.LeaseLost {
		t.Errorf("the Renew was told %+v", r)
	}
	if got[3].Err == nil || got[3].Err.Reason != admission.PoolNotFound || got[3].answer.Position != OffLog {
		t.Errorf("an unknown pool: %+v", got[3])
	}
	if n.index() != before+1 {
		t.Errorf("what came at once took %d entries", n.index()-before)
	}
}

func TestASubmissionThatIsRefusedWritesNothing(t *testing.T) {
	n, _ := startMail(t, Config{})
	n.fill()
	before := n.index()
	got := n.submit(acquireOp("acme"), acquireOp("other"))
	for _, a := range got {
		if a.err != nil || a.Decision.Shed == nil || a.answer.Position != OffLog {
			t.Errorf("told %+v", a)
		}
	}
	if n.index() != before {
		t.Error("it wrote to the log")
	}
}

func TestASubmissionWaitsInLine(t *testing.T) {
	n, clk := startMail(t, Config{})
	held := n.fill()
	s := submission(t, waitOp("acme", "", time.Minute))
	n.Submit(t.Context(), &s.Submission)
	n.waitWaiting(1, 1)
	clk.Advance(3 * time.Second)
	n.release(held[0])
	if a := told(t, s.told); a.err != nil || !a.Decision.Granted() || a.answer.Waited != 3*time.Second {
		t.Errorf("told %+v", a)
	}
	n.waitWaiting(0, 0)
	n.Withdraw(&s.Submission) // too late to matter
}

func TestWhoWithdrawsLeavesTheLine(t *testing.T) {
	for name, id := range map[string]string{"without a request id": "", "with one": "r"} {
		t.Run(name, func(t *testing.T) {
			n, clk := startMail(t, Config{})
			held := n.fill()
			s := submission(t, waitOp("acme", id, time.Minute))
			n.Submit(t.Context(), &s.Submission)
			n.waitWaiting(1, 1)
			n.Withdraw(&s.Submission)
			n.Withdraw(&s.Submission)
			if a := told(t, s.told); !errors.Is(a.err, context.Canceled) || errors.Is(a.err, ErrOutcomeUnknown) {
				t.Errorf("told %+v", a)
			}
			n.release(held[0]) // nobody is there to be granted it
			if got := n.acquire("other").Decision; !got.Granted() {
				t.Errorf("the slot is kept for one who is gone: %+v", got.Shed)
			}
			if id != "" {
				n.waitWaiting(1, 0)
				n.waitsEnd(clk, 5*time.Second)
			}
			n.waitWaiting(0, 0)
		})
	}
}

// Others who listen for the same waiter keep the place.
func TestWhoWithdrawsLeavesOthersInLine(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	first, second := submission(t, waitOp("acme", "r", time.Minute)), submission(t, waitOp("acme", "r", time.Minute))
	n.Submit(t.Context(), &first.Submission)
	n.waitWaiting(1, 1)
	n.Submit(t.Context(), &second.Submission)
	n.waitWaiting(1, 2)
	n.Withdraw(&first.Submission)
	if a := told(t, first.told); !errors.Is(a.err, ErrOutcomeUnknown) {
		t.Errorf("who went was told %+v", a)
	}
	n.waitWaiting(1, 1)
	n.release(held[0])
	if a := told(t, second.told); a.err != nil || !a.Decision.Granted() {
		t.Errorf("who stayed was told %+v", a)
	}
	n.waitWaiting(0, 0)
}

// Wherever a submission is when it is withdrawn, it is told one end: a grant, or that
// nothing was done.
func TestWithdrawalsAtAnyMoment(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	var going sync.WaitGroup
	var granted atomic.Int32
	for i := range 200 {
		s := submission(t, waitOp(fmt.Sprintf("t%d", i%7), "", time.Minute))
		going.Go(func() {
			n.Submit(t.Context(), &s.Submission)
			if i%3 == 0 && n.acquire("passer-by").Decision.Granted() { // the submission gets further meanwhile
				granted.Add(1)
			}
			n.Withdraw(&s.Submission)
			switch a := told(t, s.told); {
			case a.err == nil && a.Decision.Granted():
				granted.Add(1)
			case !errors.Is(a.err, context.Canceled), errors.Is(a.err, ErrOutcomeUnknown):
				t.Errorf("told %+v", a)
			}
		})
		if i == 100 {
			n.release(held[0])
		}
	}
	going.Wait()
	n.waitWaiting(0, 0)
	if got := n.acquire("after").Decision.Granted(); got != (granted.Load() == 0) {
		t.Errorf("%d were granted, and the slot is free: %v", granted.Load(), got)
	}
}

func TestSubmissionsOfANodeThatEnds(t *testing.T) {
	n, _ := startMail(t, Config{})
	n.fill()
	s := submission(t, waitOp("acme", "r", time.Minute))
	n.Submit(t.Context(), &s.Submission)
	n.waitWaiting(1, 1)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if a := told(t, s.told); !errors.Is(a.err, ErrShuttingDown) || errors.Is(a.err, ErrOutcomeUnknown) {
		t.Errorf("who waits is told %+v", a)
	}
	if a := n.submit(acquireOp("acme"))[0]; !errors.Is(a.err, ErrShuttingDown) {
		t.Errorf("who comes later is told %+v", a)
	}
}

// What nobody waits for any more is dropped where the next entry is filled.
func TestSubmissionsDroppedBeforeTheLog(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx      context.Context
		deadline time.Time
		withdraw bool
		want     error
	}{
		"in time":           {ctx: t.Context(), deadline: noon.Add(time.Second)},
		"late":              {ctx: t.Context(), deadline: noon.Add(-time.Second), want: context.DeadlineExceeded},
		"withdrawn":         {ctx: t.Context(), withdraw: true, want: context.Canceled},
		"of a lost context": {ctx: gone, want: context.Canceled},
	} {
		s := submission(t, releaseOp())
		queued := &s.call
		queued.until, queued.then = c.deadline, s.ended
		if err := queued.init(c.ctx, []Request{s.Request}, s.own[:]); err != nil {
			t.Fatal(err)
		}
		var q queue
		if refused := q.pushEach([]*call{queued}); len(refused) > 0 {
			t.Fatal(refused)
		}
		if c.withdraw {
			queued.give()
		}
		items, _ := q.fill(noon)
		if c.want == nil {
			if len(items) != 1 {
				t.Errorf("%s: it was dropped", name)
			}
			continue
		}
		if a := told(t, s.told); len(items) != 0 || !errors.Is(a.err, c.want) {
			t.Errorf("%s: %d go into the log, told %+v", name, len(items), a)
		}
	}
}

func TestSubmissionsThatFindNoRoom(t *testing.T) {
	var q queue
	for range classLoads[grants] {
		mustPush(t, &q, acquireOp("a"))
	}
	refused := q.pushEach([]*call{callFor(t, t.Context(), acquireOp("a")), callFor(t, t.Context(), releaseOp())})
	full := (*OverloadedError)(nil)
	if len(refused) != 1 || !errors.As(refused[0].why, &full) || full.Queue != "grants" {
		t.Errorf("refused %+v, want the Acquire alone", refused)
	}
}
