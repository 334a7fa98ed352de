package raftstore

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/internal/clock"
)

// A transfer that hangs makes a leader that takes nothing (hashicorp/raft#696).
func TestATransferThatHangsIsFound(t *testing.T) {
	const timeout = 10 * time.Millisecond
	var tr transfers
	hung := raft.ErrLeadershipTransferInProgress
	if tr.stuck(nil, timeout) || tr.stuck(hung, timeout) {
		t.Error("one that has just begun hangs")
	}
	deadline := time.Now().Add(10 * time.Second)
	for !tr.stuck(hung, timeout) {
		if time.Now().After(deadline) {
			t.Fatal("one that does not end is not found")
		}
	}
	if tr.stuck(nil, timeout) || tr.stuck(hung, timeout) {
		t.Error("the next one hangs at once")
	}
}

func TestAHungTransferEndsTheStore(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	term := n.term.Load()
	n.transfers.since = time.Now().Add(-time.Minute)
	term.returned <- &proposal{err: raft.ErrLeadershipTransferInProgress}
	n.waitFailed()
	if !errors.Is(n.Err(), errTransfer) {
		t.Errorf("it ended for %v", n.Err())
	}
}

// A leader that installs one snapshot after another, and the log does not grow, does
// so for ever (hashicorp/raft#697).
func TestSnapshotsThatDoNotHelpEndTheStore(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	// Only one goroutine at a time may restore: this one, once raft is down.
	if err := n.raft.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeSnapshot(&b, n.fsm.image(), 0); err != nil {
		t.Fatal(err)
	}
	install := func() {
		if err := n.appended(0, nil); err != nil { // it cuts the log
			t.Fatal(err)
		}
		if err := n.fsm.Restore(io.NopCloser(bytes.NewReader(b.Bytes()))); err != nil {
			t.Fatal(err)
		}
	}
	for range maxInstalls - 1 {
		install()
	}
	if err := n.appended(n.index()+1, []*raft.Log{{Index: n.index() + 1}}); err != nil { // the log grows
		t.Fatal(err)
	}
	for range maxInstalls - 1 {
		install()
	}
	if err := n.Err(); err != nil {
		t.Fatalf("it ended early: %v", err)
	}
	install()
	n.waitFailed()
	if !errors.Is(n.Err(), errInstalls) {
		t.Errorf("it ended for %v", n.Err())
	}
}

// What is left of a snapshot that could not be written goes before the next one, and
// not before what is being written (hashicorp/raft#714).
func TestUnfinishedSnapshotsMakeRoom(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	left := filepath.Join(n.cfg.Dir, snapshotsDir, "1-1-1"+tmpSuffix)
	leave := func() {
		if err := os.Mkdir(left, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	leave()
	sink, err := n.snapshots.Create(raft.SnapshotVersionMax, 1, 1, raft.Configuration{}, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); err == nil {
		t.Error("what is left over stays")
	}
	leave()
	n.takeSnapshot()
	if _, err := os.Stat(left); err != nil {
		t.Errorf("it is gone while another snapshot is being written: %v", err)
	}
	if err := sink.Cancel(); err != nil {
		t.Fatal(err)
	}
	n.mustAcquire("acme")
	n.takeSnapshot()
	if _, err := os.Stat(left); err == nil {
		t.Error("what is left over stays afterwards")
	}
}
