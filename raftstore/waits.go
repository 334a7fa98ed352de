package raftstore

import (
	"context"
	"slices"
	"sync"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// waits are the Acquires in line for which somebody listens here. The line itself
// is the state's; this is who is to be told when a wait ends.
//
// Calls that send the same Acquire again, by its request id, listen together: all
// are told the end, and only when the last of them has gone is the waiter
// detached. A call counts from before it is proposed, so that one that goes does
// not detach the waiter from the one that comes after it.
type waits struct {
	t *term

	mu sync.Mutex
	// closed is why nobody may listen any more, or nil.
	closed error
	// byKey are those in line, byName those with a request id.
	byKey  map[admission.WaiterKey]*wait
	byName map[waitName]*wait
	// listening is how many items there are in all.
	listening int
}

// waitName tells Acquires with a request id apart.
type waitName struct {
	flow      flowKey
	requestID string
}

// wait is one Acquire that may wait, with the calls that sent it.
type wait struct {
	// name is zero where there is no request id.
	name waitName
	// calls are those that have not ended.
	calls int
	// key is set while it is in line.
	key admission.WaiterKey
	// items are those that listen, since when.
	items []*item
	since clock.Reading
}

func newWaits(t *term) *waits {
	return &waits{t: t, byKey: make(map[admission.WaiterKey]*wait), byName: make(map[waitName]*wait)}
}

// enter notes a call that is about to be proposed, if it has anything that may
// wait. The caller calls leave when the call has ended.
func (ws *waits) enter(c *call, reqs []Request) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range c.items {
		it := &c.items[i]
		if op, ok := reqs[it.place].Op.(*admission.Acquire); ok && op.MaxWait > 0 {
			it.wait = ws.named(waitName{it.flow, op.RequestID})
			it.wait.calls++
		}
	}
}

func (ws *waits) named(name waitName) *wait {
	if name.requestID == "" {
		return &wait{}
	}
	w := ws.byName[name]
	if w == nil {
		w = &wait{name: name}
		ws.byName[name] = w
	}
	return w
}

// leave notes that a call has ended. It returns the waiters that nobody listens
// for any more.
func (ws *waits) leave(c *call) (deaf []admission.WaiterKey) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range c.items {
		it := &c.items[i]
		w := it.wait
		if w == nil {
			continue
		}
		w.calls--
		it.left = true
		if at := slices.Index(w.items, it); at >= 0 {
			w.items = slices.Delete(w.items, at, at+1)
			ws.count(-1)
		}
		if w.calls > 0 {
			continue
		}
		delete(ws.byName, w.name)
		if w.key != (admission.WaiterKey{}) {
			deaf = append(deaf, ws.forget(w))
		}
	}
	return deaf
}

// listen notes that an item's Acquire is in line. It returns false if nobody is
// left who would listen.
func (ws *waits) listen(key admission.WaiterKey, it *item) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed != nil {
		it.call.fail(ws.closed, false)
		return true
	}
	w := it.wait
	if again := ws.byName[w.name]; it.left && again != nil {
		w = again
	}
	if w.calls == 0 {
		return false
	}
	w.key = key
	ws.byKey[key] = w
	if !it.left {
		w.items, w.since = append(w.items, it), ws.t.s.clk.Now()
		ws.count(1)
	}
	return true
}

// end returns who listened for a waiter that is no longer in line, or nil.
func (ws *waits) end(key admission.WaiterKey) (items []*item, since clock.Reading) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.byKey[key]
	if w == nil {
		return nil, clock.Reading{}
	}
	items, w.items = w.items, nil
	ws.count(-len(items))
	ws.forget(w)
	return items, w.since
}

// forget notes that a wait is not in line, and returns the key that it had.
func (ws *waits) forget(w *wait) admission.WaiterKey {
	key := w.key
	delete(ws.byKey, key)
	w.key = admission.WaiterKey{}
	return key
}

// close fails the calls that listen, and those to come.
func (ws *waits) close(why error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed = why
	for _, w := range ws.byKey {
		for _, it := range w.items {
			it.call.fail(why, false)
		}
		ws.count(-len(w.items))
		w.items = nil
	}
	clear(ws.byKey)
}

func (ws *waits) count(n int) {
	ws.listening += n
	ws.t.s.metrics.waiting.Set(float64(ws.listening))
}

// detach has a waiter detached. Where that can't be logged, the wait goes on until
// its time is up, or the next leader detaches it.
func (t *term) detach(keys ...admission.WaiterKey) {
	for _, key := range keys {
		c, err := newCall(context.Background(), []Request{{Op: admission.Detach{Waiter: key}}}, make([]Answer, 1))
		if err == nil {
			_ = t.submit(c)
		}
	}
}

// endWaits answers those who listened for the waits that an entry ended. The
// caller holds the read lock.
func (t *term) endWaits(st *admission.State, e admission.Entry) {
	at, _ := st.Now()
	for i, end := range st.Ended() {
		items, since := t.waits.end(end.Waiter)
		for _, it := range items {
			a := &it.call.answers[it.place]
			*a = Answer{
				Result: end.Result, NextDueIn: admission.Absent, Place: Place{e.Index, i, true}, Waited: t.s.clk.Now().Since(since),
			}
			q := admission.SheddingQuery{Pool: end.Pool, Tenant: end.Tenant}
			a.Shedding = buildShedding(st, at, e.W, q, t.sheds)
			it.call.finish()
		}
	}
}
