package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitd/admit/internal/clock"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWallStepsLeaveMonotonicTimeAlone(t *testing.T) {
	c := clock.NewManual(noon)
	start := c.Now()
	c.StepWall(-time.Hour)
	c.Advance(time.Second)
	now := c.Now()
	if got := now.Since(start); got != time.Second {
		t.Errorf("%v passed, want 1s", got)
	}
	if want := noon.Add(time.Second - time.Hour); !now.Wall.Equal(want) {
		t.Errorf("wall clock shows %v, want %v", now.Wall, want)
	}
}

func TestManualTimerFiresWhenItsTimeHasPassed(t *testing.T) {
	c := clock.NewManual(noon)
	timer := c.NewTimer(time.Second)
	c.StepWall(time.Hour)
	c.Advance(time.Second - 1)
	if fired(timer) {
		t.Fatal("fired early")
	}
	c.Advance(1)
	if !fired(timer) {
		t.Fatal("did not fire")
	}
	c.Advance(time.Hour)
	if fired(timer) {
		t.Fatal("fired twice")
	}
}

func TestStopAndResetLeaveNoStaleFiring(t *testing.T) {
	c := clock.NewManual(noon)
	timer := c.NewTimer(0)
	timer.Stop()
	if fired(timer) {
		t.Fatal("fired after Stop")
	}
	timer.Reset(0)
	timer.Reset(time.Second)
	if fired(timer) {
		t.Fatal("fired for the time before Reset")
	}
	c.Advance(time.Second)
	if !fired(timer) {
		t.Fatal("did not fire after Reset")
	}
}

func TestSystemClockRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.System()
		start := c.Now()
		timer := c.NewTimer(time.Hour)
		timer.Reset(time.Minute)
		<-timer.C()
		now := c.Now()
		if now.Since(start) != time.Minute || now.Wall.Sub(start.Wall) != time.Minute {
			t.Errorf("read %v, then %v a minute later", start, now)
		}
		timer.Reset(time.Minute)
		timer.Stop()
		if fired(timer) {
			t.Error("fired after Stop")
		}
	})
}

func fired(t clock.Timer) bool {
	select {
	case <-t.C():
		return true
	default:
		return false
	}
}

func TestSkewedClockStepsAndDrifts(t *testing.T) {
	base := clock.NewManual(noon)
	c := clock.NewSkewed(base)
	start := c.Now()
	base.Advance(time.Second)
	c.StepWall(-time.Hour)
	base.Advance(time.Second)
	now := c.Now()
	if got := now.Since(start); got != 2*time.Second {
		t.Errorf("%v passed, want 2s", got)
	}
	if want := noon.Add(2*time.Second - time.Hour); !now.Wall.Equal(want) {
		t.Errorf("wall clock shows %v, want %v", now.Wall, want)
	}
	for ppm, want := range map[int64]time.Duration{100_000: 11 * time.Second, -100_000: 9 * time.Second, 0: 10 * time.Second} {
		c.Drift(ppm)
		start := c.Now()
		base.Advance(10 * time.Second)
		if got := c.Now(); got.Since(start) != want || got.Wall.Sub(start.Wall) != want {
			t.Errorf("drift %d: 10s took %v and %v, want %v", ppm, got.Since(start), got.Wall.Sub(start.Wall), want)
		}
	}
}
