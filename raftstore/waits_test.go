package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// asked is what an Acquire came back with.
type asked struct {
	answer Answer
	*admission.AcquireResult
	err error
}

func waitOp(tenant, id string, maxWait time.Duration) *admission.Acquire {
	return &admission.Acquire{Pool: "mail", Tenant: tenant, Cost: 1, MaxWait: maxWait, RequestID: id}
}

// ask asks in the background.
func (n *node) ask(ctx context.Context, op *admission.Acquire) <-chan asked {
	done := make(chan asked, 1)
	go func() {
		answers, err := n.Do(ctx, Request{Op: op})
		a := asked{err: err}
		if err == nil {
			a.answer, a.AcquireResult = answers[0], answers[0].Result.(*admission.AcquireResult)
		}
		done <- a
	}()
	return done
}

// told waits for the answer.
func told(t testing.TB, c <-chan asked) asked {
	t.Helper()
	select {
	case a := <-c:
		return a
	case <-time.After(10 * time.Second):
		t.Fatal("an Acquire was not answered in 10 s")
		return asked{}
	}
}

// waitWaiting waits until so many Acquires are in line, and until so many calls
// listen.
func (n *node) waitWaiting(inLine int64, listening int) {
	n.t.Helper()
	n.eventually(fmt.Sprintf("%d in line, %d listening", inLine, listening),
		func(st *admission.State, at admission.Instant, w admission.Wall) bool {
			ws := n.term.Load().waits
			ws.mu.Lock()
			defer ws.mu.Unlock()
			return st.Health(at, w, "mail")[0].Waiting == inLine && ws.listening == listening
		})
}

// waitsEnd lets time pass until nobody is in line any more.
func (n *node) waitsEnd(clk *clock.Manual, d time.Duration) {
	n.t.Helper()
	clk.Advance(d)
	n.eventually("the waits end", func(st *admission.State, at admission.Instant, w admission.Wall) bool {
		// The proposer may set its timer while the clock moves, and so late.
		clk.Advance(time.Millisecond)
		return st.Health(at, w, "mail")[0].Waiting == 0
	})
}

// fill takes all slots of the pool.
func (n *node) fill() (tokens []admission.Token) {
	n.t.Helper()
	for range 4 {
		tokens = append(tokens, n.mustAcquire("full"))
	}
	return tokens
}

func TestAReleaseGrantsAWaiter(t *testing.T) {
	n, clk := startMail(t, Config{})
	held := n.fill()
	waiting := n.ask(t.Context(), waitOp("acme", "", time.Minute))
	n.waitWaiting(1, 1)
	clk.Advance(3 * time.Second)
	n.release(held[0])
	a := told(t, waiting)
	if a.err != nil || !a.Decision.Granted() || a.Decision.Permit.State != admission.PermitLive || a.answer.Shedding == nil {
		t.Fatalf("the waiter was told %+v", a)
	}
	if a.answer.Waited != 3*time.Second {
		t.Errorf("it waited %v, not 3s", a.answer.Waited)
	}
	if got := n.release(a.Decision.Permit.Token); got != admission.LeaseReleased {
		t.Errorf("release of what it was granted: %v", got)
	}
	n.waitWaiting(0, 0)
}

func TestAWaitEndsInTime(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.fill()
	waiting := n.ask(t.Context(), waitOp("acme", "", 10*time.Second))
	n.waitWaiting(1, 1)
	n.waitsEnd(clk, 10*time.Second)
	a := told(t, waiting)
	if a.err != nil || a.Decision.Shed == nil || a.Decision.Shed.Reason != admission.PoolCap {
		t.Fatalf("the waiter was told %+v", a)
	}
	n.waitWaiting(0, 0)
}

// The wait ends in time for the answer to come before the caller's deadline.
func TestAWaitLeavesTimeForTheAnswer(t *testing.T) {
	n, clk := startMail(t, Config{})
	deadline := time.Now().Add(time.Hour)
	clk.Advance(deadline.Sub(noon) - time.Second - answerTime)
	n.fill()
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	waiting := n.ask(ctx, waitOp("acme", "", time.Minute))
	n.waitWaiting(1, 1)
	n.waitsEnd(clk, time.Second)
	if a := told(t, waiting); a.err != nil || a.Decision.Shed == nil {
		t.Errorf("the waiter was told %+v", a)
	}
	before := n.index()
	if a := told(t, n.ask(ctx, waitOp("acme", "", time.Minute))); a.err != nil || a.Decision.Shed == nil {
		t.Errorf("who has no time to wait was told %+v", a)
	}
	if n.index() != before {
		t.Error("it was in line all the same")
	}
}

func TestALostCallerLeavesTheLine(t *testing.T) {
	for name, id := range map[string]string{"without a request id": "", "with one": "r"} {
		t.Run(name, func(t *testing.T) {
			n, clk := startMail(t, Config{})
			held := n.fill()
			ctx, cancel := context.WithCancel(t.Context())
			waiting := n.ask(ctx, waitOp("acme", id, time.Minute))
			n.waitWaiting(1, 1)
			cancel()
			if a := told(t, waiting); !errors.Is(a.err, context.Canceled) || errors.Is(a.err, ErrOutcomeUnknown) {
				t.Errorf("the lost caller was told %v", a.err)
			}
			if id != "" {
				n.waitWaiting(1, 0)
				n.release(held[0]) // nobody is there to be granted it
				if got := n.acquire("other").Decision; !got.Granted() {
					t.Errorf("the slot is kept for one who is gone: %+v", got.Shed)
				}
				n.waitsEnd(clk, 5*time.Second)
			}
			n.waitWaiting(0, 0)
		})
	}
}

// Who asks again under the same id listens along, and keeps the place when the
// first call goes.
func TestARetryGoesOnWaiting(t *testing.T) {
	n, clk := startMail(t, Config{})
	held := n.fill()
	ctx, cancel := context.WithCancel(t.Context())
	first := n.ask(ctx, waitOp("acme", "r", time.Minute))
	n.waitWaiting(1, 1)
	second := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	n.waitWaiting(1, 2)
	third := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	n.waitWaiting(1, 3)
	cancel()
	told(t, first)
	clk.Advance(6 * time.Second)
	n.waitWaiting(1, 2)
	n.release(held[0])
	a, b := told(t, second), told(t, third)
	if a.err != nil || !a.Decision.Granted() || b.err != nil || b.Decision.Permit.Token != a.Decision.Permit.Token {
		t.Errorf("told %+v and %+v", a, b)
	}
}

func TestARetryAfterALossComesBack(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	ctx, cancel := context.WithCancel(t.Context())
	first := n.ask(ctx, waitOp("acme", "r", time.Minute))
	n.waitWaiting(1, 1)
	behind := n.ask(t.Context(), waitOp("acme", "s", time.Minute))
	n.waitWaiting(2, 2)
	cancel()
	told(t, first)
	n.waitWaiting(2, 1)
	again := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	n.waitWaiting(2, 2)
	n.release(held[0])
	if a := told(t, again); a.err != nil || !a.Decision.Granted() {
		t.Errorf("who came back was told %+v", a)
	}
	n.release(held[1])
	if a := told(t, behind); a.err != nil || !a.Decision.Granted() {
		t.Errorf("who was behind was told %+v", a)
	}
}

// Many callers go and come back under the same id at once: whoever stays is
// granted.
func TestComingsAndGoingsUnderOneID(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	var going sync.WaitGroup
	for range 50 {
		ctx, cancel := context.WithCancel(t.Context())
		going.Go(func() { _, _ = n.Do(ctx, Request{Op: waitOp("acme", "r", time.Minute)}) })
		going.Go(cancel)
	}
	stays := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	going.Wait()
	n.waitWaiting(1, 1)
	n.do(admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low", Resume: true}) // all that was queued is applied
	n.release(held[0])
	if a := told(t, stays); a.err != nil || !a.Decision.Granted() {
		t.Errorf("who stayed was told %+v", a)
	}
	if got := len(n.term.Load().waits.byName) + len(n.term.Load().waits.byKey); got != 0 {
		t.Errorf("%d waits are kept of calls that have ended", got)
	}
}

func TestABatchWaitsForAll(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	done := make(chan []Answer, 1)
	go func() {
		answers, err := n.Do(t.Context(),
			Request{Op: waitOp("a", "", time.Minute)}, Request{Op: waitOp("b", "", 0)}, Request{Op: waitOp("c", "", time.Minute)})
		if err != nil {
			t.Error(err)
		}
		done <- answers
	}()
	n.waitWaiting(2, 2)
	n.release(held[0])
	n.waitWaiting(1, 1)
	n.release(held[1])
	for i, a := range <-done {
		if got := a.Result.(*admission.AcquireResult).Decision.Granted(); got != (i != 1) {
			t.Errorf("request %d: granted %t", i, got)
		}
	}
}

func TestTheEndOfATermEndsTheWaits(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	lost := n.ask(t.Context(), waitOp("gone", "", time.Minute))
	n.waitWaiting(1, 1)
	named := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	n.waitWaiting(2, 2)
	n.restart()
	for name, c := range map[string]<-chan asked{"without an id": lost, "with one": named} {
		if a := told(t, c); !errors.Is(a.err, ErrShuttingDown) || errors.Is(a.err, ErrOutcomeUnknown) {
			t.Errorf("%s: told %v", name, a.err)
		}
	}
	n.waitWaiting(1, 0)
	again := n.ask(t.Context(), waitOp("acme", "r", time.Minute))
	n.waitWaiting(1, 1)
	n.release(held[0])
	if a := told(t, again); a.err != nil || !a.Decision.Granted() {
		t.Errorf("the retry was told %+v", a)
	}
}

// A refusal that waiting can't help writes nothing, whatever the wait.
func TestWhatCantWaitIsRefusedAtOnce(t *testing.T) {
	n, _ := startMail(t, Config{})
	op := &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1, DedupeKey: "job", MaxWait: time.Minute}
	if a := told(t, n.ask(t.Context(), op)); !a.Decision.Granted() {
		t.Fatalf("told %+v", a)
	}
	before := n.index()
	again := *op
	a := told(t, n.ask(t.Context(), &again))
	if a.err != nil || a.Decision.Shed == nil || a.Decision.Shed.Reason != admission.Duplicate {
		t.Errorf("told %+v", a)
	}
	if after := n.index(); after != before {
		t.Errorf("the refusal moved the log from %d to %d", before, after)
	}
}

func TestDryRunsWriteNothing(t *testing.T) {
	n, _ := startMail(t, Config{})
	before := n.index()
	for i, want := range []bool{true, false} {
		op := &admission.Acquire{Pool: "mail", Tenant: "acme", Category: "otp", Cost: 1, MaxWait: time.Minute, Backlog: 3}
		answers, err := n.Do(t.Context(), Request{Op: op, DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		d := answers[0].Result.(*admission.AcquireResult).Decision
		if d.Granted() != want || !answers[0].DryRun || want && d.Permit.Lane != "high" {
			t.Errorf("dry run %d: %+v", i, d)
		}
		if n.index() != before {
			t.Errorf("dry run %d moved the log", i)
		}
		n.fillUp()
		before = n.index()
	}
}

func (n *node) fillUp() {
	for n.acquire("full").Decision.Granted() {
	}
}

// A call that ends while it is granted is told so: its permit is not lost.
func TestAWaitThatEndsWithItsGrantHasIt(t *testing.T) {
	for round := range 20 {
		n, _ := startMail(t, Config{})
		held := n.fill()
		ctx, cancel := context.WithCancel(t.Context())
		waiting := n.ask(ctx, waitOp("acme", "", time.Minute))
		n.waitWaiting(1, 1)
		go cancel()
		n.release(held[0])
		a := told(t, waiting)
		switch {
		case errors.Is(a.err, ErrOutcomeUnknown):
			t.Errorf("round %d: it is not known", round)
		case a.err == nil && !a.Decision.Granted():
			t.Errorf("round %d: told %+v", round, a.Decision)
		}
		free := n.acquire("other").Decision.Granted()
		if free == (a.err == nil) {
			t.Errorf("round %d: granted %v, and the slot is free: %v", round, a.err == nil, free)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Who leaves the line costs the log one operation.
func TestAWaitThatRunsOutIsDetachedOnce(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := n.ask(ctx, waitOp("acme", "r", time.Minute)) // it keeps its place for a retry
	n.waitWaiting(1, 1)
	cancel()
	if a := told(t, waiting); !errors.Is(a.err, context.Canceled) {
		t.Errorf("it was told %+v", a)
	}
	n.release(held[0]) // comes after all that the call wanted
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	detached := 0
	err := ReadLog(n.cfg.Dir, 0, func(_ uint64, e admission.Entry) error {
		for _, op := range e.Ops {
			if _, ok := op.(admission.Detach); ok {
				detached++
			}
		}
		return nil
	})
	if err != nil || detached != 1 {
		t.Errorf("it was detached %d times, %v", detached, err)
	}
}

// A call that ends between the end of its wait and the word of it is told that word.
func TestACallThatEndsWhileItIsToldHearsIt(t *testing.T) {
	n, _ := startMail(t, Config{})
	n.fill()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := n.ask(ctx, waitOp("acme", "", time.Minute))
	n.waitWaiting(1, 1)
	ws := n.term.Load().waits
	var key admission.WaiterKey
	for key = range ws.byKey {
	}
	items, _ := ws.end(key)
	c := items[0].call
	cancel()
	n.eventually("the call has ended", func(*admission.State, admission.Instant, admission.Wall) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.gone
	})
	c.answers[0] = Answer{Result: &admission.AcquireResult{
		Decision: admission.Decision{Permit: admission.Permit{State: admission.PermitLive}},
	}}
	c.finish()
	if a := told(t, waiting); a.err != nil || !a.Decision.Granted() {
		t.Errorf("told %+v, want the grant", a)
	}
}
