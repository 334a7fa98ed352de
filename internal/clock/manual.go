package clock

import (
	"sync"
	"time"
)

// Manual is a clock that moves only when told to. It is for tests.
type Manual struct {
	mu     sync.Mutex
	now    Reading
	timers map[*manualTimer]struct{}
}

// NewManual returns a clock that stands at wall.
func NewManual(wall time.Time) *Manual {
	return &Manual{now: Reading{Wall: wall.Round(0)}, timers: make(map[*manualTimer]struct{})}
}

// Now reads the clock.
func (c *Manual) Now() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance lets d pass and fires the timers that come due.
func (c *Manual) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Mono += d
	c.now.Wall = c.now.Wall.Add(d)
	for t := range c.timers {
		t.fireIfDueLocked()
	}
}

// StepWall sets the wall clock forward by d, or back, while no time passes.
func (c *Manual) StepWall(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.Wall = c.now.Wall.Add(d)
}

// NewTimer returns a timer that fires when the clock has been advanced by d.
func (c *Manual) NewTimer(d time.Duration) Timer {
	t := &manualTimer{clock: c, c: make(chan time.Time, 1)}
	t.Reset(d)
	return t
}

type manualTimer struct {
	clock *Manual
	c     chan time.Time
	due   time.Duration
}

func (t *manualTimer) C() <-chan time.Time { return t.c }

func (t *manualTimer) Reset(d time.Duration) {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	t.drain()
	t.due = t.clock.now.Mono + d
	t.clock.timers[t] = struct{}{}
	t.fireIfDueLocked()
}

func (t *manualTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
	t.drain()
}

func (t *manualTimer) fireIfDueLocked() {
	if t.due > t.clock.now.Mono {
		return
	}
	delete(t.clock.timers, t)
	t.c <- t.clock.now.Wall
}

func (t *manualTimer) drain() {
	select {
	case <-t.c:
	default:
	}
}
