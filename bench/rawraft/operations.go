package rawraft

import (
	"context"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/bench/system"
)

// Commit opens callers that each have an entry replicated and applied, about as long
// as admit's for an Acquire.
func (r *Raft) Commit(context.Context, int) (system.Operation, error) {
	return commit{r.leader.raft, make([]byte, 100)}, nil
}

type commit struct {
	raft  *raft.Raft
	entry []byte
}

func (o commit) Do(context.Context, int) (int, error) {
	return 1, o.raft.Apply(o.entry, 10*time.Second).Error()
}

func (o commit) Close() error { return nil }

// nothing is the state.
type nothing struct{}

func (nothing) Apply(*raft.Log) any                 { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error) { return nothing{}, nil }
func (nothing) Restore(r io.ReadCloser) error       { return r.Close() }
func (nothing) Persist(s raft.SnapshotSink) error   { return s.Close() }
func (nothing) Release()                            {}
