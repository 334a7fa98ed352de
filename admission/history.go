package admission

import "slices"

// Attempt is an attempt at an entry that failed.
type Attempt struct {
	// Number counts from 1.
	Number int32
	// Outcome is OutcomeFailed, OutcomeDead or OutcomeExpired.
	Outcome Outcome
	EndedAt Wall
	// WorkerID is who held the claim, as the worker called itself.
	WorkerID string
}

// keptAttempts is how many failed attempts of an entry are remembered.
const keptAttempts = 8

// past is what failed attempts left of an entry: most entries have none. It is
// never changed, only replaced, so that rows may share it.
type past struct {
	// attempts are the latest ones, in their order. They outlive a redrive, not an
	// occurrence.
	attempts []Attempt
	// diedAt and buriedAt are when it died, by either clock, while it is dead.
	diedAt   Wall
	buriedAt Instant
	// redriven says that its place in line is that of its redrive; cameDue is
	// then when it first came due.
	redriven bool
	cameDue  Wall
}

// noteFailure remembers an attempt that failed. The row must be writable.
func (e *entryRow) noteFailure(a Attempt) {
	next := past{}
	if e.past != nil {
		next = *e.past
	}
	kept := next.attempts[max(0, len(next.attempts)+1-keptAttempts):]
	next.attempts = slices.Concat(kept, []Attempt{a})
	e.past = &next
}

// history returns the latest failed attempts. It must not be changed.
func (e *entryRow) history() []Attempt {
	if e.past == nil {
		return nil
	}
	return e.past.attempts
}

// cameDue returns when the entry, or this occurrence of it, first came due.
func (e *entryRow) cameDue() Wall {
	if e.past != nil && e.past.redriven {
		return e.past.cameDue
	}
	return e.first
}
