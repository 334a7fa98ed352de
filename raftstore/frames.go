package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
)

// A snapshot is a magic string and then frames:
//
//	byte 0      kind
//	byte 1-4    length of the content, little endian as all numbers here
//	byte 5-8    length of the content as stored, compressed with zstd
//	byte 9-12   CRC32C of bytes 0-8 and of the content as stored
//	byte 13-    the content
//
// First a header, then blocks of rows, last a footer that says how many rows
// there were: without it a snapshot is cut short.
type frameKind byte

const (
	headerFrame frameKind = iota + 1
	rowsFrame
	footerFrame
)

const (
	snapshotMagic = "admit snapshot\n"
	frameHeader   = 13
	// blockSize is how much a block of rows holds before it is written.
	blockSize = 64 << 10
	// maxFrame bounds what a damaged length can make us allocate: a block and
	// the largest row, a policy.
	maxFrame = 4 << 20
)

type frameWriter struct {
	w   io.Writer
	enc *zstd.Encoder
	buf []byte
}

func newFrameWriter(w io.Writer) (*frameWriter, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("set up compression: %w", err)
	}
	if _, err := io.WriteString(w, snapshotMagic); err != nil {
		return nil, fmt.Errorf("write a snapshot: %w", err)
	}
	return &frameWriter{w: w, enc: enc}, nil
}

func (f *frameWriter) write(kind frameKind, content []byte) error {
	f.buf = append(f.buf[:0], make([]byte, frameHeader)...)
	f.buf = f.enc.EncodeAll(content, f.buf)
	f.buf[0] = byte(kind)
	binary.LittleEndian.PutUint32(f.buf[1:], uint32(len(content)))
	binary.LittleEndian.PutUint32(f.buf[5:], uint32(len(f.buf)-frameHeader))
	binary.LittleEndian.PutUint32(f.buf[9:], frameSum(f.buf[:9], f.buf[frameHeader:]))
	if _, err := f.w.Write(f.buf); err != nil {
		return fmt.Errorf("write a snapshot: %w", err)
	}
	return nil
}

func frameSum(header, stored []byte) uint32 {
	return crc32.Update(crc32.Checksum(header, castagnoli), castagnoli, stored)
}

type frameReader struct {
	r   io.Reader
	dec *zstd.Decoder
	// stored and content are used again by the next frame.
	stored, content []byte
}

func (f *frameWriter) close() { f.enc.Close() }

func newFrameReader(r io.Reader) (*frameReader, error) {
	magic := make([]byte, len(snapshotMagic))
	if _, err := io.ReadFull(r, magic); err != nil {
		return nil, fmt.Errorf("read a snapshot: %w", cutShort(err))
	}
	if string(magic) != snapshotMagic {
		return nil, fmt.Errorf("%w: not a snapshot", ErrCorrupt)
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxFrame))
	if err != nil {
		return nil, fmt.Errorf("set up decompression: %w", err)
	}
	return &frameReader{r: r, dec: dec}, nil
}

func (f *frameReader) close() { f.dec.Close() }

// next returns a frame; its content is good until the next call.
func (f *frameReader) next() (frameKind, []byte, error) {
	var h [frameHeader]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		return 0, nil, fmt.Errorf("read a snapshot: %w", cutShort(err))
	}
	length, stored := binary.LittleEndian.Uint32(h[1:]), binary.LittleEndian.Uint32(h[5:])
	if length > maxFrame || stored > maxFrame {
		return 0, nil, fmt.Errorf("%w: a snapshot's frame of %d bytes", ErrCorrupt, max(length, stored))
	}
	if cap(f.stored) < int(stored) {
		f.stored = make([]byte, stored)
	}
	f.stored = f.stored[:stored]
	if _, err := io.ReadFull(f.r, f.stored); err != nil {
		return 0, nil, fmt.Errorf("read a snapshot: %w", cutShort(err))
	}
	if got, want := frameSum(h[:9], f.stored), binary.LittleEndian.Uint32(h[9:]); got != want {
		return 0, nil, fmt.Errorf("%w: a snapshot frame's checksum is %08x, not %08x", ErrCorrupt, got, want)
	}
	var err error
	if f.content, err = f.dec.DecodeAll(f.stored, f.content[:0]); err != nil || len(f.content) != int(length) {
		return 0, nil, fmt.Errorf("%w: a snapshot's frame does not decompress to %d bytes: %w", ErrCorrupt, length, err)
	}
	return frameKind(h[0]), f.content, nil
}

// end returns an error unless the snapshot ends here.
func (f *frameReader) end() error {
	if n, err := f.r.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: a snapshot goes on after its footer", ErrCorrupt)
	}
	return nil
}

// cutShort makes a premature end a kind of damage.
func cutShort(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut short", ErrCorrupt)
	}
	return err
}
