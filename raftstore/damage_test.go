package raftstore

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// closedNode returns a directory in which a node left a policy and a permit.
func closedNode(t *testing.T) (Config, admission.Token) {
	t.Helper()
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	token := n.mustAcquire("acme")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return n.cfg, token
}

// refuses wants the directory to be refused as damaged.
func refuses(t *testing.T, cfg Config) {
	t.Helper()
	s, err := Open(cfg, testLogger(t), newRegistry(), clock.System())
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("the store opened with %v", err)
	}
}

// onlySegment returns the path of the only segment, and where what was written ends.
func onlySegment(t *testing.T, cfg Config) (path string, end int64) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(cfg.Dir, walDir, "*.wal"))
	if err != nil || len(found) != 1 {
		t.Fatalf("segments %v, %v", found, err)
	}
	b, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	for end = int64(len(b)); end > 0 && b[end-1] == 0; end-- {
	}
	return found[0], end
}

func overwrite(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// raft-wal by itself takes each of these for a crash, and drops what follows.
func TestALogThatLostItsEndIsRefused(t *testing.T) {
	for name, lose := range map[string]func(path string, end int64) error{
		"no segment":            func(path string, _ int64) error { return os.Remove(path) },
		"an empty segment":      func(path string, _ int64) error { return os.Truncate(path, 0) },
		"half a segment":        func(path string, end int64) error { return os.Truncate(path, end/2) },
		"a segment's last byte": func(path string, end int64) error { flipByte(t, path, end-1); return nil },
		"a segment's middle":    func(path string, end int64) error { overwrite(t, path, end/2, make([]byte, 64)); return nil },
		"a segment's beginning": func(path string, _ int64) error { overwrite(t, path, 0, make([]byte, 512)); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := closedNode(t)
			if err := lose(onlySegment(t, cfg)); err != nil {
				t.Fatal(err)
			}
			refuses(t, cfg)
		})
	}
}

func TestAListOfSegmentsThatIsDamagedIsRefused(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":      os.Remove,
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"cut short": func(path string) error { return os.Truncate(path, 10_000) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, _ := closedNode(t)
			path, _ := onlySegment(t, cfg)
			if err := damage(filepath.Join(cfg.Dir, walDir, "wal-meta.db")); err != nil {
				t.Fatal(err)
			}
			refuses(t, cfg)
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the segment is gone as well: %v", err)
			}
		})
	}
}

// Only a write notices that a free page is beyond the file's end, and the first
// would be raft's, which panics.
func TestAListOfSegmentsThatCannotBeWrittenIsRefused(t *testing.T) {
	const page, flags, freelist, first = 4096, 8, 0x10, 16
	cfg, _ := closedNode(t)
	path := filepath.Join(cfg.Dir, walDir, "wal-meta.db")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+page <= len(b); at += page {
		if b[at+flags] == freelist {
			b[at+first+4] ^= 1
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(cfg, testLogger(t), newRegistry(), clock.System())
	if err == nil {
		s.Close()
		t.Error("the store opened")
	}
}

// A node that the log does not know would wait for ever.
func TestAnIdentityThatIsAnotherNodesIsRefused(t *testing.T) {
	cfg, _ := closedNode(t)
	if err := writeIdentity(cfg.Dir, identity{Version: dataVersion, NodeID: newNodeID(""), ClusterID: "c", Standing: member}); err != nil {
		t.Fatal(err)
	}
	refuses(t, cfg)
}

func TestALogsEndThatIsDamagedIsRefused(t *testing.T) {
	cfg, _ := closedNode(t)
	flipByte(t, filepath.Join(cfg.Dir, logEndFile), 3)
	refuses(t, cfg)
}

func TestDataIsNotFoundedAnewForLackOfItsIdentity(t *testing.T) {
	cfg, _ := closedNode(t)
	for _, name := range []string{identityFile, walDir} {
		if err := os.RemoveAll(filepath.Join(cfg.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	refuses(t, cfg)
}

// What nobody was told is durable may be lost: a write that a crash cut short,
// and a log's end that a power failure set back.
func TestAWriteCutShortIsDropped(t *testing.T) {
	cfg, token := closedNode(t)
	w, err := openWAL(filepath.Join(cfg.Dir, walDir), hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	last, err := w.LastIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StoreLogs([]*raft.Log{{Index: last + 1, Term: 9, Data: []byte("never acknowledged")}}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path, end := onlySegment(t, cfg)
	overwrite(t, path, end-24, make([]byte, 24))
	overwrite(t, filepath.Join(cfg.Dir, logEndFile), 0, appendLogEnd(last-1))
	n := startNode(t, cfg, clock.System())
	if got := n.release(token); got != admission.LeaseReleased {
		t.Errorf("release: %v", got)
	}
}

// fullDisk has no room for another segment.
type fullDisk struct{ types.SegmentFiler }

func (fullDisk) Create(types.SegmentInfo) (types.SegmentWriter, error) { return nil, syscall.ENOSPC }

func TestAFullDiskIsNamed(t *testing.T) {
	const size = 64 << 10
	dir := t.TempDir()
	segments := &walSegments{SegmentFiler: segment.NewFiler(dir, walfs.New())}
	w, err := wal.Open(dir, wal.WithCodec(logCodec{}), wal.WithSegmentFiler(segments), wal.WithSegmentSize(size),
		wal.WithLogger(hclog.NewNullLogger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	segments.SegmentFiler = fullDisk{segments.SegmentFiler}
	log := &walLog{w, segments}
	for i := uint64(1); err == nil && i < 5; i++ {
		err = log.StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: make([]byte, size/2)}})
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
}

func TestALogsEndThatIsMissingIsMade(t *testing.T) {
	cfg, token := closedNode(t)
	path := filepath.Join(cfg.Dir, logEndFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, cfg, clock.System())
	if got := n.release(token); got != admission.LeaseReleased {
		t.Errorf("release: %v", got)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	lost, _ := onlySegment(t, cfg)
	if err := os.Remove(lost); err != nil {
		t.Fatal(err)
	}
	refuses(t, cfg)
}

// withSnapshot returns a node that was closed with a permit after its snapshot.
func withSnapshot(t *testing.T) (*node, admission.Token) {
	t.Helper()
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	n.snapshot()
	token := n.mustAcquire("acme")
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	return n, token
}

// describe changes what the newest snapshot says of itself.
func (n *node) describe(change func(meta map[string]any)) {
	n.t.Helper()
	path := newestSnapshot(n.t, n.cfg.Dir, "meta.json")
	b, err := os.ReadFile(path)
	if err != nil {
		n.t.Fatal(err)
	}
	var meta map[string]any
	if err := json.Unmarshal(b, &meta); err != nil {
		n.t.Fatal(err)
	}
	change(meta)
	if b, err = json.Marshal(meta); err != nil {
		n.t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		n.t.Fatal(err)
	}
}

func TestASnapshotWithoutVotersIsRefused(t *testing.T) {
	n, _ := withSnapshot(t)
	n.describe(func(meta map[string]any) { delete(meta, "Configuration") })
	refuses(t, n.cfg)
}

// The library takes the first for one of later entries, which would then be left
// out of the log, and waits for ever with the second.
func TestASnapshotThatIsDescribedWronglyIsNotUsed(t *testing.T) {
	for name, change := range map[string]func(meta map[string]any){
		"another index":             func(meta map[string]any) { meta["Index"] = meta["Index"].(float64) + 1 },
		"no configuration's origin": func(meta map[string]any) { delete(meta, "ConfigurationIndex") },
	} {
		t.Run(name, func(t *testing.T) {
			n, token := withSnapshot(t)
			n.describe(change)
			n.open()
			if got := n.release(token); got != admission.LeaseReleased {
				t.Errorf("release: %v", got)
			}
		})
	}
}
