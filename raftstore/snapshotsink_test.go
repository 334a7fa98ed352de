package raftstore

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestSnapshotsAreFlushedAsTheyGrow has every flush fail: a snapshot fails with the byte
// that makes it due, and not before.
func TestSnapshotsAreFlushedAsTheyGrow(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), stateFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	var written memorySink
	s := &snapshotSink{SnapshotSink: &written, file: file, ended: func() {}}
	if n, err := s.Write(make([]byte, flushBytes-1)); n != flushBytes-1 || err != nil {
		t.Fatalf("a byte less than is flushed at once: %d, %v", n, err)
	}
	if n, err := s.Write([]byte{1}); n != 1 || err == nil {
		t.Fatalf("a flush that fails: %d, %v", n, err)
	}
	if written.Len() != flushBytes {
		t.Errorf("%d bytes written, want %d", written.Len(), flushBytes)
	}
}

type memorySink struct{ bytes.Buffer }

func (*memorySink) Close() error  { return nil }
func (*memorySink) Cancel() error { return nil }
func (*memorySink) ID() string    { return "memory" }
