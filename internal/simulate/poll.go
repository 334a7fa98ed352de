package simulate

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// room is how many more jobs the worker takes into its hands.
func (w *worker) room() int64 { return w.fleet.workers.MaxItems - int64(len(w.hands)) }

// poll returns the worker's NextDue.
func (w *worker) poll(woken bool) call {
	g := w.fleet.workers
	return call{worker: w, woken: woken, op: &admission.NextDue{
		Pool: g.Pool, MaxItems: int(w.room()), TTL: g.TTL, Lanes: g.Lanes, WorkerID: w.name, Nonce: w.fleet.run.nextNonce(),
	}}
}

// pollEvery polls now and then every interval.
func (w *worker) pollEvery() {
	r := w.fleet.run
	if w.room() > 0 && !w.gone {
		r.apply(w.poll(false))
	}
	r.events.enter(r.now.Add(w.fleet.workers.Interval), w.pollEvery)
}

// park lets the worker wait for work, if that is how it polls and it has room.
func (w *worker) park() {
	f := w.fleet
	if f.workers.kind != workLongPoll || w.parked || w.gone || w.room() <= 0 {
		return
	}
	w.parked = true
	f.parked = append(f.parked, w)
}

// letGo takes the longest parked poll.
func (f *fleet) letGo(woken bool) call {
	w := f.parked[0]
	f.parked = f.parked[1:]
	w.parked = false
	return w.poll(woken)
}

// attached returns the parked polls that what is asked may serve: one of each
// fleet for each release, each Schedule, and for a tick.
func (r *run) attached(calls []call) []call {
	var polls []call
	for _, f := range r.fleets {
		n := 0
		for i := range calls {
			switch op := calls[i].op.(type) {
			case *admission.Release:
				if j := calls[i].job; j != nil && j.source.lane.ledger == f.ledger { // polls see by themselves what a sidecar returns
					n++
				}
			case *admission.Schedule:
				if op.Pool == f.ledger.name {
					n++
				}
			}
		}
		if len(calls) == 0 {
			n = 1
		}
		for range min(n, len(f.parked)) {
			polls = append(polls, f.letGo(false))
		}
	}
	return polls
}

// polled is when the worker's poll was answered with n claims.
func (w *worker) polled(c *call, n int) {
	f := w.fleet
	asked := c.op.(*admission.NextDue).MaxItems
	if n == asked {
		f.window = min(f.window+1, maxWindow)
	} else {
		f.window = 1
	}
	if n == 0 && c.woken { // the core was early
		f.notBefore = f.run.now.Add(earlyWait)
	}
	w.park()
}

const (
	// maxWindow is how many polls of a fleet one entry serves at most.
	maxWindow = 64
	// earlyWait is how long a poll waits that was let go too early.
	earlyWait = time.Millisecond
)

// wake plans when the parked polls of each fleet are let go.
func (r *run) wake() {
	for _, f := range r.fleets {
		if len(f.parked) == 0 {
			continue
		}
		op := admission.NextDue{Pool: f.workers.Pool, MaxItems: 1, Lanes: f.workers.Lanes}
		delay, ok := r.state.PollDelay(r.now, r.wall(), &op)
		if !ok {
			f.wakeAt = never
			continue
		}
		f.wakeBy(max(r.now.Add(delay), f.notBefore))
	}
}

// wakeBy lets polls go at a moment, and not at the one that was planned.
func (f *fleet) wakeBy(at admission.Instant) {
	if at == f.wakeAt {
		return
	}
	f.wakeAt = at
	f.run.events.enter(at, func() {
		if f.wakeAt != at {
			return
		}
		f.wakeAt = never
		var calls []call
		for range min(f.window, len(f.parked)) {
			calls = append(calls, f.letGo(true))
		}
		if len(calls) > 0 {
			f.run.apply(calls...)
		}
	})
}

// parkedRoom returns by rank of lane how much due work parked polls would take.
func (r *run) parkedRoom(l *ledger) []int64 {
	rooms := make([]int64, len(l.lanes))
	for _, f := range r.fleets {
		if f.ledger != l || f.workers.kind != workLongPoll {
			continue
		}
		room := int64(0)
		for _, w := range f.parked {
			room += w.room()
		}
		for i, ln := range l.lanes {
			if len(f.workers.Lanes) == 0 || slices.Contains(f.workers.Lanes, ln.name) {
				rooms[i] += room
			}
		}
	}
	return rooms
}
