package raftstore

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/admission"
)

var update = flag.Bool("update", false, "write the golden files of the present formats that are missing")

// golden returns what was written to disk once and must be read for ever.
func golden(t *testing.T, name string, present []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) && *update {
		b, err = present, os.WriteFile(path, present, 0o644)
	}
	if err != nil {
		t.Fatalf("%v; a new format wants a new file: go test -update", err)
	}
	return b
}

func TestGoldenCommand(t *testing.T) {
	b := golden(t, "command-v1.bin", encode(t, stamp{proposal: 1, t: 2, w: 3, check: check{4, 5}}, everyOp()...))
	e, stamped, err := decodeCommand(9, b)
	if err != nil {
		t.Fatal(err)
	}
	want := admission.Entry{Index: 9, T: 2, W: 3, Ops: everyOp()}
	if !reflect.DeepEqual(e, want) || stamped.proposal != 1 || stamped.check != (check{4, 5}) {
		t.Errorf("got %+v, want %+v", e, want)
	}
}

func TestGoldenLogEntry(t *testing.T) {
	b := golden(t, "log-entry-v1.bin", encodeLog(t, sampleLog(7)))
	var l raft.Log
	if err := (logCodec{}).Decode(b, &l); err != nil {
		t.Fatal(err)
	}
	if want := sampleLog(7); !reflect.DeepEqual(&l, want) {
		t.Errorf("got %+v, want %+v", l, want)
	}
}

func TestGoldenSnapshot(t *testing.T) {
	b := golden(t, "snapshot-v1.bin", snapshotBytes(t, busyState(t)))
	st, _, err := readSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := st.Index(), uint64(11); got != want {
		t.Errorf("index %d, want %d", got, want)
	}
	at, w := st.Now()
	h := st.Health(at, w, "mail")[0]
	if h.Active != 7 || h.Entries != 500 || h.Waiting != 1 {
		t.Errorf("%d permits, %d entries and %d waiters, want 7, 500 and 1", h.Active, h.Entries, h.Waiting)
	}
}
