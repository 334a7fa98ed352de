package raftstore

import (
	"fmt"
	"io"
	"iter"
	"runtime"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
	"github.com/admitd/admit/raftstore/peer"
)

// snapshotFormat is the version of the frames and rows.
const snapshotFormat = 1

// rowsInTurn is how many rows are written before others may go first: what answers
// callers would else wait for as long as the scheduler lets a goroutine run, 10 ms.
const rowsInTurn = 32

// deterministic makes equal images equal bytes.
var deterministic = proto.MarshalOptions{Deterministic: true}

// writeSnapshot writes an image, and the digest of the results that led to it. Each
// row in a block has its length before it.
func writeSnapshot(w io.Writer, image *admission.Image, results uint64) error {
	f, err := newFrameWriter(w)
	if err != nil {
		return err
	}
	defer f.close()
	h := headerToStorage(image.Header())
	h.Results = results
	header, err := deterministic.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode a snapshot's header: %w", err)
	}
	if err := f.write(headerFrame, header); err != nil {
		return err
	}
	rows, err := writeRows(f, image.Rows())
	if err != nil {
		return err
	}
	footer, err := deterministic.Marshal(&storagev1.SnapshotFooter{Rows: rows})
	if err != nil {
		return fmt.Errorf("encode a snapshot's footer: %w", err)
	}
	return f.write(footerFrame, footer)
}

func writeRows(f *frameWriter, rows iter.Seq[admission.Row]) (count uint64, err error) {
	var block []byte
	for row := range rows {
		if count%rowsInTurn == 0 {
			runtime.Gosched()
		}
		m, err := rowToStorage(row)
		if err != nil {
			return 0, err
		}
		size := proto.Size(m)
		if len(block) > 0 && len(block)+size > blockSize {
			if err := f.write(rowsFrame, block); err != nil {
				return 0, err
			}
			block = block[:0]
		}
		block = protowire.AppendVarint(block, uint64(size))
		if block, err = deterministic.MarshalAppend(block, m); err != nil {
			return 0, fmt.Errorf("encode %T: %w", row, err)
		}
		count++
	}
	if len(block) == 0 {
		return count, nil
	}
	return count, f.write(rowsFrame, block)
}

// readSnapshot builds the state that was written, whole or not at all, and returns
// the digest with it.
func readSnapshot(r io.Reader) (_ *admission.State, results uint64, _ error) {
	f, err := newFrameReader(r)
	if err != nil {
		return nil, 0, err
	}
	defer f.close()
	kind, content, err := f.next()
	if err != nil {
		return nil, 0, err
	}
	var header storagev1.SnapshotHeader
	if err := proto.Unmarshal(content, &header); err != nil || kind != headerFrame {
		return nil, 0, fmt.Errorf("%w: a snapshot without a header: %w", ErrCorrupt, err)
	}
	if header.FormatVersion != snapshotFormat || header.FeatureLevel != peer.FeatureLevel {
		return nil, 0, fmt.Errorf("%w: a snapshot of format %d, feature level %d", ErrUnknownFormat, header.FormatVersion,
			header.FeatureLevel)
	}
	st, err := admission.Restore(headerFromStorage(&header), readRows(f))
	if err != nil {
		return nil, 0, fmt.Errorf("restore a snapshot: %w", err)
	}
	return st, header.Results, nil
}

// readRows yields the rows, and last an error unless the footer confirms them.
func readRows(f *frameReader) iter.Seq2[admission.Row, error] {
	return func(yield func(admission.Row, error) bool) {
		var count uint64
		for {
			kind, content, err := f.next()
			switch {
			case err != nil:
			case kind == rowsFrame:
				var more bool
				if more, err = yieldBlock(content, &count, yield); !more {
					return
				}
			case kind == footerFrame:
				if err = checkFooter(f, content, count); err == nil {
					return
				}
			default:
				err = fmt.Errorf("%w: a snapshot's frame of kind %d", ErrUnknownFormat, kind)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// yieldBlock yields a block's rows and says whether more are wanted.
func yieldBlock(block []byte, count *uint64, yield func(admission.Row, error) bool) (bool, error) {
	for len(block) > 0 {
		encoded, n := protowire.ConsumeBytes(block)
		if n < 0 {
			return true, fmt.Errorf("%w: a row's length", ErrCorrupt)
		}
		block = block[n:]
		var m storagev1.Row
		if err := proto.Unmarshal(encoded, &m); err != nil {
			return true, fmt.Errorf("%w: decode a row: %w", ErrCorrupt, err)
		}
		row, err := rowFromStorage(&m)
		if err != nil {
			return true, err
		}
		*count++
		if !yield(row, nil) {
			return false, nil
		}
	}
	return true, nil
}

func checkFooter(f *frameReader, content []byte, count uint64) error {
	var footer storagev1.SnapshotFooter
	if err := proto.Unmarshal(content, &footer); err != nil {
		return fmt.Errorf("%w: decode a snapshot's footer: %w", ErrCorrupt, err)
	}
	if footer.Rows != count {
		return fmt.Errorf("%w: a snapshot has %d rows of %d", ErrCorrupt, count, footer.Rows)
	}
	return f.end()
}

func headerToStorage(h admission.Header) *storagev1.SnapshotHeader {
	return &storagev1.SnapshotHeader{
		FormatVersion: snapshotFormat, FeatureLevel: peer.FeatureLevel,
		Index: h.Index, T: int64(h.T), W: int64(h.W), LeaseOffset: int64(h.LeaseOffset), Epoch: uint32(h.Epoch),
		Grants: h.Grants, Seq: h.Seq, Pools: h.Pools, Revision: h.Revision, AppliedAt: int64(h.AppliedAt),
	}
}

func headerFromStorage(m *storagev1.SnapshotHeader) admission.Header {
	return admission.Header{
		Index: m.Index, T: admission.Instant(m.T), W: admission.Wall(m.W), LeaseOffset: time.Duration(m.LeaseOffset),
		Epoch: uint16(m.Epoch), Grants: m.Grants, Seq: m.Seq, Pools: m.Pools, Revision: m.Revision,
		AppliedAt: admission.Wall(m.AppliedAt),
	}
}
