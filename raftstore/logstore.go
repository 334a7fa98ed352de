package raftstore

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/internal/clock"
)

// durable is where raft keeps its log and its vote.
type durable interface {
	raft.LogStore
	raft.StableStore
}

// failStop is a log and stable store that ends at its first failed or stalled
// write and says so. It does not go on after one: a failed fsync may have
// dropped the very pages that the next one then reports as safe, and raft
// itself takes a failed write for a reason to hold another election.
type failStop struct {
	durable
	clk   clock.Clock
	limit time.Duration
	// fatal is told the first failure, maybe while the write still hangs.
	fatal func(error)
	// wrote is told how long each append took.
	wrote func(time.Duration)
	// appended is told where the log ends on the disk, and the entries that were added
	// to it: none where it was cut. Its error counts as the write's.
	appended func(index uint64, added []*raft.Log) error
	// oldest returns the index of the oldest snapshot kept, or 0.
	oldest func() uint64

	mu     sync.Mutex
	failed error
}

// errStalled is what a write is failed with that takes too long.
var errStalled = errors.New("the disk does not answer")

func (s *failStop) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s *failStop) StoreLogs(logs []*raft.Log) error {
	start := s.clk.Now()
	err := s.write("append to the log", func() error {
		if err := s.durable.StoreLogs(logs); err != nil {
			return err
		}
		return s.appended(logs[len(logs)-1].Index, logs)
	})
	s.wrote(s.clk.Now().Since(start))
	return err
}

// DeleteRange deletes what raft asks to, but where it compacts the log it keeps
// what follows the oldest snapshot: if the newest one proves unreadable, the
// node can start from that.
func (s *failStop) DeleteRange(first, last uint64) error {
	end, err := s.durable.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	// Compaction leaves a tail, always; what goes to the end is a conflict.
	compaction := last < end
	if compaction {
		last = min(last, s.oldest())
	}
	return s.write("truncate the log", func() error {
		if !compaction {
			if err := s.appended(first-1, nil); err != nil {
				return err
			}
		}
		return s.durable.DeleteRange(first, last)
	})
}

func (s *failStop) Set(key, value []byte) error {
	return s.write("store a vote", func() error { return s.durable.Set(key, value) })
}

func (s *failStop) SetUint64(key []byte, value uint64) error {
	return s.write("store a term", func() error { return s.durable.SetUint64(key, value) })
}

// IsMonotonic tells raft that the log has no gaps.
func (s *failStop) IsMonotonic() bool {
	m, ok := s.durable.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

func (s *failStop) write(what string, do func() error) error {
	if err := s.failure(); err != nil {
		return err
	}
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(what, done)
	}()
	err := do()
	close(done)
	<-watched
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", what, err))
	}
	// A write that came through after all is late, and the store has ended.
	return s.failure()
}

// watchSteps are the steps in which a write's time is counted.
const watchSteps = 10

// watch fails the store if done isn't closed in time. Time in which the process
// itself stood still, stopped or with its machine, counts as one step at most: the
// disk may have answered meanwhile, and nobody could hear it.
func (s *failStop) watch(what string, done <-chan struct{}) {
	timer := s.clk.NewTimer(s.limit / watchSteps)
	defer timer.Stop()
	for range watchSteps {
		select {
		case <-done:
			return
		case <-timer.C():
			timer.Reset(s.limit / watchSteps)
		}
	}
	s.fail(fmt.Errorf("%s: %w within %v", what, errStalled, s.limit))
}

func (s *failStop) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

func (s *failStop) fail(err error) {
	s.mu.Lock()
	first := s.failed == nil
	if first {
		s.failed = err
	}
	s.mu.Unlock()
	if first {
		s.fatal(err)
	}
}
