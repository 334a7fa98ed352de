package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// fleet is workers alike, on their way.
type fleet struct {
	run     *run
	workers *Workers
	ledger  *ledger
	all     []*worker
	started bool

	// parked are the long polls that wait, the longest first.
	parked []*worker
	// window is how many polls are let go at once: one more after each that came
	// back full, and one again after any other.
	window int
	// wakeAt is when parked polls are let go next; none are before notBefore.
	wakeAt, notBefore admission.Instant

	// pending are the jobs to be asked for, idle the workers who ask next.
	pending []*job
	idle    []*worker
	stirred bool

	// sidecars take the jobs in turn, turn of them so far.
	sidecars []*sidecar
	turn     int
}

// worker does jobs.
type worker struct {
	fleet  *fleet
	name   string
	hands  []*hold
	parked bool
	// gone says that it has vanished and nobody took its place yet.
	gone bool
}

const never = admission.Instant(1<<63 - 1)

func newFleet(r *run, g *Workers) *fleet {
	f := &fleet{run: r, workers: g, ledger: r.ledger(g.Pool), window: 1, wakeAt: never}
	if g.kind == workSidecar {
		f.addSidecars()
		return f
	}
	for i := range g.Count {
		f.all = append(f.all, &worker{fleet: f, name: fmt.Sprint(g.Name, "-", i+1)})
	}
	if !g.kind.due() {
		f.idle = slices.Clone(f.all)
	}
	return f
}

// begin lets the workers start when they are to.
func (f *fleet) begin() {
	start := admission.Instant(f.workers.Start)
	f.run.events.enter(start, f.open)
	for i, w := range f.all {
		if f.workers.kind == workPoll { // in turn, not all at once
			first := f.workers.Interval * time.Duration(i) / time.Duration(len(f.all))
			f.run.events.enter(start.Add(first), w.pollEvery)
		}
	}
	if at := f.workers.CrashAt; at > 0 {
		f.run.events.enter(admission.Instant(at), func() {
			for _, w := range f.all {
				w.vanish()
			}
			for _, s := range f.sidecars {
				s.vanish()
			}
		})
	}
}

// open lets polls park, and jobs that wait be asked for.
func (f *fleet) open() {
	f.started = true
	for _, w := range f.all {
		w.park()
	}
	f.stir()
	f.run.wake()
}

// take puts a permit into the worker's hands.
func (w *worker) take(h *hold) { w.hands = append(w.hands, h) }

// give takes a permit out of the worker's hands, to be released.
func (w *worker) give(h *hold) {
	h.worker = nil
	w.hands = slices.DeleteFunc(w.hands, func(other *hold) bool { return other == h })
	w.park()
}

// vanish loses all that the worker has in hand. Somebody takes its place later.
func (w *worker) vanish() {
	f := w.fleet
	for _, h := range w.hands {
		h.worker = nil
		f.ledger.lose(h)
	}
	w.hands = nil
	w.gone = true
	if w.parked {
		w.parked = false
		f.parked = slices.DeleteFunc(f.parked, func(other *worker) bool { return other == w })
	}
	f.run.events.enter(f.run.now.Add(f.workers.Restart), func() {
		w.gone = false
		w.park()
		if !f.workers.kind.due() && f.workers.Count > 0 {
			f.rest(w)
		}
		f.run.wake()
	})
}

// rest lets a worker ask for the next job.
func (f *fleet) rest(w *worker) {
	f.idle = append(f.idle, w)
	f.stir()
}
