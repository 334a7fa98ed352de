package admission_test

import (
	"time"

	"github.com/admitd/admit/admission"
)

// The most boundaries of a grid that are caught up.
const naiveCatchUp = 64

func (e *naiveEntry) recurs() bool { return !e.letter && (e.spec.Every > 0 || e.cadence != nil) }

// cadence finds a cadence by name; no name is none.
func (p *naivePool) cadence(name string) (c *admission.CadencePolicy, ok bool) {
	for i := range p.policy.Cadences {
		if p.policy.Cadences[i].Name == name {
			return &p.policy.Cadences[i], true
		}
	}
	return nil, name == ""
}

func noCadence(pool, cadence string) *admission.Error {
	return &admission.Error{
		Reason: admission.InvalidField, Field: "cadence",
		Meta: []string{"pool", pool, "cadence", cadence},
	}
}

// measure looks at a claimed boundary how far the grid is behind, unless it is
// catching up.
func (e *naiveEntry) measure(p *naivePool, w admission.Wall) {
	if e.letter || e.spec.Every == 0 || e.left > 0 {
		return
	}
	for e.resume = e.first; e.resume <= w; e.resume = e.resume.Add(e.spec.Every) {
		if e.left == naiveCatchUp {
			p.skipped++
		} else {
			e.left++
		}
	}
	if e.left == 1 {
		e.left = 0 // nothing is caught up
	}
}

// recur lets an entry go on after the end of an occurrence, at a time.
func (n *naive) recur(e *naiveEntry, hit bool, from admission.Wall) {
	e.claim, e.waits, e.attempts, e.unstarted, e.history = nil, false, 0, 0, nil
	n.seq++
	e.seq = n.seq
	switch {
	case e.cadence != nil:
		e.misses++
		if hit {
			e.misses = 0
		}
		e.due = from.Add(naiveDelay(e.cadence, e.misses))
	case e.left > 1:
		e.left--
		e.due = e.first.Add(e.spec.Every)
	default:
		e.left = 0
		e.due = e.resume
	}
	e.first = e.due
}

// naiveDelay is base times factor for each miss in a row, at most max.
func naiveDelay(c *admission.CadencePolicy, misses int) time.Duration {
	delay := c.Base
	for range misses {
		if delay = min(delay*time.Duration(c.Factor), c.Max); delay == c.Max {
			break
		}
	}
	return delay
}
