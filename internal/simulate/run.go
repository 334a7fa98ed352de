package simulate

import (
	"fmt"
	"time"

	"github.com/admitd/admit/admission"
)

// run is one simulation on its way.
type run struct {
	w       *Workload
	state   *admission.State
	index   uint64
	now     admission.Instant
	ticked  admission.Instant
	nonce   uint64
	turns   int
	events  calendar
	ledgers []*ledger
	sources []*source
	fleets  []*fleet
	// asks are the Acquires in line, by their place in the log.
	asks map[admission.WaiterKey]*job

	promises promises
	counts   counts
	// err is what the core could not decide, which ends the run.
	err error
}

// counts are what a run did.
type counts struct {
	applies, ticks int64
	// jobs have arrived, over are those that are done or given up.
	jobs, over int64
	lost       int64
	// recovered are the times from the loss of a permit until its work was
	// granted anew.
	recovered durations
}

// epoch is the wall-clock time at which every run starts.
var epoch = admission.Wall(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// Run replays the workload and lists the top tenants of each pool. Its error says
// what the core could not decide.
func (w *Workload) Run(top int) (*Report, error) {
	r := newRun(w)
	if err := r.play(); err != nil {
		return nil, err
	}
	return r.report(top), nil
}

// play lets everything happen.
func (r *run) play() error {
	op := admission.ApplyPolicy{Policy: r.w.policy, ExpectedRevision: admission.AnyRevision}
	if err := r.log(op)[0].(*admission.PolicyResult).Err; err != nil {
		return err
	}
	r.look()
	r.begin()
	r.proceed()
	return r.err
}

// fail ends the run: the core could not decide what a stream asks.
func (r *run) fail(s *Stream, why *admission.Error) {
	if r.err == nil {
		r.err = fmt.Errorf("stream %s: %w", s.Name, why)
	}
}

func newRun(w *Workload) *run {
	r := &run{w: w, state: admission.New(), asks: map[admission.WaiterKey]*job{}}
	for i := range w.policy.Pools {
		r.ledgers = append(r.ledgers, newLedger(r, &w.policy.Pools[i]))
	}
	for _, g := range w.Workers {
		r.fleets = append(r.fleets, newFleet(r, g))
	}
	for _, s := range w.Streams {
		r.addSources(s)
	}
	for _, e := range w.expect {
		e.prepare(r)
	}
	return r
}

// watchEvery is after how many turns somebody who watches is told.
const watchEvery = 1000

// begin enters what happens by itself.
func (r *run) begin() {
	for _, s := range r.w.Streams {
		r.arrivals(s)
	}
	for _, f := range r.fleets {
		f.begin()
	}
}

// proceed lets everything happen in turn until the end.
func (r *run) proceed() {
	end := admission.Instant(r.w.Duration)
	last := end.Add(r.w.Drain)
	for r.err == nil {
		at, tick := r.nextTick()
		if r.events.Len() > 0 && (!tick || r.events.events[0].at <= at) {
			at, tick = r.events.events[0].at, false
		} else if !tick {
			at = last
		}
		if at >= end && r.counts.over == r.counts.jobs {
			r.pass(max(r.now, end))
			return
		}
		r.pass(min(at, last))
		if r.turns++; r.w.Watch != nil && r.turns%watchEvery == 0 {
			r.w.Watch(min(time.Duration(r.now), r.w.Duration))
		}
		if at > last {
			return
		}
		switch {
		case tick:
			r.ticked = at
			r.counts.ticks++
			r.apply()
		case r.events.Len() > 0:
			r.events.next().do()
		default:
			return
		}
	}
}

// pass moves the time on.
func (r *run) pass(to admission.Instant) {
	for _, l := range r.ledgers {
		l.idle.pass(to.Sub(r.now))
	}
	r.now = to
}

// tickInterval is how far apart a leader's ticks are at least.
const tickInterval = 5 * time.Millisecond

// nextTick returns when time must move on though nobody asks.
func (r *run) nextTick() (admission.Instant, bool) {
	at, pending := r.state.Deadline()
	if w, ok := r.state.Due(); ok {
		if due := admission.Instant(w.Sub(epoch)); !pending || due < at {
			at, pending = due, true
		}
	}
	return max(at, r.ticked.Add(tickInterval), r.now), pending
}

func (r *run) wall() admission.Wall { return epoch.Add(time.Duration(r.now)) }

func (r *run) ledger(pool string) *ledger {
	for _, l := range r.ledgers {
		if l.name == pool {
			return l
		}
	}
	return nil
}

func (r *run) nextNonce() uint64 {
	r.nonce++
	return r.nonce
}
