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

func (n *node) schedule(due time.Duration, keys ...string) {
	n.t.Helper()
	s := &admission.Schedule{Pool: "mail"}
	for _, k := range keys {
		s.Entries = append(s.Entries, admission.EntrySpec{Tenant: "acme", Key: k, Relative: true, DueIn: due})
	}
	for _, e := range n.do(s).Result.(*admission.ScheduleResult).Entries {
		if e.Status != admission.Scheduled {
			n.t.Fatalf("schedule: %+v", e)
		}
	}
}

// polled is what a poll came back with.
type polled struct {
	claims []admission.Claim
	answer Answer
	err    error
}

// poll polls in the background.
func (n *node) poll(ctx context.Context, maxItems int, maxWait time.Duration) <-chan polled {
	done := make(chan polled, 1)
	go func() {
		a, err := n.NextDue(ctx, Request{Op: &admission.NextDue{Pool: "mail", MaxItems: maxItems}}, maxWait)
		p := polled{answer: a, err: err}
		if err == nil {
			p.claims = a.Result.(*admission.NextDueResult).Claims
		}
		done <- p
	}()
	return done
}

// parked waits until so many polls are parked.
func (n *node) waitParked(want int) {
	n.t.Helper()
	ps := n.term.Load().polls
	deadline := time.Now().Add(10 * time.Second)
	for {
		ps.mu.Lock()
		got := ps.parked
		ps.mu.Unlock()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%d polls are parked, not %d", got, want)
		}
	}
}

func receive(t testing.TB, c <-chan polled) polled {
	t.Helper()
	select {
	case p := <-c:
		return p
	case <-time.After(10 * time.Second):
		t.Fatal("a poll did not come back in 10 s")
		return polled{}
	}
}

func startMail(t *testing.T, cfg Config) (*node, *clock.Manual) {
	clk := clock.NewManual(noon)
	cfg.Dir = t.TempDir()
	n := startNode(t, cfg, clk)
	n.applyPolicy(testPolicy())
	return n, clk
}

func TestIdlePollsWriteNothing(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.schedule(time.Hour, "later")
	before := n.index()
	p := receive(t, n.poll(t.Context(), 1, 0))
	if p.err != nil || len(p.claims) != 0 || p.answer.NextDueIn != time.Hour || p.answer.Shedding == nil {
		t.Errorf("an idle poll: %+v", p)
	}
	waiting := n.poll(t.Context(), 1, time.Second)
	n.waitParked(1)
	clk.Advance(time.Second)
	if p = receive(t, waiting); p.err != nil || len(p.claims) != 0 {
		t.Errorf("a poll that waited in vain: %+v", p)
	}
	if after := n.index(); after != before {
		t.Errorf("idle polls moved the log from %d to %d", before, after)
	}
}

func TestParkedPollsWake(t *testing.T) {
	for name, event := range map[string]func(n *node, clk *clock.Manual){
		"for a schedule": func(n *node, _ *clock.Manual) { n.schedule(0, "now") },
		"when it is due": func(_ *node, clk *clock.Manual) { clk.Advance(time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			n, clk := startMail(t, Config{})
			n.schedule(time.Minute, "soon")
			waiting := n.poll(t.Context(), 5, time.Hour)
			n.waitParked(1)
			event(n, clk)
			if p := receive(t, waiting); p.err != nil || len(p.claims) != 1 {
				t.Errorf("the poll came back with %+v", p)
			}
		})
	}
}

func TestAReleaseWakesThePollThatItCanServe(t *testing.T) {
	n, _ := startMail(t, Config{})
	var tokens []admission.Token
	for range 4 {
		tokens = append(tokens, n.mustAcquire("acme"))
	}
	n.schedule(0, "a", "b", "c", "d")
	var waiting []<-chan polled
	for i := range 4 {
		waiting = append(waiting, n.poll(t.Context(), 1, time.Hour))
		n.waitParked(i + 1)
	}
	for i, token := range tokens {
		before := n.index()
		n.release(token)
		p := receive(t, waiting[i])
		if p.err != nil || len(p.claims) != 1 {
			t.Fatalf("poll %d: %+v", i, p)
		}
		n.waitParked(3 - i)
		if after := n.index(); after != before+1 {
			t.Errorf("a release and a claim took %d entries", after-before)
		}
	}
}

func TestABurstWakesThemAll(t *testing.T) {
	n, _ := startMail(t, Config{})
	p := testPolicy()
	p.Pools[0].MaxActive = 0
	n.applyPolicy(p)
	const polls = 100
	var waiting []<-chan polled
	for range polls {
		waiting = append(waiting, n.poll(t.Context(), 2, time.Hour))
	}
	n.waitParked(polls)
	var keys []string
	for i := range 2 * polls {
		keys = append(keys, fmt.Sprint(i))
	}
	before := n.index()
	n.schedule(0, keys...)
	seen := map[string]bool{}
	for _, w := range waiting {
		got := receive(t, w)
		if got.err != nil || len(got.claims) != 2 {
			t.Fatalf("a poll came back with %+v", got)
		}
		for _, c := range got.claims {
			seen[c.Key] = true
		}
	}
	if len(seen) != 2*polls {
		t.Errorf("%d entries were claimed, not %d", len(seen), 2*polls)
	}
	if entries := n.index() - before; entries > polls/2 {
		t.Errorf("%d polls took %d log entries", polls, entries)
	}
}

func TestImpatientPollsAreServedTogetherToo(t *testing.T) {
	n, _ := startMail(t, Config{})
	p := testPolicy()
	p.Pools[0].MaxActive = 0
	n.applyPolicy(p)
	n.schedule(0, "a", "b", "c", "d", "e", "f")
	var wg sync.WaitGroup
	var mu sync.Mutex
	claims := 0
	for range 6 {
		w := n.poll(t.Context(), 1, 0)
		wg.Go(func() {
			p := <-w
			mu.Lock()
			defer mu.Unlock()
			claims += len(p.claims)
		})
	}
	wg.Wait()
	if claims != 6 {
		t.Errorf("six polls without patience claimed %d of six due entries", claims)
	}
}

func TestParkedPollsAreBounded(t *testing.T) {
	n, _ := startMail(t, Config{ParkedPolls: 2})
	ctx, cancel := context.WithCancel(t.Context())
	first, second := n.poll(ctx, 1, time.Hour), n.poll(ctx, 1, time.Hour)
	n.waitParked(2)
	full := (*OverloadedError)(nil)
	if p := receive(t, n.poll(ctx, 1, time.Hour)); !errors.As(p.err, &full) || full.RetryAfter <= 0 {
		t.Errorf("a third poll: %v", p.err)
	}
	if p := receive(t, n.poll(ctx, 1, 0)); p.err != nil {
		t.Errorf("a poll that doesn't wait: %v", p.err)
	}
	cancel()
	for _, w := range []<-chan polled{first, second} {
		if p := receive(t, w); p.err != context.Canceled {
			t.Errorf("a cancelled poll: %v", p.err)
		}
	}
	n.waitParked(0)
}

// A retried poll gets the claims that it had, though as many polls are being
// served as may be.
func TestARetriedPollTakesNobodysTurn(t *testing.T) {
	n, _ := startMail(t, Config{})
	n.schedule(0, "k1")
	op := &admission.NextDue{Pool: "mail", MaxItems: 1, RequestID: "r"}
	first := n.do(op).Result.(*admission.NextDueResult)
	ps := n.term.Load().polls
	ps.mu.Lock()
	ps.group(groupKey(op), op.Pool).out = maxWindow
	ps.mu.Unlock()
	for name, wait := range map[string]time.Duration{"at once": 0, "held open": time.Minute} {
		again := &admission.NextDue{Pool: "mail", MaxItems: 1, RequestID: "r"}
		a, err := n.NextDue(t.Context(), Request{Op: again}, wait)
		if err != nil {
			t.Fatal(err)
		}
		r := a.Result.(*admission.NextDueResult)
		if !r.Replayed || len(r.Claims) != 1 || r.Claims[0].Permit.Token != first.Claims[0].Permit.Token {
			t.Errorf("%s: the retry got %+v, want the claims of the first try", name, r)
		}
	}
}

func TestPollsEndBeforeTheirDeadline(t *testing.T) {
	n, clk := startMail(t, Config{})
	if got := n.patience(time.Time{}, time.Minute); got != time.Minute {
		t.Errorf("without a deadline a poll waits %v", got)
	}
	if got := n.patience(clk.Now().Wall.Add(time.Second), time.Minute); got != 800*time.Millisecond {
		t.Errorf("with a deadline in 1s a poll waits %v", got)
	}
}

func TestPollsForUnknownPoolsAreTold(t *testing.T) {
	n, _ := startMail(t, Config{})
	a, err := n.NextDue(t.Context(), Request{Op: &admission.NextDue{Pool: "none", MaxItems: 1}}, time.Hour)
	if err != nil || a.Shedding != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if r := a.Result.(*admission.NextDueResult); r.Err == nil || r.Err.Reason != admission.PoolNotFound {
		t.Errorf("%+v", r)
	}
}
