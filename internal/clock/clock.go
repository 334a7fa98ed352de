// Package clock is how the rest of admit tells the time, so that tests can
// decide what time it is.
//
// A [Reading] keeps wall time and monotonic time apart. Whoever measures how
// long something took uses Mono, which no clock step can move; Wall is for what
// people and other machines are to understand.
package clock

import "time"

// Clock tells the time and wakes its callers. Its methods may be called by
// several goroutines at once.
type Clock interface {
	// Now reads the clock.
	Now() Reading
	// NewTimer returns a timer that fires once after d.
	NewTimer(d time.Duration) Timer
}

// Reading is one look at the clock.
type Reading struct {
	// Wall is the time of day. It may step either way between two readings and
	// has no monotonic part.
	Wall time.Time
	// Mono is the time since an arbitrary moment of this process. It never goes
	// back.
	Mono time.Duration
}

// Since returns the time that passed from earlier to r, whatever was done to
// the wall clock meanwhile.
func (r Reading) Since(earlier Reading) time.Duration { return r.Mono - earlier.Mono }

// Timer fires once after a time. Stop and Reset leave nothing behind in C: a
// receive after them gets no stale value.
type Timer interface {
	// C receives when the timer fires.
	C() <-chan time.Time
	// Reset starts the timer anew.
	Reset(d time.Duration)
	// Stop keeps the timer from firing.
	Stop()
}
