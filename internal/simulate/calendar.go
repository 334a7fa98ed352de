package simulate

import (
	"container/heap"

	"github.com/admitd/admit/admission"
)

// event is something that happens at a moment; among equals, what was entered
// first.
type event struct {
	at  admission.Instant
	seq uint64
	do  func()
}

// calendar is a heap of events.
type calendar struct {
	events []event
	seq    uint64
}

// enter plans what happens at a moment.
func (c *calendar) enter(at admission.Instant, do func()) {
	c.seq++
	heap.Push(c, event{at, c.seq, do})
}

// next takes the first event.
func (c *calendar) next() event { return heap.Pop(c).(event) }

func (c *calendar) Len() int { return len(c.events) }

func (c *calendar) Less(i, j int) bool {
	a, b := c.events[i], c.events[j]
	return a.at < b.at || a.at == b.at && a.seq < b.seq
}

func (c *calendar) Swap(i, j int) { c.events[i], c.events[j] = c.events[j], c.events[i] }

func (c *calendar) Push(x any) { c.events = append(c.events, x.(event)) }

func (c *calendar) Pop() any {
	last := len(c.events) - 1
	e := c.events[last]
	c.events[last] = event{}
	c.events = c.events[:last]
	return e
}
