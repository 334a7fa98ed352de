package raftstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/hashicorp/raft"
)

// logCodec writes raft's log entries with a checksum each, which raft-wal does
// not keep for what is no longer the last batch:
//
//	byte 0-3    CRC32C of all that follows, little endian as all numbers here
//	byte 4-11   index
//	byte 12-19  term
//	byte 20     type
//	byte 21-28  time appended, nanoseconds since the Unix epoch, or 0
//	byte 29-32  length of data
//	byte 33-    data, then extensions
type logCodec struct{}

const (
	// logCodecID names the format in segment headers. It changes with it.
	logCodecID     = 0xAD170001
	logCodecHeader = 33
)

func (logCodec) ID() uint64 { return logCodecID }

func (logCodec) Encode(l *raft.Log, w io.Writer) error {
	var h [logCodecHeader]byte
	binary.LittleEndian.PutUint64(h[4:], l.Index)
	binary.LittleEndian.PutUint64(h[12:], l.Term)
	h[20] = byte(l.Type)
	if !l.AppendedAt.IsZero() {
		binary.LittleEndian.PutUint64(h[21:], uint64(l.AppendedAt.UnixNano()))
	}
	binary.LittleEndian.PutUint32(h[29:], uint32(len(l.Data)))
	sum := crc32.Update(crc32.Checksum(h[4:], castagnoli), castagnoli, l.Data)
	binary.LittleEndian.PutUint32(h[:], crc32.Update(sum, castagnoli, l.Extensions))
	for _, part := range [][]byte{h[:], l.Data, l.Extensions} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("encode log entry %d: %w", l.Index, err)
		}
	}
	return nil
}

func (logCodec) Decode(b []byte, l *raft.Log) error {
	if len(b) < logCodecHeader {
		return fmt.Errorf("%w: a log entry of %d bytes", ErrCorrupt, len(b))
	}
	if got, want := crc32.Checksum(b[4:], castagnoli), binary.LittleEndian.Uint32(b); got != want {
		return fmt.Errorf("%w: a log entry's checksum is %08x, not %08x", ErrCorrupt, got, want)
	}
	data, n := b[logCodecHeader:], binary.LittleEndian.Uint32(b[29:])
	if uint64(n) > uint64(len(data)) {
		return fmt.Errorf("%w: a log entry's data is %d bytes of %d", ErrCorrupt, n, len(data))
	}
	*l = raft.Log{
		Index:      binary.LittleEndian.Uint64(b[4:]),
		Term:       binary.LittleEndian.Uint64(b[12:]),
		Type:       raft.LogType(b[20]),
		Data:       append([]byte(nil), data[:n]...),
		Extensions: append([]byte(nil), data[n:]...),
	}
	if at := binary.LittleEndian.Uint64(b[21:]); at != 0 {
		l.AppendedAt = time.Unix(0, int64(at))
	}
	return nil
}
