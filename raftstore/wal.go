package raftstore

import (
	"errors"
	"fmt"
	"os"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
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
func openWAL(dir string, log hclog.Logger) (*wal.WAL, error) {
	w, err := wal.Open(dir,
		wal.WithCodec(logCodec{}),
		wal.WithMetaStore(walMeta{&metadb.BoltMetaDB{}}),
		wal.WithSegmentFiler(walSegments{segment.NewFiler(dir, fs.New())}),
		wal.WithLogger(log),
	)
	if err != nil {
		return nil, fmt.Errorf("open the log in %s: %w", dir, err)
	}
	return w, nil
}

type walMeta struct{ types.MetaStore }

func (m walMeta) CommitState(s types.PersistentState) error {
	segments := make([]types.SegmentInfo, len(s.Segments))
	for i, info := range s.Segments {
		info.Codec = logCodecID
		segments[i] = info
	}
	s.Segments = segments
	return m.MetaStore.CommitState(s)
}

type walSegments struct{ types.SegmentFiler }

func (f walSegments) Create(info types.SegmentInfo) (types.SegmentWriter, error) {
	info.Codec = logCodecID
	return f.SegmentFiler.Create(info)
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
