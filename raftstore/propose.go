package raftstore

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// proposal is an entry on its way through the log.
type proposal struct {
	id     uint64
	items  []*item
	sealed clock.Reading
	err    error
	// spans are those of the traced calls that have a part in it.
	spans []trace.Span
}

// randomID begins the numbering of a term's proposals where no other has.
func randomID() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.LittleEndian.Uint64(b[:])
}

// run proposes what is queued until quit is closed. An entry is sealed as soon
// as there is something for it and a slot free, without waiting for more: while
// one is on the disk the next fills, so entries grow with the load alone.
func (t *term) run(quit <-chan struct{}) {
	free := maxInFlight
	tick := t.s.clk.NewTimer(t.tickIn(clock.Reading{}))
	defer tick.Stop()
	var ticked clock.Reading
	for {
		due := false
		select {
		case <-quit:
			t.waits.close(t.drain(free))
			return
		case p := <-t.returned:
			free++
			t.conclude(p)
			tick.Reset(t.tickIn(ticked))
		case <-t.wake:
		case <-tick.C():
			due = true
		}
		for free > 0 && t.sealNext() {
			free--
		}
		if !due || free < maxInFlight {
			continue // what is in flight brings the tick back
		}
		if wait := t.tickIn(ticked); wait > 0 {
			tick.Reset(wait)
			continue
		}
		ticked = t.s.clk.Now()
		t.send(t.polls.attach(nil, 0))
		free--
	}
}

// never is longer than any term.
const never = 100 * 365 * 24 * time.Hour

// tickIn returns the time until a tick has something to do: a lease expires, or
// a route comes due.
func (t *term) tickIn(last clock.Reading) time.Duration {
	at, w := t.now()
	wait := never
	t.s.fsm.read(func(st *admission.State) {
		if deadline, pending := st.Deadline(); pending {
			wait = min(wait, deadline.Sub(at))
		}
		if due, pending := st.Due(); pending {
			wait = min(wait, due.Sub(w))
		}
	})
	if wait == never {
		return never
	}
	wait = max(0, wait)
	if last != (clock.Reading{}) {
		wait = max(wait, tickInterval-t.s.clk.Now().Since(last))
	}
	return wait
}

// sealNext proposes what is queued, if anything is.
func (t *term) sealNext() bool {
	items, bytes := t.queue.fill(t.s.clk.Now().Wall)
	for k, load := range t.queue.loads() {
		t.s.metrics.depth[k].Set(float64(load))
	}
	if len(items) == 0 {
		return false
	}
	t.send(t.polls.attach(items, bytes))
	return true
}

// send proposes an entry: a tick, if there is nothing in it. It comes back through t.returned.
func (t *term) send(items []*item, bytes int) {
	p := &proposal{items: items, sealed: t.s.clk.Now()}
	ops := make([][]byte, len(items))
	for i, it := range items {
		ops[i] = it.op
	}
	t.mu.Lock()
	t.lastID++
	p.id = t.lastID
	t.flights = append(t.flights, p)
	t.mu.Unlock()
	p.beginSpans(t.number)
	at, w := t.t0.Add(p.sealed.Since(t.start)), wall(p.sealed)
	data, err := encodeCommand(stamp{p.id, at, w, t.nextCheck(at)}, ops, bytes)
	if err != nil {
		p.err = err
		t.returned <- p
		return
	}
	t.s.metrics.batchSize.Observe(float64(len(items)))
	future := t.s.raft.Apply(data, 0)
	t.s.waiters.Go(func() {
		p.err = outcome(future)
		t.returned <- p
	})
}

// take returns the proposal with that id, which was just applied, or nil if
// it is not one of this term's that anybody still waits for.
func (t *term) take(id uint64) *proposal {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, p := range t.flights {
		if p.id == id {
			t.flights = append(t.flights[:i], t.flights[i+1:]...)
			return p
		}
	}
	return nil
}

// conclude fails the items of an entry that was not applied.
func (t *term) conclude(p *proposal) {
	if t.s.transfers.stuck(p.err, t.s.cfg.electionTimeout()) {
		t.s.fail(errTransfer)
	}
	if t.take(p.id) == nil {
		return // applied: its items have been answered
	}
	err := proposalError(p.err)
	if p.err == nil {
		err = fmt.Errorf("%w: it was applied unnoticed", ErrOutcomeUnknown)
	}
	p.endSpans(0, err)
	unseal := !errors.Is(err, ErrOutcomeUnknown)
	t.unsettled = t.unsettled || !unseal
	for _, it := range p.items {
		it.call.fail(err, unseal)
	}
}

// drain ends the term: what is queued was not done, what is in flight is waited
// for. It returns why, and whether all of that has been applied or never will be.
func (t *term) drain(free int) (why error, settled bool) {
	why = t.s.unavailable()
	for _, it := range t.queue.close(why) {
		it.call.fail(why, false)
	}
	t.polls.close(why)
	for ; free < maxInFlight; free++ {
		select {
		case p := <-t.returned:
			t.conclude(p)
		case <-t.s.failed:
			// The disk hangs, or raft ended and forgot what it had not begun.
			t.abandon()
			return why, false
		}
	}
	return why, !t.unsettled
}

// abandon gives up what is in flight.
func (t *term) abandon() {
	t.mu.Lock()
	flights := t.flights
	t.flights = nil
	t.mu.Unlock()
	for _, p := range flights {
		p.endSpans(0, ErrOutcomeUnknown)
		for _, it := range p.items {
			it.call.fail(fmt.Errorf("%w: %w", ErrOutcomeUnknown, t.s.Err()), false)
		}
	}
}
