package raftstore

import (
	"context"
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

// Submission is a request that is decided while its caller goes on: no goroutine
// waits for it. It is used once, and not copied.
type Submission struct {
	// Request is any that Do takes but a ReportDemand, which may have to wait for its
	// turn.
	Request
	// Deadline is when nobody waits for the answer any more: what is not in the log by
	// then will not be. The zero time means never.
	Deadline time.Time
	// Done is told once what Do would return. It may be called before Submit returns,
	// and while the state is locked: it must not block, nor call the store.
	Done func(Answer, error)

	term *term
	call call
	own  [1]Answer
}

// Submit is Do for each of many requests, each a call of its own, without waiting:
// what becomes of each its Done is told. A context that ends has those dropped that
// are not in the log yet; who listens for one in line calls Withdraw.
func (s *Store) Submit(ctx context.Context, subs ...*Submission) {
	t, err := s.leading()
	if err != nil {
		for _, sub := range subs {
			sub.Done(Answer{}, err)
		}
		return
	}
	if calls := t.begin(ctx, subs); len(calls) > 0 {
		t.submitEach(calls)
	}
}

// begin answers the submissions that need no log entry, and returns the calls of the
// others.
func (t *term) begin(ctx context.Context, subs []*Submission) []*call {
	reqs, answers := make([]Request, len(subs)), make([]Answer, len(subs))
	for i, sub := range subs {
		t.s.shorten(sub.Request, sub.Deadline)
		reqs[i] = sub.Request
	}
	t.refuse(reqs, answers)
	calls := make([]*call, 0, len(subs))
	for i, sub := range subs {
		if answers[i].Result != nil {
			sub.Done(answers[i], nil)
			continue
		}
		c := &sub.call
		sub.term, c.until, c.then = t, sub.Deadline, sub.ended
		if err := c.init(ctx, reqs[i:i+1], sub.own[:]); err != nil {
			sub.Done(Answer{}, err)
			continue
		}
		if mayWait(sub.Request) {
			t.waits.enter(c, reqs[i:i+1])
		}
		calls = append(calls, c)
	}
	return calls
}

// submitEach queues calls for the proposer; those that find no room are told.
func (t *term) submitEach(calls []*call) {
	refused := t.queue.pushEach(calls)
	notify(t.wake)
	for _, r := range refused {
		err := t.s.countRefusal(r.why)
		for range r.call.items {
			r.call.fail(err, false)
		}
	}
}

// ended tells the submission's caller what became of it.
func (sub *Submission) ended() {
	c := &sub.call
	if c.items[0].wait != nil {
		sub.term.waits.leave(c)
	}
	answers, err := c.outcome(nil)
	if err != nil {
		sub.Done(Answer{}, err)
		return
	}
	sub.Done(answers[0], nil)
}

// Withdraw ends submissions whose callers have gone, or are to be told soon. One that
// is not in the log yet comes to context.Canceled: nothing was done. One in line leaves
// it, and is told so, or that it was granted at the last moment. All others are about
// to be told anyhow. What has come to an end stays as it is.
func (s *Store) Withdraw(subs ...*Submission) {
	for _, sub := range subs {
		if sub.term == nil || len(sub.call.items) == 0 {
			continue // it was answered at once
		}
		sub.call.give()
		sub.term.waits.withdraw(&sub.call)
	}
}

// errLeftInLine is told to who leaves a wait that goes on.
var errLeftInLine = fmt.Errorf("%w: the caller went, its place in line is kept", ErrOutcomeUnknown)

func mayWait(r Request) bool {
	a, ok := r.Op.(*admission.Acquire)
	return ok && a.MaxWait > 0
}

// withdraw has a call of one item leave the line, at once or as soon as it is in it.
func (ws *waits) withdraw(c *call) {
	it := &c.items[0]
	ws.mu.Lock()
	it.withdrawn = true
	over := ws.withdrawLocked(it)
	ws.mu.Unlock()
	if over != nil {
		c.fail(over, false)
	}
}

// withdrawLocked has the waiter of an item detached, if the item is in line. Where that
// can't be, it returns what to tell: others listen for the same waiter and it may yet
// be granted, or the log has no room.
func (ws *waits) withdrawLocked(it *item) (over error) {
	w := it.wait
	if w == nil || !ws.listens(it) || w.detached {
		return nil
	}
	if w.calls == 1 {
		gone := ws.detachLocked(w.key, func(err error) {
			if err == nil && ws.deafen(it) {
				it.call.fail(context.Canceled, true)
			}
		})
		if w.detached = gone != nil; w.detached {
			return nil
		}
	}
	ws.removeLocked(it)
	return errLeftInLine
}
