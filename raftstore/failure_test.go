package raftstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

func (n *node) waitFailed() {
	n.t.Helper()
	select {
	case <-n.Failed():
	case <-time.After(10 * time.Second):
		n.t.Fatal("the store did not end in 10 s")
	}
}

func TestAnEntryThatCannotBeReadEndsTheStore(t *testing.T) {
	for name, data := range map[string][]byte{
		"damaged": []byte("not a command"),
		"newer":   {0xAD, 0x17, 99, 0, 0, 0, 0, 0},
	} {
		n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
		n.applyPolicy(testPolicy())
		if err := outcome(n.raft.Apply(data, 0)); err == nil {
			t.Errorf("%s: no error", name)
		}
		n.waitFailed()
		if _, err := n.Do(t.Context(), Request{Op: acquireOp("acme")}); err == nil {
			t.Errorf("%s: the store decides on", name)
		}
		if err := n.Close(); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
	}
}

func TestAFailedWriteEndsTheStore(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	n.wal.Close() // every write fails from now on
	_, err := n.Do(t.Context(), Request{Op: acquireOp("acme")})
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("the caller was told %v", err)
	}
	n.waitFailed()
	changed := n.ReadyChanged()
	if n.Ready() {
		<-changed
	}
	if _, err := n.Do(t.Context(), Request{Op: acquireOp("acme")}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("the next caller was told %v", err)
	}
}

func TestOneProcessAtATimeUsesADataDirectory(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	_, err := Open(n.cfg, testLogger(t), newRegistry(), clock.System())
	if !errors.Is(err, ErrInUse) {
		t.Errorf("a second process: %v", err)
	}
}

func TestAnUnfinishedFoundingIsRepeated(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, walDir)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := openWAL(path, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	// A founding writes the term first.
	if err := w.SetUint64([]byte("CurrentTerm"), 1); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	startNode(t, Config{Dir: dir}, clock.System()).applyPolicy(testPolicy())
}

func TestDataThatDoesNotBelongTogetherIsRefused(t *testing.T) {
	for name, lose := range map[string]string{"the identity is lost": identityFile, "the log is lost": walDir} {
		n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
		n.applyPolicy(testPolicy())
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(n.cfg.Dir, lose)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(n.cfg, testLogger(t), newRegistry(), clock.System())
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestADamagedLogIsFound(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	for range 20 {
		n.do(admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low"})
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(n.cfg.Dir, walDir, "*.wal"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	flipByte(t, segments[0], 400) // in the policy, far from the tail
	s, err := Open(n.cfg, testLogger(t), newRegistry(), clock.System())
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("the store opened with %v", err)
	}
}

func TestCloseAnswersWhoWaits(t *testing.T) {
	n, _ := startMail(t, Config{})
	waiting := n.poll(t.Context(), 1, time.Hour)
	n.waitParked(1)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if p := receive(t, waiting); !errors.Is(p.err, ErrShuttingDown) {
		t.Errorf("a parked poll was told %v", p.err)
	}
	if _, err := n.Do(t.Context(), Request{Op: acquireOp("acme")}); !errors.Is(err, ErrShuttingDown) {
		t.Errorf("a late call was told %v", err)
	}
	if err := n.Close(); err != nil {
		t.Errorf("a second close: %v", err)
	}
}

func TestCloseLeavesNobodyInDoubt(t *testing.T) {
	n, _ := startMail(t, Config{})
	var wg sync.WaitGroup
	var done atomic.Int64
	for range 32 {
		wg.Go(func() {
			for {
				pause := admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low"}
				if _, err := n.Do(t.Context(), Request{Op: pause}); err != nil {
					if !errors.Is(err, ErrShuttingDown) {
						t.Errorf("a call at the end was told %v", err)
					}
					return
				}
				done.Add(1)
			}
		})
	}
	for done.Load() < 200 {
		runtime.Gosched()
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// Raft says true twice in a row when a loss between the two went by unseen.
func TestALossThatWentByUnseenEndsTheTerm(t *testing.T) {
	s, err := openStore(Config{Dir: t.TempDir()}, testLogger(t), newRegistry(), clock.System())
	if err != nil {
		t.Fatal(err)
	}
	leads := make(chan bool)
	s.run(leads)
	n := &node{Store: s, t: t}
	t.Cleanup(func() { n.Close() })
	leads <- <-s.raft.LeaderCh()
	n.waitReady()
	n.applyPolicy(testPolicy())
	token := n.mustAcquire("acme")
	var t1, t2 admission.Instant
	n.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) { t1, _ = st.Now() })
	first := n.term.Load()
	leads <- true
	leads <- true // taken when the term before has opened
	n.waitReady()
	if n.term.Load() == first {
		t.Error("the first term goes on")
	}
	if got := n.release(token); got != admission.LeaseReleased {
		t.Errorf("release in a later term: %v", got)
	}
	n.View(func(st *admission.State, _ admission.Instant, _ admission.Wall) { t2, _ = st.Now() })
	if t2 <= t1 {
		t.Errorf("time went from %d to %d", t1, t2)
	}
}

func TestCallsEndWithTheirContext(t *testing.T) {
	n, _ := startMail(t, Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.Do(ctx, Request{Op: acquireOp("acme")})
	if err != context.Canceled && !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("a cancelled call was told %v", err)
	}
	if err == context.Canceled {
		n.View(func(st *admission.State, at admission.Instant, w admission.Wall) {
			if active := st.Health(at, w, "mail")[0].Active; active != 0 {
				t.Errorf("a call that was not done holds %d slots", active)
			}
		})
	}
}
