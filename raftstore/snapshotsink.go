package raftstore

import (
	"fmt"
	"os"

	"github.com/hashicorp/raft"
)

// stateFile is the library's name of the file that a snapshot is written to.
const stateFile = "state.bin"

// flushBytes is how much of a snapshot is written before it is flushed. Left to its end,
// the flush of a large one would hold up those of the log for as long as it takes.
const flushBytes = 1 << 20

// snapshotSink flushes what is written as it goes, and tells when it is no longer written
// to.
type snapshotSink struct {
	raft.SnapshotSink
	file      *os.File
	unflushed int
	ended     func()
}

func (s *snapshotSink) Write(p []byte) (int, error) {
	n, err := s.SnapshotSink.Write(p)
	s.unflushed += n
	if err != nil || s.unflushed < flushBytes {
		return n, err
	}
	s.unflushed = 0
	if err := s.file.Sync(); err != nil {
		return n, fmt.Errorf("flush an unfinished snapshot: %w", err)
	}
	return n, nil
}

// Close ends the snapshot.
func (s *snapshotSink) Close() error {
	defer s.ended()
	return s.SnapshotSink.Close()
}

// Cancel gives it up.
func (s *snapshotSink) Cancel() error {
	defer s.ended()
	return s.SnapshotSink.Cancel()
}
