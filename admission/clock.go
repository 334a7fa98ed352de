package admission

import "time"

// Instant is cluster time: nanoseconds since the cluster was born. It never
// goes back and never outruns real time. Refill, leases and waits are measured
// on it.
type Instant int64

// Add returns the instant d after t.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub returns the time from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Wall is wall-clock time: nanoseconds since the Unix epoch, as the leader saw
// it. It may step either way. Only due times are compared with it.
type Wall int64

// Add returns the wall time d after w.
func (w Wall) Add(d time.Duration) Wall { return w + Wall(d) }

// Sub returns the time from v to w.
func (w Wall) Sub(v Wall) time.Duration { return time.Duration(w - v) }
