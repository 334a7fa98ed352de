package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// A command in the log is an envelope around a storage Command:
//
//	byte 0-1   magic
//	byte 2     version of the command
//	byte 3     0
//	byte 4-7   CRC32C of bytes 0-3 and all from byte 8 on, little endian
//	byte 8-    the Command
//
// The log store checks its own sum when it reads; this one is made before the
// command leaves the proposer and checked when it is applied, so that it covers
// memory and wire too.
const (
	commandVersion = 1
	envelopeSize   = 8
)

var commandMagic = [2]byte{0xAD, 0x17}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt is found on disk, in the log or in a snapshot, when bytes are not
// what was written. The node that finds it stops.
var ErrCorrupt = errors.New("data is corrupt")

// ErrUnknownFormat is found when data was written by a newer version. The node
// that finds it stops: to skip what others apply would be to diverge.
var ErrUnknownFormat = errors.New("data has a format that this version does not know")

// sealEnvelope fills in the first envelopeSize bytes of b, whose rest is the
// Command.
func sealEnvelope(b []byte) {
	b[0], b[1], b[2], b[3] = commandMagic[0], commandMagic[1], commandVersion, 0
	binary.LittleEndian.PutUint32(b[4:], envelopeSum(b))
}

// openEnvelope returns the Command's bytes.
func openEnvelope(b []byte) ([]byte, error) {
	if len(b) < envelopeSize {
		return nil, fmt.Errorf("%w: a command of %d bytes", ErrCorrupt, len(b))
	}
	if [2]byte(b) != commandMagic {
		return nil, fmt.Errorf("%w: a command begins with %x", ErrCorrupt, b[:2])
	}
	if got, want := envelopeSum(b), binary.LittleEndian.Uint32(b[4:]); got != want {
		return nil, fmt.Errorf("%w: a command's checksum is %08x, not %08x", ErrCorrupt, got, want)
	}
	if b[2] != commandVersion || b[3] != 0 {
		return nil, fmt.Errorf("%w: command version %d.%d", ErrUnknownFormat, b[2], b[3])
	}
	return b[envelopeSize:], nil
}

func envelopeSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:4], castagnoli), castagnoli, b[envelopeSize:])
}
