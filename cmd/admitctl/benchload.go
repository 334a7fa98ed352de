package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// load is requests for permits by a number of callers, for a while.
type load struct {
	flags   *benchFlags
	client  *client.Client
	timeout time.Duration
	tally   *tally

	began time.Time
	took  time.Duration
	// next is the number of the request that a caller takes next.
	next atomic.Int64
}

// run puts the load on until its time is over or ctx is, and tells now and then how much
// of it has passed. What is out then is waited for, so that nothing that was granted is
// kept.
func (l *load) run(ctx context.Context, tell func(passed time.Duration)) {
	ctx, cancel := context.WithTimeout(ctx, l.flags.span)
	defer cancel()
	l.began = time.Now()
	var callers sync.WaitGroup
	for range l.flags.callers {
		callers.Go(func() { l.call(ctx) })
	}
	tick := time.NewTicker(barEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			tell(time.Since(l.began))
		case <-ctx.Done():
		}
	}
	l.took = time.Since(l.began)
	callers.Wait()
}

// call is one caller: it asks until ctx is done.
func (l *load) call(ctx context.Context) {
	for ctx.Err() == nil {
		due := time.Now()
		if l.flags.rate > 0 {
			due = l.began.Add(l.dueAfter(l.next.Add(1) - 1))
			if !until(ctx, due) {
				return
			}
		}
		l.tally.asked.Add(1)
		l.ask(context.WithoutCancel(ctx), due)
	}
}

// dueAfter is when the i-th request is due, from the beginning on.
func (l *load) dueAfter(i int64) time.Duration {
	return time.Duration(i) * time.Second / time.Duration(l.flags.rate)
}

// until waits for a time, and says whether it came before ctx was done.
func until(ctx context.Context, at time.Time) bool {
	left := time.Until(at)
	if left <= 0 {
		return ctx.Err() == nil
	}
	wait := time.NewTimer(left)
	defer wait.Stop()
	select {
	case <-wait.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// ask asks for a permit, counts the answer and gives the permit back.
func (l *load) ask(ctx context.Context, due time.Time) {
	answered, cancel := context.WithTimeout(ctx, l.timeout)
	d, err := l.client.Acquire(answered, l.flags.work)
	cancel()
	l.tally.count(d, err, time.Since(due))
	if d.Permit == nil || d.Permit.State == admitv1.PermitState_PERMIT_STATE_SPENT {
		return
	}
	released, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	if _, err := l.client.Release(released, d.Permit.Token, client.Release{}); err != nil {
		l.tally.unreleased.Add(1)
	}
}

// report is what was measured.
func (l *load) report() *benchReport {
	r := l.tally.report(l.took)
	if l.flags.rate > 0 {
		lasted := min(l.took, l.flags.span)
		due := (int64(lasted)*l.flags.rate + int64(time.Second) - 1) / int64(time.Second)
		r.Unsent = max(due-l.tally.asked.Load(), 0)
	}
	return r
}
