package raftstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
)

// openWAL opens the log in dir with logCodec.
//
// raft-wal 0.4.2 takes a codec but writes its own codec's number into new
// segments whatever it was given, and then refuses to open them again. So the
// number is put right on the two ways that it takes to the disk: the segment's
// header (walSegments) and the list of segments (walMeta).
func openWAL(dir string, log hclog.Logger) (*walLog, error) {
	segments := &walSegments{SegmentFiler: segment.NewFiler(dir, walfs.New())}
	w, err := wal.Open(dir,
		wal.WithCodec(logCodec{}),
		wal.WithMetaStore(walMeta{&metadb.BoltMetaDB{}}),
		wal.WithSegmentFiler(segments),
		wal.WithLogger(log),
	)
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", dir, err)
	}
	return &walLog{w, segments}, nil
}

// walLog says why no new segment was begun, where the library says only that the
// old one is sealed.
type walLog struct {
	*wal.WAL
	segments *walSegments
}

func (l *walLog) StoreLogs(logs []*raft.Log) error {
	err := l.WAL.StoreLogs(logs)
	if why := l.segments.failed.Load(); why != nil && errors.Is(err, types.ErrSealed) {
		return fmt.Errorf("begin a new segment: %w", *why)
	}
	return err
}

// currentTerm is the key under which raft keeps its term.
var currentTerm = []byte("CurrentTerm")

// checkTerm writes the term once more: raft panics where it can't, and the next
// thing that it does is to write a higher one.
func (l *walLog) checkTerm() error {
	term, err := l.GetUint64(currentTerm)
	if err == nil {
		err = l.SetUint64(currentTerm, term)
	}
	if err != nil {
		return fmt.Errorf("store a term: %w", err)
	}
	return nil
}

// checkWAL returns an error if dir has no list of segments: raft-wal would delete
// the segments then, as left over.
func checkWAL(dir string) error {
	_, err := os.Stat(filepath.Join(dir, metadb.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is a node, but no log in %s", ErrCorrupt, dir)
	}
	if err != nil {
		return fmt.Errorf("look for the log: %w", err)
	}
	return nil
}

// walMeta keeps the list of segments, and raft's term and vote.
type walMeta struct{ types.MetaStore }

func (m walMeta) Load(dir string) (state types.PersistentState, err error) {
	err = guard(func() error {
		state, err = m.MetaStore.Load(dir)
		return err
	})
	return state, err
}

func (m walMeta) GetStable(key []byte) (value []byte, err error) {
	err = guard(func() error {
		value, err = m.MetaStore.GetStable(key)
		return err
	})
	return value, err
}

func (m walMeta) SetStable(key, value []byte) error {
	return guard(func() error { return m.MetaStore.SetStable(key, value) })
}

func (m walMeta) CommitState(s types.PersistentState) error {
	segments := make([]types.SegmentInfo, len(s.Segments))
	for i, info := range s.Segments {
		info.Codec = logCodecID
		segments[i] = info
	}
	s.Segments = segments
	return guard(func() error { return m.MetaStore.CommitState(s) })
}

// guard makes an error of a panic of bbolt's, which it raises where a page is
// damaged; a file cut short makes its memory map fault.
func guard(use func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s can't be read: %v", ErrCorrupt, metadb.FileName, p)
		}
	}()
	return use()
}

type walSegments struct {
	types.SegmentFiler
	// failed is why no segment could be created, last.
	failed atomic.Pointer[error]
}

func (f *walSegments) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = logCodecID
	w, err := f.SegmentFiler.Create(info)
	if err != nil {
		f.failed.Store(&err)
	}
	return w, err
}

// lastIndex returns the index of the last entry of the log in dir, or 0.
func lastIndex(dir string) (uint64, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, fmt.Errorf("create the log's directory: %w", err)
	}
	w, err := openWAL(dir, hclog.NewNullLogger())
	if err != nil {
		return 0, err
	}
	last, err := w.LastIndex()
	return last, errors.Join(err, w.Close())
}
