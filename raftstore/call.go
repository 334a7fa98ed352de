package raftstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/admitd/admit/admission"
)

// Request is one operation and what its answer is to show beside the result.
type Request struct {
	// Op is the operation; the store owns it from now on and fills in nonces.
	// A TermStart is not for callers.
	Op admission.Op
	// HeldRows is how many held tenants the answer to a NextDue shows. Other
	// answers show the caller's own tenant.
	HeldRows int
	// DryRun only asks what an Acquire would get now; it does not wait.
	DryRun bool
	// Span is that of the call which this is a part of, if it is traced: what becomes of
	// it in the log, and in line, is told below. Else it is nil.
	Span trace.Span
}

// Answer is what was decided, and the state right after. What it points to may
// be shared with other answers: read only.
type Answer struct {
	// Result is of the type that the operation's comment names.
	Result admission.Result
	// Shedding is nil where the operation names no known pool.
	Shedding *admission.Shedding
	// NextDueIn is the time until more is due, for a NextDue, or Absent.
	NextDueIn time.Duration
	// Place is where it was decided. Parts are the places of a Schedule that took
	// several, in the order of its entries; Place is then the last one's.
	Place
	Parts []Place
	// DryRun says that nothing was changed: a grant is one that would be.
	DryRun bool
	// Waited is how long an Acquire was in line, 0 if it was not.
	Waited time.Duration
	// Levels are how the buckets of each part of a Take stand.
	Levels [][]admission.TakeLevel
}

// Place is where in the log something was decided.
type Place struct {
	// Index is the log index of the decision, or of the state that refused.
	Index uint64
	// Position is the operation's place in that entry, or OffLog where it is in none.
	// Where a wait ended it is the end's place among those of the entry.
	Position int
	// WaitEnd says that a wait ended there.
	WaitEnd bool
}

// OffLog is the Position of what was decided without a log entry.
const OffLog = -1

// offLog is the place of what a state decides by itself.
func offLog(st *admission.State) Place { return Place{Index: st.Index(), Position: OffLog} }

// call is one Do on its way through the log.
type call struct {
	ctx     context.Context
	answers []Answer
	items   []item
	// until is when nobody waits for it any more, if that is known before: who waits
	// in Do has a context for it.
	until time.Time
	// done is closed when all items have their outcome; then is called instead where
	// it is set. No lock of the term is held, but the state may be.
	done chan struct{}
	then func()

	mu sync.Mutex
	// left are the items without an outcome.
	left int
	// sealed are the items that are, or may be, in the log.
	sealed int
	// gone is set when the caller no longer waits.
	gone bool
	err  error
	// traced is nil unless the call is.
	traced *traced

	// one and buf are the room that most calls need.
	one [1]item
	buf [192]byte
}

// item is one operation in the queue, and in an entry.
type item struct {
	call  *call
	class class
	flow  flowKey
	// rows are what it may touch, load is what it counts for in the queue.
	rows, load int
	// brings says for which parked polls it may be news.
	brings news
	// op is the operation as the log holds it.
	op []byte
	// place is the answer's place in the call.
	place    int
	heldRows int
	// whole is set for a part of a Schedule, whose entries begin at offset.
	whole  *wholeSchedule
	offset int
	// wait is set for an Acquire that may wait, left when its call has ended, withdrawn
	// when it is to leave the line, ends when its wait has ended and its call is about to
	// be told.
	wait      *wait
	left      bool
	withdrawn bool
	ends      bool
	next      *item
}

// wholeSchedule puts the results of a Schedule's parts together.
type wholeSchedule struct {
	result admission.ScheduleResult
	places []Place
	// left are the parts without a result; failed had an error for all entries.
	left, failed int
	parts        int
}

// Schedules are split so that none keeps an entry from others' operations.
const (
	partEntries = 128
	partBytes   = 64 << 10
)

// newCall encodes what is to be proposed: the requests that have no answer yet.
func newCall(ctx context.Context, reqs []Request, answers []Answer) (*call, error) {
	c := &call{done: make(chan struct{})}
	return c, c.init(ctx, reqs, answers)
}

func (c *call) init(ctx context.Context, reqs []Request, answers []Answer) error {
	c.ctx, c.answers, c.items = ctx, answers, c.one[:0]
	if len(reqs) > 1 {
		c.items = make([]item, 0, len(reqs))
	}
	buf := c.buf[:0]
	for place, r := range reqs {
		if answers[place].Result != nil {
			continue
		}
		if r.Span != nil && c.traced == nil {
			c.traced = &traced{span: r.Span}
		}
		var err error
		if buf, err = c.add(buf, place, r); err != nil {
			c.items = nil
			return err
		}
	}
	for i := range c.items {
		c.items[i].call = c
	}
	c.left = len(c.items)
	return nil
}

func (c *call) add(buf []byte, place int, r Request) ([]byte, error) {
	s, ok := r.Op.(*admission.Schedule)
	if !ok || len(s.Entries) <= 1 {
		return c.addItem(buf, r.Op, item{place: place, heldRows: r.HeldRows})
	}
	// All parts stay in one flow, and so in order.
	_, flow, _ := classify(s)
	whole := &wholeSchedule{result: admission.ScheduleResult{Entries: make([]admission.ScheduledEntry, len(s.Entries))}}
	for from := 0; from < len(s.Entries); {
		to := partEnd(s.Entries, from)
		part := &admission.Schedule{Pool: s.Pool, Entries: s.Entries[from:to]}
		var err error
		if buf, err = c.addItem(buf, part, item{place: place, flow: flow, whole: whole, offset: from}); err != nil {
			return nil, err
		}
		whole.parts++
		whole.left++
		from = to
	}
	return buf, nil
}

// partEnd returns where the part that begins at from ends.
func partEnd(entries []admission.EntrySpec, from int) int {
	const fixed = 48
	size := 0
	for to := from; to < len(entries); to++ {
		e := &entries[to]
		size += fixed + len(e.Tenant) + len(e.Key) + len(e.Category) + len(e.Route) + len(e.Group)
		if to > from && (to-from >= partEntries || size > partBytes) {
			return to
		}
	}
	return len(entries)
}

func (c *call) addItem(buf []byte, op admission.Op, it item) ([]byte, error) {
	setNonce(op)
	start := len(buf)
	buf, err := appendOp(buf, op)
	if err != nil {
		return nil, fmt.Errorf("propose: %w", err)
	}
	it.op = buf[start:len(buf):len(buf)]
	var flow flowKey
	if it.class, flow, it.rows = classify(op); it.whole == nil {
		it.flow = flow
	}
	it.load, it.brings = loadOf(op, it.rows), newsOf(op)
	c.items = append(c.items, it)
	return buf, nil
}

// setNonce gives an operation that grants the secret part of its tokens.
func setNonce(op admission.Op) {
	var nonce *uint64
	switch op := op.(type) {
	case *admission.Acquire:
		nonce = &op.Nonce
	case *admission.NextDue:
		nonce = &op.Nonce
	case *admission.LeaseShare:
		nonce = &op.Nonce
	default:
		return
	}
	var b [8]byte
	rand.Read(b[:])
	*nonce = binary.LittleEndian.Uint64(b[:])
}

// wait returns the outcome of the call.
func (c *call) wait() ([]Answer, error) {
	select {
	case <-c.done:
	case <-c.ctx.Done():
		return nil, c.leave(c.ctx.Err())
	}
	return c.outcome(nil)
}

// outcome returns what the call came to, or if it has come to nothing yet why it is
// left at that.
func (c *call) outcome(left error) ([]Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 {
		return nil, left
	}
	if c.err == nil {
		return c.answers, nil
	}
	if c.sealed > 0 && !errors.Is(c.err, ErrOutcomeUnknown) {
		return nil, fmt.Errorf("%w: a part of it was not done: %w", ErrOutcomeUnknown, c.err)
	}
	return nil, c.err
}

// leave gives the call up: what is not in the log yet will not be.
func (c *call) leave(why error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	c.endWaitLocked()
	if c.sealed == 0 {
		return why
	}
	return fmt.Errorf("%w: %v", ErrOutcomeUnknown, why)
}

// give gives the call up as leave does, where nobody is to be told now: what is not in
// the log yet will not be.
func (c *call) give() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
}

// seal tells the call that one of its items goes into the log, and returns
// whether it may: not if the caller has gone or is out of time. Then the item is to be
// finished.
func (c *call) seal(now time.Time) bool {
	late := c.ctx.Err()
	if late == nil && !c.until.IsZero() && now.After(c.until) {
		late = context.DeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if late == nil && c.gone {
		late = context.Canceled
	}
	if late != nil {
		c.noteLocked(late)
		return false
	}
	c.sealed++
	return true
}

// finish tells the call that one of its items has its outcome.
func (c *call) finish() {
	c.mu.Lock()
	c.left--
	over := c.left == 0
	if over {
		c.endWaitLocked()
	}
	c.mu.Unlock()
	switch {
	case !over:
	case c.then != nil:
		c.then()
	default:
		close(c.done)
	}
}

// fail tells the call that one of its items has no answer. An item that was
// sealed and is known not to be in the log, or to have had no effect, is unsealed.
func (c *call) fail(err error, unseal bool) {
	c.mu.Lock()
	if unseal {
		c.sealed--
	}
	c.noteLocked(err)
	c.mu.Unlock()
	c.finish()
}

// noteLocked notes why an item has no answer. That it isn't known what happened
// outweighs all that is.
func (c *call) noteLocked(err error) {
	if c.err == nil || errors.Is(err, ErrOutcomeUnknown) {
		c.err = err
	}
}
