package clock

import (
	"sync"
	"time"
)

// Skewed runs with another clock, but can be set and made to run fast or slow. It is
// for tests of what a bad clock does.
type Skewed struct {
	base Clock

	mu sync.Mutex
	// since is what base showed when this clock showed shown; from then on it runs
	// ahead by ppm millionths.
	since, shown Reading
	ppm          int64
}

// NewSkewed returns a clock that as yet is as good as base.
func NewSkewed(base Clock) *Skewed {
	now := base.Now()
	return &Skewed{base: base, since: now, shown: now}
}

// Now reads the clock.
func (c *Skewed) Now() Reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *Skewed) nowLocked() Reading {
	passed := c.base.Now().Since(c.since)
	passed += time.Duration(int64(passed) / 1_000_000 * c.ppm)
	return Reading{Wall: c.shown.Wall.Add(passed), Mono: c.shown.Mono + passed}
}

// StepWall sets the wall clock forward by d, or back, while no time passes.
func (c *Skewed) StepWall(d time.Duration) {
	c.change(func() { c.shown.Wall = c.shown.Wall.Add(d) })
}

// Drift has the clock run fast by so many millionths from now on, or slow.
func (c *Skewed) Drift(ppm int64) { c.change(func() { c.ppm = ppm }) }

func (c *Skewed) change(by func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown, c.since = c.nowLocked(), c.base.Now()
	by()
}

// NewTimer returns a timer of base: waiting is not what a bad clock gets wrong first.
func (c *Skewed) NewTimer(d time.Duration) Timer { return c.base.NewTimer(d) }
