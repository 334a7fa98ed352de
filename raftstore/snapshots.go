package raftstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// snapshots is the library's store, which falls back to an older snapshot where
// the newest is unreadable, but for those that the log does not reach back to:
// raft would panic at the gap.
type snapshots struct {
	*raft.FileSnapshotStore
	dir string
	log raft.LogStore

	mu sync.Mutex
	// open are the snapshots being written.
	open int
	// refused are the snapshots that could not be opened, and why.
	refused error
	// opened is the index of the one that was opened last.
	opened uint64
}

func openSnapshots(dir string, log raft.LogStore, logger hclog.Logger) (*snapshots, error) {
	if err := sweepSnapshots(dir); err != nil {
		return nil, err
	}
	files, err := raft.NewFileSnapshotStoreWithLogger(dir, keptSnapshots, logger)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots: %w", err)
	}
	return &snapshots{FileSnapshotStore: files, dir: dir, log: log}, nil
}

// Create begins a snapshot, after what is left of failed ones has made room: the
// library keeps it, and a full disk would never empty.
func (s *snapshots) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64,
	trans raft.Transport,
) (raft.SnapshotSink, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == 0 {
		if err := sweepSnapshots(s.dir); err != nil {
			return nil, err
		}
	}
	sink, err := s.FileSnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(s.dir, snapshotsDir, sink.ID()+tmpSuffix, stateFile))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open an unfinished snapshot: %w", err), sink.Cancel())
	}
	s.open++
	return &snapshotSink{SnapshotSink: sink, file: file, ended: sync.OnceFunc(func() {
		_ = file.Close() // it is only flushed through
		s.ended()
	})}, nil
}

func (s *snapshots) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
}

// List returns the snapshots that the node can start from, newest first.
func (s *snapshots) List() ([]*raft.SnapshotMeta, error) {
	all, err := s.whole()
	if err != nil {
		return nil, err
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(m *raft.SnapshotMeta) bool { return first > 0 && m.Index+1 < first }), nil
}

// whole returns the snapshots whose description agrees with its name and says
// where the configuration is from, newest first. The library does not check it:
// by a wrong index entries of the log would be left out, and without that of the
// configuration the node would not elect itself.
func (s *snapshots) whole() ([]*raft.SnapshotMeta, error) {
	all, err := s.FileSnapshotStore.List()
	return slices.DeleteFunc(all, func(m *raft.SnapshotMeta) bool {
		return m.ConfigurationIndex == 0 || !strings.HasPrefix(m.ID, fmt.Sprintf("%d-%d-", m.Term, m.Index))
	}), err
}

// Open opens a snapshot; raft itself only logs why it can't.
func (s *snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, r, err := s.FileSnapshotStore.Open(id)
	if err != nil {
		s.refuse(id, err)
		return nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = meta.Index
	return meta, r, nil
}

// lastOpened returns the index of the snapshot that was opened last, which counts
// entries that the state knows nothing of, too.
func (s *snapshots) lastOpened() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

func (s *snapshots) refuse(id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = errors.Join(s.refused, fmt.Errorf("snapshot %s: %w", id, err))
}

func (s *snapshots) refusals() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// oldest returns the index of the oldest snapshot kept, or 0.
func (s *snapshots) oldest() uint64 {
	all, err := s.whole()
	if err != nil || len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Index
}

// check returns an error if the log begins after all that snapshots hold.
func (s *snapshots) check() error {
	usable, err := s.List()
	if err != nil {
		return fmt.Errorf("list the snapshots: %w", err)
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	if first > 1 && len(usable) == 0 {
		return fmt.Errorf("%w: the log begins at %d, and no readable snapshot reaches there", ErrCorrupt, first)
	}
	return nil
}

// snapshotShare bounds the time spent on snapshots to one part in so many.
const snapshotShare = 10

// snapshotLoop takes a snapshot when the log has grown by enough since the
// last, until the store closes. Large states take long to write, so it leaves
// time between two.
func (s *Store) snapshotLoop() {
	var last, took time.Duration
	timer := s.clk.NewTimer(never)
	defer timer.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-s.grown:
		case <-timer.C():
		}
		start := s.clk.Now()
		if wait := last + (snapshotShare-1)*took - start.Mono; wait > 0 {
			timer.Reset(wait)
			continue
		}
		s.takeSnapshot()
		last = s.clk.Now().Mono
		took = s.clk.Now().Since(start)
	}
}

func (s *Store) takeSnapshot() {
	start := s.clk.Now()
	err := s.raft.Snapshot().Error()
	switch {
	case err == nil:
		s.log.Info("took a snapshot", "took", s.clk.Now().Since(start))
	case errors.Is(err, raft.ErrRaftShutdown):
	default:
		s.log.Error("failed to take a snapshot", "error", err)
	}
}

// noteGrowth asks for a snapshot if the log has grown enough.
func (s *Store) noteGrowth(entries uint64, bytes int64) {
	if entries >= s.cfg.SnapshotEntries || bytes >= s.cfg.SnapshotBytes {
		notify(s.grown)
	}
}
