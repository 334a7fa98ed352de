package raftstore

import (
	"sync"
	"time"

	"github.com/admitd/admit/admission"
)

// class is the urgency of an operation. What frees room goes before what takes
// it, and what merely announces work goes last.
type class uint8

const (
	control class = iota
	leases
	grants
	schedules
	classes
)

var classNames = [classes]string{"control", "leases", "grants", "schedules"}

// classLoads bounds the load of each class's queue. As each has its own, no
// flood of Acquires makes a Release be refused.
var classLoads = [classes]int{256, 64 << 10, 32 << 10, 32 << 10}

// flowKey says whose turn it is within a class.
type flowKey struct{ pool, tenant string }

// classify returns an operation's class, its flow, and how many rows it may
// touch: what it costs to apply.
func classify(op admission.Op) (class, flowKey, int) {
	switch op := op.(type) {
	case *admission.Release:
		return leases, flowKey{}, 1
	case *admission.Renew:
		return leases, flowKey{}, max(1, len(op.Tokens))
	case admission.Detach:
		return leases, flowKey{}, 1 // it frees a place in line, perhaps the first
	case *admission.Acquire:
		return grants, flowKey{op.Pool, op.Tenant}, 1
	case *admission.LeaseShare:
		return grants, flowKey{op.Pool, op.Tenant}, 1
	case *admission.Take:
		return grants, flowKey{pool: op.Pool}, max(1, len(op.Parts))
	case *admission.ReportDemand:
		return grants, flowKey{op.Pool, op.Tenant}, 1
	case *admission.NextDue:
		return grants, flowKey{pool: op.Pool}, max(1, op.MaxItems)
	case *admission.Schedule:
		if len(op.Entries) == 0 {
			return schedules, flowKey{pool: op.Pool}, 1
		}
		return schedules, flowKey{op.Pool, op.Entries[0].Tenant}, len(op.Entries)
	case *admission.Redrive:
		return schedules, flowKey{op.Pool, op.Filter.Tenant}, admission.MaxRedrive
	case *admission.PurgeDead:
		return schedules, flowKey{op.Pool, op.Filter.Tenant}, admission.MaxRedrive
	case admission.Unschedule:
		return schedules, flowKey{op.Pool, op.Tenant}, 1
	case *admission.PutTenants:
		return control, flowKey{pool: op.Pool}, max(1, len(op.Rows))
	}
	return control, flowKey{}, 1
}

// loadOf is what an operation costs to keep: its rows, unless it brings none
// with it.
func loadOf(op admission.Op, rows int) int {
	switch op.(type) {
	case *admission.NextDue, *admission.PutTenants:
		return 1
	}
	return rows
}

// queue holds what waits for the proposer.
type queue struct {
	mu sync.Mutex
	// closed is why nothing may be added any more, or nil.
	closed  error
	classes [classes]classQueue
	// pace is how long the last entry took, for estimates.
	pace time.Duration
}

// classQueue gives each flow with items its turn.
type classQueue struct {
	load  int
	flows map[flowKey]*flow
	// first and last are the ring, in order of turns.
	first, last *flow
	// spare are flows to use again.
	spare *flow
}

// flow is one (pool, tenant)'s items, first in first out.
type flow struct {
	key         flowKey
	first, last *item
	next        *flow
}

// push adds all of a call's items, or none.
func (q *queue) push(c *call) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.addLocked(c)
}

// turnedAway is a call that found no room, and why.
type turnedAway struct {
	call *call
	why  error
}

// pushEach is push for each of many calls, at once.
func (q *queue) pushEach(calls []*call) (refused []turnedAway) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range calls {
		if err := q.addLocked(c); err != nil {
			refused = append(refused, turnedAway{c, err})
		}
	}
	return refused
}

func (q *queue) addLocked(c *call) error {
	if q.closed != nil {
		return q.closed
	}
	var load [classes]int
	for i := range c.items {
		load[c.items[i].class] += c.items[i].load
	}
	for k, n := range load {
		// An empty queue takes anything, lest a large call never fit.
		if queued := q.classes[k].load; n > 0 && queued > 0 && queued+n > classLoads[k] {
			return &OverloadedError{Queue: classNames[k], RetryAfter: q.drainTime(queued)}
		}
	}
	for i := range c.items {
		q.classes[c.items[i].class].push(&c.items[i])
	}
	return nil
}

// drainTime estimates how long it takes to work off a load. At least 10 ms.
func (q *queue) drainTime(load int) time.Duration {
	entries := time.Duration(1 + load/maxEntryRows)
	return max(10*time.Millisecond, entries*q.pace.Round(time.Millisecond))
}

// fill takes the items of the next entry, most urgent class first. Those whose
// callers have gone are dropped on the way.
func (q *queue) fill(now time.Time) (items []*item, bytes int) {
	items, bytes, dropped := q.take(now)
	for _, it := range dropped {
		it.call.finish()
	}
	return items, bytes
}

func (q *queue) take(now time.Time) (items []*item, bytes int, dropped []*item) {
	q.mu.Lock()
	defer q.mu.Unlock()
	rows := 0
	for k := range q.classes {
		c := &q.classes[k]
		for it := c.peek(); it != nil; it = c.peek() {
			full := rows+it.rows > maxEntryRows || bytes+len(it.op) > maxEntryBytes
			if full && len(items) > 0 {
				return items, bytes, dropped
			}
			c.pop()
			if !it.call.seal(now) {
				dropped = append(dropped, it)
				continue
			}
			rows += it.rows
			bytes += len(it.op)
			items = append(items, it)
		}
	}
	return items, bytes, dropped
}

// close refuses what comes and returns what is queued.
func (q *queue) close(why error) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = why
	var items []*item
	for k := range q.classes {
		for it := q.classes[k].peek(); it != nil; it = q.classes[k].peek() {
			items = append(items, q.classes[k].pop())
		}
	}
	return items
}

// took notes how long an entry took.
func (q *queue) took(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pace = d
}

// loads returns what is queued in each class.
func (q *queue) loads() (loads [classes]int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k := range q.classes {
		loads[k] = q.classes[k].load
	}
	return loads
}

func (c *classQueue) push(it *item) {
	c.load += it.load
	f, ok := c.flows[it.flow]
	if !ok {
		f = c.newFlow(it.flow)
	}
	if f.last == nil {
		f.first = it
	} else {
		f.last.next = it
	}
	f.last = it
}

func (c *classQueue) peek() *item {
	if c.first == nil {
		return nil
	}
	return c.first.first
}

// pop takes the item that peek shows and passes the turn on.
func (c *classQueue) pop() *item {
	f := c.first
	it := f.first
	c.load -= it.load
	f.first, it.next = it.next, nil
	c.first = f.next
	if c.first == nil {
		c.last = nil
	}
	if f.first != nil {
		c.append(f)
		return it
	}
	delete(c.flows, f.key)
	*f = flow{next: c.spare}
	c.spare = f
	return it
}

func (c *classQueue) newFlow(key flowKey) *flow {
	if c.flows == nil {
		c.flows = make(map[flowKey]*flow)
	}
	f := c.spare
	if f == nil {
		f = new(flow)
	} else {
		c.spare = f.next
	}
	f.key = key
	c.flows[key] = f
	c.append(f)
	return f
}

// append puts f at the end of the ring.
func (c *classQueue) append(f *flow) {
	f.next = nil
	if c.last == nil {
		c.first = f
	} else {
		c.last.next = f
	}
	c.last = f
}
