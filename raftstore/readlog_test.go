package raftstore

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// What is read applies to the state that the node had.
func TestReadLog(t *testing.T) {
	cfg, token := closedNode(t)
	st := admission.New()
	var entries []admission.Entry
	read := func(_ uint64, e admission.Entry) error {
		entries = append(entries, e)
		return nil
	}
	if err := ReadLog(cfg.Dir, 0, read); err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		st.Apply(e)
	}
	n := startNode(t, cfg, clock.System())
	if got := n.release(token); got != admission.LeaseReleased {
		t.Fatalf("the node says %v", got)
	}
	last := entries[len(entries)-1]
	release := admission.Entry{Index: last.Index + 1, T: last.T, W: last.W, Ops: []admission.Op{
		&admission.Release{Token: token, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent},
	}}
	if got := st.Apply(release)[0].(*admission.ReleaseResult).Result; got != admission.LeaseReleased {
		t.Errorf("what was read says %v", got)
	}
	if err := ReadLog(cfg.Dir, 0, read); !errors.Is(err, ErrInUse) {
		t.Errorf("reads the log of a node that runs: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	from := last.Index
	var again []admission.Entry
	err := ReadLog(cfg.Dir, from, func(_ uint64, e admission.Entry) error {
		again = append(again, e)
		return nil
	})
	if err != nil || len(again) == 0 || !reflect.DeepEqual(again[0], last) {
		t.Errorf("from %d on there is %v, %v", from, again, err)
	}
}

func TestReadLogMakesNothing(t *testing.T) {
	if err := ReadLog(t.TempDir(), 0, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reads a log where there is none: %v", err)
	}
}
