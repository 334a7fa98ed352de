package raftstore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

func reportOp(tenant string, backlog int64) *admission.ReportDemand {
	return &admission.ReportDemand{Pool: "mail", Tenant: tenant, Backlog: backlog, TTL: time.Minute}
}

// depth is what waits in the lowest lane.
func (n *node) depth() (depth int64) {
	n.View(func(st *admission.State, at admission.Instant, w admission.Wall) {
		depth = st.Health(at, w, "mail")[0].Lanes[1].Depth
	})
	return depth
}

func TestReportsAreLoggedOnceInASecond(t *testing.T) {
	n, clk := startMail(t, Config{})
	start := n.index()
	steps := []struct {
		pass    time.Duration
		backlog int64
		entries uint64
	}{
		{0, 7, 1}, {0, 7, 1}, {900 * time.Millisecond, 7, 1}, {100 * time.Millisecond, 7, 2}, {5 * time.Second, 9, 3},
	}
	for i, s := range steps {
		clk.Advance(s.pass)
		if a := n.do(reportOp("acme", s.backlog)); a.Result.(*admission.ReportResult).Err != nil || a.Shedding == nil {
			t.Fatalf("report %d: %+v", i, a)
		}
		if got := n.index() - start; got != s.entries || n.depth() != s.backlog {
			t.Errorf("after report %d: %d entries, want %d; depth %d, want %d", i, got, s.entries, n.depth(), s.backlog)
		}
	}
	n.do(reportOp("other", 7))
	if got := n.index() - start; got != 4 {
		t.Errorf("another tenant's report: %d entries in all, want 4", got)
	}
}

// report reports in the background.
func (n *node) reporting(ctx context.Context, op *admission.ReportDemand) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := n.Do(ctx, Request{Op: op})
		done <- err
	}()
	return done
}

// waitTurn waits until a report waits for its turn, another one than before.
func (n *node) waitTurn(before chan struct{}) (turn chan struct{}) {
	n.t.Helper()
	n.eventually("a report waits for its turn", func(*admission.State, admission.Instant, admission.Wall) bool {
		rs := n.term.Load().reports
		rs.mu.Lock()
		defer rs.mu.Unlock()
		for _, r := range rs.rows {
			turn = r.next
		}
		return turn != nil && turn != before
	})
	return turn
}

// A report that says something new waits until a second is over, and the newest
// stands for those before it.
func TestTheNewestReportIsNoted(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.do(reportOp("acme", 7))
	before := n.index()
	overtaken := n.reporting(t.Context(), reportOp("acme", 8))
	turn := n.waitTurn(nil)
	newest := n.reporting(t.Context(), reportOp("acme", 0))
	n.waitTurn(turn)
	if err := <-overtaken; err != nil {
		t.Errorf("the report that was overtaken: %v", err)
	}
	if n.index() != before || n.depth() != 7 {
		t.Errorf("noted before its turn: depth %d", n.depth())
	}
	clk.Advance(time.Second)
	if err := <-newest; err != nil {
		t.Errorf("the newest report: %v", err)
	}
	if n.index() != before+1 || n.depth() != 0 {
		t.Errorf("%d entries, depth %d", n.index()-before, n.depth())
	}
}

func TestAReportThatIsLostLeavesItsTurn(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.do(reportOp("acme", 7))
	ctx, cancel := context.WithCancel(t.Context())
	lost := n.reporting(ctx, reportOp("acme", 8))
	n.waitTurn(nil)
	cancel()
	if err := <-lost; !errors.Is(err, context.Canceled) {
		t.Errorf("the lost report was told %v", err)
	}
	clk.Advance(time.Second)
	n.do(reportOp("acme", 9))
	if n.depth() != 9 {
		t.Errorf("depth %d", n.depth())
	}
}

func TestReportsOfNothingKnownWriteNothing(t *testing.T) {
	n, _ := startMail(t, Config{})
	before := n.index()
	for reason, op := range map[admission.ErrorReason]*admission.ReportDemand{
		admission.PoolNotFound:    {Pool: "none", Tenant: "acme", Backlog: 1},
		admission.UnknownCategory: {Pool: "mail", Tenant: "acme", Category: "none", Backlog: 1},
	} {
		if err := n.do(op).Result.(*admission.ReportResult).Err; err == nil || err.Reason != reason {
			t.Errorf("got %v, want %s", err, reason)
		}
	}
	if n.index() != before {
		t.Error("the log has moved")
	}
}

// A refusal is logged for its backlog, but not more often than a report.
func TestABacklogCountsWhateverTheDecision(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.fill()
	before := n.index()
	for i, want := range []uint64{1, 1, 2} {
		op := &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1, Backlog: 5}
		if got := n.do(op).Result.(*admission.AcquireResult); got.Decision.Shed == nil {
			t.Fatalf("granted %+v", got)
		}
		if n.depth() != 5 || n.index()-before != want {
			t.Errorf("after refusal %d: depth %d, %d entries, want %d", i, n.depth(), n.index()-before, want)
		}
		if i == 1 {
			clk.Advance(time.Second)
		}
	}
}

// What is remembered of reports goes with the second.
func TestReportsAreForgotten(t *testing.T) {
	rs := newReports()
	for i := range 1000 {
		key := reportKey{tenant: string(rune(i))}
		if wait, _ := rs.turn(key, reportOp("", 1), admission.Instant(i)*admission.Instant(10*time.Millisecond)); wait != 0 {
			t.Fatalf("report %d is to wait %v", i, wait)
		}
	}
	if n := len(rs.rows); n > 200 {
		t.Errorf("%d reports are remembered, of 100 in a second", n)
	}
}
