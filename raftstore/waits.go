package raftstore

import (
	"context"
	"slices"
	"sync"
	"time"

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
	// closed is why nobody may listen any more, or nil; definite says that none who
	// did will be granted either.
	closed   error
	definite bool
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
	// key is set while it is in line. detached says that it leaves the line, and may
	// be granted before it does.
	key      admission.WaiterKey
	detached bool
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

// leave notes that a call has ended, and has the waiters detached that nobody listens
// for any more.
func (ws *waits) leave(c *call) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	var deaf []admission.WaiterKey
	for i := range c.items {
		it := &c.items[i]
		w := it.wait
		if w == nil {
			continue
		}
		w.calls--
		it.left = true
		ws.removeLocked(it)
		if w.calls > 0 {
			continue
		}
		delete(ws.byName, w.name)
		if w.key == (admission.WaiterKey{}) {
			continue
		}
		if key := ws.forget(w); !w.detached {
			deaf = append(deaf, key)
		}
	}
	// Under the lock: who comes next under the same id is queued behind this.
	for _, key := range deaf {
		_ = ws.detachLocked(key, nil)
	}
}

// listens says whether an item is among those that listen.
func (ws *waits) listens(it *item) bool { return slices.Contains(it.wait.items, it) }

// deafen is removeLocked for who has not locked.
func (ws *waits) deafen(it *item) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.removeLocked(it)
}

// removeLocked takes an item from those that listen, and says whether it did. Who does
// so, and nobody else, is to tell the item's call its end.
func (ws *waits) removeLocked(it *item) bool {
	at := slices.Index(it.wait.items, it)
	if at < 0 {
		return false
	}
	it.wait.items = slices.Delete(it.wait.items, at, at+1)
	ws.count(-1)
	return true
}

// partingTime bounds how long a call that is to end may take to learn what became of
// its wait.
const partingTime = time.Second

// part has the waiter of a call that is one Acquire detached, and waits until that
// is applied. It returns true if it is: the Acquire is granted by then, or has left
// the line, or keeps its place there without being granted until it is sent again.
func (t *term) part(c *call) bool {
	gone, ends := t.waits.part(c)
	var left <-chan struct{} // never, where nothing is detached
	switch {
	case gone != nil:
		left = gone.done
	case !ends:
		return false
	}
	timer := t.s.clk.NewTimer(partingTime)
	defer timer.Stop()
	select {
	case <-left:
		_, err := gone.outcome(nil)
		return err == nil
	case <-c.done:
		return true
	case <-timer.C():
		return false
	}
}

// part detaches the waiter of a call, if nobody else listens for it. ends says that
// there is none any more: the call is about to be told how its wait ended.
func (ws *waits) part(c *call) (gone *call, ends bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(c.items) != 1 || c.items[0].wait == nil {
		return nil, false
	}
	w := c.items[0].wait
	if c.items[0].ends || w.calls > 1 || w.key == (admission.WaiterKey{}) {
		return nil, c.items[0].ends
	}
	gone = ws.detachLocked(w.key, nil)
	w.detached = gone != nil
	return gone, false
}

// detachLocked has a waiter detached, and then, if it is set, told what came of that.
// Where it can't be logged, the wait goes on until its time is up, or the next leader
// detaches it.
func (ws *waits) detachLocked(key admission.WaiterKey, then func(error)) *call {
	c, err := newCall(context.Background(), []Request{{Op: admission.Detach{Waiter: key}}}, make([]Answer, 1))
	if then != nil {
		c.then = func() { then(c.err) }
	}
	if err != nil || ws.t.submit(c) != nil {
		return nil
	}
	return c
}

// listen notes that an item's Acquire is in line. If nobody is left who would listen
// it is detached.
func (ws *waits) listen(key admission.WaiterKey, it *item) {
	if over, definite := ws.add(key, it); over != nil {
		it.call.fail(over, definite)
	}
}

// add is listen. It returns what to tell the item's call, if it is not to listen, and
// whether that is certain.
func (ws *waits) add(key admission.WaiterKey, it *item) (over error, definite bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed != nil {
		return ws.closed, ws.definite
	}
	w := it.wait
	if again := ws.byName[w.name]; it.left && again != nil {
		w = again
	}
	if w.calls == 0 {
		_ = ws.detachLocked(key, nil)
		return nil, false
	}
	w.key, w.detached = key, false
	ws.byKey[key] = w
	if !it.left {
		w.items, w.since = append(w.items, it), ws.t.s.clk.Now()
		ws.count(1)
	}
	if it.withdrawn {
		return ws.withdrawLocked(it), false
	}
	return nil, false
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
	for _, it := range items {
		it.ends = true
	}
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

// close fails the calls that listen, and those to come. It is definite where nothing
// that this term proposed may still be applied: the next leader detaches all that wait
// before it grants anything.
func (ws *waits) close(why error, definite bool) {
	for _, it := range ws.shut(why, definite) {
		it.call.fail(why, definite)
	}
}

// shut lets nobody listen any more, and returns who did.
func (ws *waits) shut(why error, definite bool) (items []*item) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.closed, ws.definite = why, definite
	for _, w := range ws.byKey {
		items = append(items, w.items...)
		w.items = nil
	}
	ws.count(-len(items))
	clear(ws.byKey)
	return items
}

func (ws *waits) count(n int) {
	ws.listening += n
	ws.t.s.metrics.waiting.Set(float64(ws.listening))
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
