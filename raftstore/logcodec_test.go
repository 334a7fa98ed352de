package raftstore

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

func sampleLog(index uint64) *raft.Log {
	return &raft.Log{
		Index: index, Term: 3, Type: raft.LogCommand, Data: []byte("data"), Extensions: []byte("more"),
		AppendedAt: time.Unix(0, 1234567890),
	}
}

func encodeLog(t testing.TB, l *raft.Log) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := (logCodec{}).Encode(l, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLogEntriesSurviveTheCodec(t *testing.T) {
	for _, want := range []*raft.Log{sampleLog(7), {Index: 1, Term: 1, Type: raft.LogNoop}} {
		var got raft.Log
		if err := (logCodec{}).Decode(encodeLog(t, want), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(&got, want) {
			t.Errorf("%+v became %+v", want, got)
		}
	}
}

func TestDamagedLogEntriesAreRefused(t *testing.T) {
	good := encodeLog(t, sampleLog(7))
	var l raft.Log
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if err := (logCodec{}).Decode(bad, &l); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d flipped: %v", i, err)
		}
		if err := (logCodec{}).Decode(good[:i], &l); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
}

func FuzzDecodeLogEntry(f *testing.F) {
	f.Add(encodeLog(f, sampleLog(7)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l raft.Log
		if err := (logCodec{}).Decode(b, &l); err != nil {
			return
		}
		if !bytes.Equal(encodeLog(t, &l), b) {
			t.Errorf("%x became %+v", b, l)
		}
	})
}

func TestLogCanBeReopened(t *testing.T) {
	dir := t.TempDir()
	for last := uint64(0); last < 3; last++ {
		w, err := openWAL(dir, hclog.NewNullLogger())
		if err != nil {
			t.Fatalf("open with %d entries: %v", last, err)
		}
		if got, err := w.LastIndex(); got != last || err != nil {
			t.Fatalf("last index %d, %v; want %d", got, err, last)
		}
		if err := w.StoreLog(sampleLog(last + 1)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
