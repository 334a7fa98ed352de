package raftstore

import (
	"bytes"
	"errors"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
)

// damaged returns what is left of good bytes after some were flipped and the end
// was cut off.
func damaged(good []byte, at uint, flips []byte, cut uint) []byte {
	b := bytes.Clone(good)
	for i, flip := range flips {
		b[(at+uint(i))%uint(len(b))] ^= flip
	}
	return b[:uint(len(b))-cut%uint(len(b))]
}

// refusal says whether an error tells of bytes that are not what was written.
func refusal(err error) bool { return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrUnknownFormat) }

// A damaged command is refused: it never panics, and is never another command.
func FuzzDamagedCommand(f *testing.F) {
	good := encode(f, stamp{proposal: 1, t: 2, w: 3}, everyOp()...)
	f.Add(uint(0), []byte{1}, uint(0))
	f.Add(uint(4), []byte{0, 1, 0, 0x80}, uint(0))
	f.Add(uint(9), []byte{}, uint(3))
	f.Fuzz(func(t *testing.T, at uint, flips []byte, cut uint) {
		b := damaged(good, at, flips, cut)
		if _, _, err := decodeCommand(1, b); bytes.Equal(b, good) != (err == nil) || err != nil && !refusal(err) {
			t.Fatalf("with %x from %d on and %d bytes less: %v", flips, at, cut, err)
		}
	})
}

// A damaged snapshot is refused, and so is whatever else is no snapshot.
func FuzzDamagedSnapshot(f *testing.F) {
	good := snapshotBytes(f, busyState(f))
	f.Add(uint(0), []byte{1}, uint(0))
	f.Add(uint(len(snapshotMagic)), []byte{2, 0xff, 0xff}, uint(0))
	f.Add(uint(9), []byte{}, uint(3))
	f.Fuzz(func(t *testing.T, at uint, flips []byte, cut uint) {
		b := damaged(good, at, flips, cut)
		if _, _, err := readSnapshot(bytes.NewReader(b)); bytes.Equal(b, good) != (err == nil) || err != nil && !refusal(err) {
			t.Fatalf("with %x from %d on and %d bytes less: %v", flips, at, cut, err)
		}
	})
}

// Rows whose sums are right may still be nonsense. They are an error, or a state
// that can be written: never a panic.
func FuzzRestoreRows(f *testing.F) {
	st := busyState(f)
	var rows [][]byte
	for row := range st.Snapshot().Rows() {
		m, err := rowToStorage(row)
		if err != nil {
			f.Fatal(err)
		}
		b, err := deterministic.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		rows = append(rows, b)
	}
	header, err := deterministic.Marshal(headerToStorage(st.Snapshot().Header()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint(3), uint(2), []byte{1}, uint(1))
	f.Add(uint(100), uint(0), []byte{}, uint(101))
	f.Add(uint(520), uint(1), []byte{0, 7}, uint(2))
	f.Fuzz(func(t *testing.T, row, at uint, flips []byte, second uint) {
		changed := bytes.Clone(rows[row%uint(len(rows))])
		if len(changed) > 0 {
			changed = damaged(changed, at, flips, 0)
		}
		other := rows[second%uint(len(rows))] // takes the place of the row after it
		var block []byte
		for i, b := range rows {
			switch uint(i) {
			case row % uint(len(rows)):
				b = changed
			case (second + 1) % uint(len(rows)):
				b = other
			}
			block = protowire.AppendBytes(block, b)
		}
		first, _, err := readSnapshot(bytes.NewReader(sealed(t, header, block, len(rows))))
		if err != nil {
			return
		}
		snapshotBytes(t, first)
	})
}

// sealed makes a snapshot of such rows, with the right sums.
func sealed(t testing.TB, header, block []byte, rows int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := newFrameWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	footer, err := deterministic.Marshal(&storagev1.SnapshotFooter{Rows: uint64(rows)})
	if err != nil {
		t.Fatal(err)
	}
	for _, frame := range []struct {
		kind    frameKind
		content []byte
	}{{headerFrame, header}, {rowsFrame, block}, {footerFrame, footer}} {
		if err := w.write(frame.kind, frame.content); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}
