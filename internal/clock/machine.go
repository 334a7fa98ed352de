package clock

import "time"

// systemClock is the machine's clock.
type systemClock struct{ start time.Time }

func (c systemClock) Now() Reading {
	now := time.Now()
	return Reading{Wall: now.Round(0), Mono: now.Sub(c.start)}
}

func (systemClock) NewTimer(d time.Duration) Timer { return systemTimer{time.NewTimer(d)} }

type systemTimer struct{ timer *time.Timer }

func (t systemTimer) C() <-chan time.Time   { return t.timer.C }
func (t systemTimer) Reset(d time.Duration) { t.timer.Reset(d) }
func (t systemTimer) Stop()                 { t.timer.Stop() }
