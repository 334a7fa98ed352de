package raftstore

import (
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

func TestTimeBeginsWithTheCluster(t *testing.T) {
	clk := clock.NewManual(noon)
	n := startNode(t, Config{Dir: t.TempDir()}, clk)
	if at, w := n.now(); at != 0 || w != admission.Wall(noon.UnixNano()) {
		t.Errorf("a new cluster shows T %d, W %d", at, w)
	}
	clk.Advance(time.Minute)
	if at, _ := n.now(); at != admission.Instant(time.Minute) {
		t.Errorf("a minute later T is %d", at)
	}
}

func TestWallStepsMoveOnlyW(t *testing.T) {
	clk := clock.NewManual(noon)
	n := startNode(t, Config{Dir: t.TempDir()}, clk)
	n.applyPolicy(testPolicy())
	for _, step := range []time.Duration{time.Hour, -3 * time.Hour} {
		t0, w0 := n.now()
		clk.StepWall(step)
		clk.Advance(time.Second)
		n.mustAcquire("acme")
		t1, w1 := n.now()
		if t1.Sub(t0) != time.Second || w1.Sub(w0) != step+time.Second {
			t.Errorf("step of %v: T moved by %v, W by %v", step, t1.Sub(t0), w1.Sub(w0))
		}
	}
}

// A restart is a cold start: the wall clock tells how long nobody led. Where it
// has gone back, no time is taken to have passed.
func TestTimeGoesOnOverARestart(t *testing.T) {
	for name, c := range map[string]struct{ away, want time.Duration }{
		"a minute later": {time.Minute, time.Minute},
		"at once":        {0, 0},
		"an hour back":   {-time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clk := clock.NewManual(noon)
			n := startNode(t, Config{Dir: t.TempDir()}, clk)
			n.applyPolicy(testPolicy())
			token := n.mustAcquire("acme")
			clk.Advance(10 * time.Second)
			n.mustAcquire("acme")
			before, _ := n.now()
			if err := n.Close(); err != nil {
				t.Fatal(err)
			}
			// Another process has another monotonic clock.
			n.clk = clock.NewManual(noon.Add(10*time.Second + c.away))
			n.open()
			after, _ := n.now()
			if got := after.Sub(before); got != c.want {
				t.Errorf("T moved by %v, want %v", got, c.want)
			}
			// The gap is credited: 20 s of the permit's 30 are left.
			r := n.do(&admission.Renew{Tokens: []admission.Token{token}, TTL: time.Second}).Result.(*admission.RenewResult)
			if left := r.Renewals[0].ExpiresIn; left != 20*time.Second {
				t.Errorf("the permit has %v left, want 20s", left)
			}
		})
	}
}

func TestTicksExpirePermits(t *testing.T) {
	clk := clock.NewManual(noon)
	n := startNode(t, Config{Dir: t.TempDir()}, clk)
	n.applyPolicy(testPolicy())
	n.mustAcquire("acme")
	idle := n.index()
	clk.Advance(29 * time.Second)
	if got := n.index(); got != idle {
		t.Errorf("nothing was due, but the log went from %d to %d", idle, got)
	}
	n.eventually("the permit expires", func(st *admission.State, at admission.Instant, w admission.Wall) bool {
		// The proposer may set its timer while the clock moves, and so late.
		clk.Advance(100 * time.Millisecond)
		return st.Health(at, w, "mail")[0].Active == 0
	})
	if got := n.index(); got != idle+1 {
		t.Errorf("one tick was due, but the log went from %d to %d", idle, got)
	}
}

// Depths are true where nobody polls, too: what comes due is counted.
func TestTicksCountWhatComesDue(t *testing.T) {
	clk := clock.NewManual(noon)
	n := startNode(t, Config{Dir: t.TempDir()}, clk)
	n.applyPolicy(testPolicy())
	n.schedule(time.Second, "k1", "k2")
	idle := n.index()
	n.eventually("both entries count as due", func(st *admission.State, at admission.Instant, w admission.Wall) bool {
		clk.Advance(100 * time.Millisecond)
		depth := int64(0)
		for _, l := range st.Health(at, w, "mail")[0].Lanes {
			depth += l.Depth
		}
		return depth == 2
	})
	if got := n.index(); got != idle+1 {
		t.Errorf("one tick was due, but the log went from %d to %d", idle, got)
	}
}

// eventually waits until a condition on the state holds.
func (n *node) eventually(what string, holds func(*admission.State, admission.Instant, admission.Wall) bool) {
	n.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		ok := false
		n.View(func(st *admission.State, at admission.Instant, w admission.Wall) { ok = holds(st, at, w) })
		if ok {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("%s: not in 10 s", what)
		}
	}
}
