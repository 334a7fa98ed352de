package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"
)

// logEnd is a file that says how far the log reaches at least. raft-wal takes
// whatever it can't read at the end of the newest segment for a write that a
// crash cut short, and a newest segment that is missing for one not yet made;
// it would so drop what callers were told is durable if the disk lost it.
//
//	byte 0-7    index of the last entry that was appended for good, little endian
//	byte 8-11   CRC32C of bytes 0-7
//
// It is written after an append has reached the disk, and itself reaches the
// disk whenever the system sees fit: it outlives the process, and after a power
// failure shows less than the log has, never more.
type logEnd struct {
	f     *os.File
	index uint64
}

const logEndSize = 12

// openLogEnd makes the file where there is none, for an empty log: one that is
// longer says so with its next append.
func openLogEnd(dir string) (*logEnd, error) {
	path := filepath.Join(dir, logEndFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		b = appendLogEnd(0)
		err = replaceFile(dir, logEndFile, b)
	}
	if err != nil {
		return nil, fmt.Errorf("read the log's end: %w", err)
	}
	if len(b) != logEndSize || crc32.Checksum(b[:8], castagnoli) != binary.LittleEndian.Uint32(b[8:]) {
		return nil, fmt.Errorf("%w: %s does not say where the log ends", ErrCorrupt, path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the log's end: %w", err)
	}
	return &logEnd{f: f, index: binary.LittleEndian.Uint64(b)}, nil
}

func appendLogEnd(index uint64) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, logEndSize), index)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// set notes that the log reaches to index. Only raft's writer calls it.
func (e *logEnd) set(index uint64) error {
	if _, err := e.f.WriteAt(appendLogEnd(index), 0); err != nil {
		return fmt.Errorf("write the log's end: %w", err)
	}
	e.index = index
	return nil
}

// check returns an error if the log does not reach as far as it did.
func (e *logEnd) check(log raft.LogStore) error {
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	if last < e.index {
		return fmt.Errorf("%w: the log ends at entry %d, but had entry %d", ErrCorrupt, last, e.index)
	}
	return nil
}

func (e *logEnd) close() error {
	if err := errors.Join(e.f.Sync(), e.f.Close()); err != nil {
		return fmt.Errorf("close the log's end: %w", err)
	}
	return nil
}
