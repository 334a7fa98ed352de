package raftstore

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when tests with a manual clock begin.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testPolicy has one pool, `mail`, with 4 slots and lanes `high` and `low`.
func testPolicy() admission.Policy {
	return admission.Policy{Pools: []admission.PoolPolicy{{
		Name: "mail", MaxActive: 4, PermitTTL: 30 * time.Second,
		Lanes:      []admission.LanePolicy{{Name: "high"}, {Name: "low"}},
		Categories: map[string]string{"otp": "high", "news": "low"},
	}}}
}

// node is a store under test.
type node struct {
	*Store
	t   testing.TB
	cfg Config
	clk clock.Clock
}

// startNode opens a store and waits until it is ready. The test's end closes it.
func startNode(t testing.TB, cfg Config, clk clock.Clock) *node {
	t.Helper()
	n := &node{t: t, cfg: cfg, clk: clk}
	n.open()
	t.Cleanup(func() { n.Close() })
	return n
}

func (n *node) open() {
	n.t.Helper()
	s, err := Open(n.cfg, testLogger(n.t), newRegistry(), n.clk)
	if err != nil {
		n.t.Fatalf("open: %v", err)
	}
	n.Store = s
	n.waitReady()
}

func (n *node) restart() {
	n.t.Helper()
	if err := n.Close(); err != nil {
		n.t.Fatalf("close: %v", err)
	}
	n.open()
}

func (n *node) waitReady() {
	n.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		changed := n.ReadyChanged()
		if n.Ready() {
			return
		}
		select {
		case <-changed:
		case <-n.Failed():
			n.t.Fatalf("failed: %v", n.Err())
		case <-deadline:
			n.t.Fatal("not ready in 10 s")
		}
	}
}

// do decides one operation.
func (n *node) do(op admission.Op) Answer {
	n.t.Helper()
	answers, err := n.Do(n.t.Context(), Request{Op: op})
	if err != nil {
		n.t.Fatalf("%T: %v", op, err)
	}
	return answers[0]
}

func (n *node) applyPolicy(p admission.Policy) {
	n.t.Helper()
	r := n.do(admission.ApplyPolicy{Policy: p, ExpectedRevision: admission.AnyRevision}).Result.(*admission.PolicyResult)
	if r.Err != nil {
		n.t.Fatalf("apply policy: %v", r.Err)
	}
}

func (n *node) acquire(tenant string) *admission.AcquireResult {
	n.t.Helper()
	return n.do(&admission.Acquire{Pool: "mail", Tenant: tenant, Cost: 1}).Result.(*admission.AcquireResult)
}

// mustAcquire returns the token of a permit.
func (n *node) mustAcquire(tenant string) admission.Token {
	n.t.Helper()
	r := n.acquire(tenant)
	if r.Err != nil || r.Decision.Shed != nil {
		n.t.Fatalf("acquire for %s: %+v", tenant, r)
	}
	return r.Decision.Permit.Token
}

func (n *node) release(token admission.Token) admission.LeaseResult {
	n.t.Helper()
	return n.do(&admission.Release{
		Token: token, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent,
	}).Result.(*admission.ReleaseResult).Result
}

func (n *node) now() (t admission.Instant, w admission.Wall) {
	n.View(func(_ *admission.State, at admission.Instant, wall admission.Wall) { t, w = at, wall })
	return t, w
}

func (n *node) index() (index uint64) {
	n.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) { index = st.Index() })
	return index
}

func newRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func TestStateOutlivesARestart(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	kept, released := n.mustAcquire("acme"), n.mustAcquire("acme")
	if got := n.release(released); got != admission.LeaseReleased {
		t.Fatalf("release: %v", got)
	}
	id := n.NodeID()
	n.restart()
	if n.NodeID() != id {
		t.Errorf("the node's id changed from %s to %s", id, n.NodeID())
	}
	if got := n.release(released); got != admission.LeaseAlreadyReleased {
		t.Errorf("release of what was released before the restart: %v", got)
	}
	if got := n.release(kept); got != admission.LeaseReleased {
		t.Errorf("release of what was held over the restart: %v", got)
	}
}

func TestRefusalsWriteNothing(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	for range 4 {
		n.mustAcquire("acme")
	}
	before := n.index()
	r := n.acquire("acme")
	if r.Decision.Shed == nil || r.Decision.Shed.Reason != admission.PoolCap {
		t.Fatalf("a fifth acquire: %+v", r)
	}
	if after := n.index(); after != before {
		t.Errorf("a refusal moved the log from %d to %d", before, after)
	}
}

func TestDoKeepsTheOrderOfItsRequests(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	var reqs []Request
	for range 6 {
		reqs = append(reqs,
			Request{Op: &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}},
			Request{Op: &admission.Acquire{Pool: "none", Tenant: "acme", Cost: 1}})
	}
	answers, err := n.Do(context.Background(), reqs...)
	if err != nil {
		t.Fatal(err)
	}
	granted := 0
	for i, a := range answers {
		r := a.Result.(*admission.AcquireResult)
		if unknown := i%2 == 1; unknown != (r.Err != nil) || unknown != (a.Shedding == nil) {
			t.Errorf("answer %d: %+v, shedding %+v", i, r, a.Shedding)
		}
		if r.Err == nil && r.Decision.Shed == nil {
			granted++
		}
	}
	if granted != 4 {
		t.Errorf("granted %d of 4 slots", granted)
	}
}
