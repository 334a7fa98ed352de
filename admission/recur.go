package admission

import "time"

// recurrence is how an entry comes back: on a fixed grid (every), or a fixed
// delay after each report (cadence). A value in a row is never changed, only
// replaced.
type recurrence struct {
	every   time.Duration
	cadence *CadencePolicy

	// behind counts the boundaries of the grid that are still to be caught up,
	// the present one included; the grid goes on at resume then. It is 0 while
	// nothing is caught up.
	behind int32
	resume Wall
	// misses counts the reports without a hit since the last one.
	misses int32
}

// catchUp is how many missed boundaries are delivered; older ones go first, the
// rest is skipped and counted.
const catchUp = 64

// measure looks at how far a grid is behind as its boundary is claimed, and
// returns how many boundaries are skipped for good. Only a claim with no
// catch-up in progress measures.
func (r recurrence) measure(boundary, now Wall) (next recurrence, skipped int64) {
	if r.every == 0 || r.behind > 0 {
		return r, 0
	}
	missed := int64(max(now.Sub(boundary), 0)/r.every) + 1
	if missed == 1 {
		return r, 0 // a retry of this boundary looks again
	}
	r.resume = boundary + Wall(missed)*Wall(r.every)
	r.behind = int32(min(missed, catchUp))
	return r, missed - int64(r.behind)
}

// following returns the recurrence after the occurrence at boundary has ended, and
// when the next one is due. hit and at say how the report was and when.
func (r recurrence) following(boundary Wall, hit bool, at Wall) (next recurrence, due Wall) {
	if r.cadence != nil {
		r.misses++
		if hit {
			r.misses = 0
		}
		return r, at.Add(r.cadence.delay(r.misses))
	}
	if r.behind == 1 {
		return recurrence{every: r.every}, r.resume
	}
	r.behind = max(r.behind-1, 0)
	return r, boundary.Add(r.every)
}

// delay is base after a hit, and base·factor^n after the n-th miss in a row, at
// most max.
func (c *CadencePolicy) delay(misses int32) time.Duration {
	d := c.Base
	for range misses {
		if d >= c.Max/time.Duration(c.Factor) {
			return c.Max
		}
		d *= time.Duration(c.Factor)
	}
	return min(d, c.Max)
}
