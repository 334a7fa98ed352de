package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
	storagev1 "github.com/admitd/admit/proto/admit/storage/v1"
	"github.com/admitd/admit/raftstore/peer"
)

// busyState is a state with rows of every kind.
func busyState(t testing.TB) *admission.State {
	t.Helper()
	st := admission.New()
	index := uint64(0)
	apply := func(ops ...admission.Op) []admission.Result {
		index++
		return st.Apply(admission.Entry{
			Index: index, T: admission.Instant(index * 1e6), W: admission.Wall(noon.UnixNano() + int64(index)), Ops: ops,
		})
	}
	apply(admission.ApplyPolicy{Policy: testPolicy(), ExpectedRevision: admission.AnyRevision})
	p := testPolicy()
	p.Pools[0].MaxActive = 0
	p.Pools[0].Buckets = []admission.BucketPolicy{
		{Name: "provider", Scope: admission.ScopePool, Capacity: 1000, Refill: 1, Period: time.Second},
		{Name: "fair", Scope: admission.ScopeTenant, Capacity: 100, Refill: 1, Period: time.Second},
	}
	for i := range p.Pools[0].Lanes {
		p.Pools[0].Lanes[i].Batch.Size = 3
	}
	apply(admission.ApplyPolicy{Policy: p, ExpectedRevision: admission.AnyRevision})
	apply(&admission.PutTenants{Pool: "mail", Rows: []admission.TenantPut{{Tenant: admission.TenantPolicy{ID: "t1", Weight: 3}}}})
	var due admission.Schedule
	due.Pool = "mail"
	for i := range 500 {
		due.Entries = append(due.Entries, admission.EntrySpec{
			Tenant: fmt.Sprintf("t%d", i%5), Key: fmt.Sprintf("k%d", i), Category: "news", Route: fmt.Sprint(i % 3),
			Relative: true, DueIn: time.Duration(i%2) * time.Hour,
		})
	}
	due.Entries[7].Group = "run"
	apply(&due)
	apply(admission.Pause{Pool: "mail", Kind: admission.TargetGroup, Tenant: "t2", Name: "run"})
	apply(&admission.NextDue{Pool: "mail", MaxItems: 20, RequestID: "poll", Nonce: 3, Batch: true})
	got := apply(&admission.Acquire{Pool: "mail", Tenant: "t1", Category: "otp", Cost: 2, RequestID: "r", Nonce: 9})
	token := got[0].(*admission.AcquireResult).Decision.Permit.Token
	apply(&admission.Release{Token: token, Outcome: admission.OutcomeDone, ActualCost: 1, RetryAfter: admission.Absent})
	got = apply(&admission.Acquire{Pool: "mail", Tenant: "jobs", Cost: 1, DedupeKey: "job", Nonce: 10})
	token = got[0].(*admission.AcquireResult).Decision.Permit.Token
	apply(&admission.Release{Token: token, Outcome: admission.OutcomeDone, ActualCost: 100, RetryAfter: admission.Absent})
	apply(&admission.Acquire{Pool: "mail", Tenant: "jobs", Cost: 1, LockKey: "l", MaxWait: time.Minute, RequestID: "w", Nonce: 11})
	return st
}

func snapshotBytes(t testing.TB, st *admission.State) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeSnapshot(&b, st.Snapshot(), 0); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSnapshotsRestoreTheState(t *testing.T) {
	st := busyState(t)
	kinds := map[string]int{}
	for row := range st.Snapshot().Rows() {
		kinds[fmt.Sprintf("%T", row)]++
	}
	if want := (&storagev1.Row{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields().Len(); len(kinds) != want {
		t.Errorf("the state has rows of %d kinds, not %d: %v", len(kinds), want, kinds)
	}
	b := snapshotBytes(t, st)
	restored, _, err := readSnapshot(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := restored.Snapshot().Digest(), st.Snapshot().Digest(); got != want {
		t.Errorf("digest %x, want %x", got, want)
	}
	if again := snapshotBytes(t, restored); !bytes.Equal(again, b) {
		t.Errorf("a snapshot of the restored state has other bytes")
	}
}

func TestRowsSurviveStorage(t *testing.T) {
	token := admission.Token{Epoch: 1, Index: 2, Position: 3, Nonce: 4}
	charge := admission.ChargeRow{ID: 1, Flips: []uint32{2, 3}}
	bucket := admission.BucketRow{Charge: charge, Used: 2, Rem: 3, At: 4, PausedUntil: 5, PausedByHand: true, Throttles: 6}
	pair := [2]int64{1, -2}
	rows := []admission.Row{
		admission.PolicyRow{Policy: fullPolicy(), Draining: fullPolicy()},
		admission.RevisionRow{Revision: 1, AppliedAt: 2, Policy: fullPolicy()},
		admission.PoolRow{
			Name: "p", Num: 1, BucketIDs: 2, Skipped: 9, Swept: 10, Expired: 11, Fair: []admission.ChargeRow{charge}, NewTenants: bucket,
			Buckets: []admission.BucketRow{bucket},
			Lanes:   []admission.LaneRow{{Name: "l", Paused: true, Yielding: true, Floors: pair, Tops: pair, Shifts: pair}},
		},
		admission.PutRow{Pool: "p", Tenant: fullPolicy().Pools[0].Defaults},
		admission.TenantRow{Num: 1, Pool: "p", ID: "t", Paused: true, IdleAt: 9, Spare: true, Buckets: []admission.BucketRow{bucket}},
		admission.DemandRow{
			Tenant: 1, Lane: "l", Tags: pair, Rems: pair, Weight: 3, Backlog: 4, Reported: 5, Lingers: 6,
			Seats: [4]admission.SeatRow{{Seat: 4, Key: 3, Seq: 5, WakeAt: 6}, {Seat: 7, Key: 1, Seq: 8, WakeAt: 9}, {Seat: 1, Key: 9, Seq: 2, WakeAt: 3}, {Seat: 4, Key: 2, Seq: 5, WakeAt: 6}},
		},
		admission.PausedGroupRow{Tenant: 1, Group: "g"},
		admission.QueueRow{Tenant: 1, Lane: "l", Route: "r", Group: "g", Turn: 2, RipeFirst: 3, RipeSeq: 4},
		admission.EntryRow{
			Tenant: 1, Key: "k", Lane: "l", Route: "r", Category: "c", Group: "g", State: 2, Delayed: true,
			Relative: true, Given: 3, GivenAttempts: 4, Due: 5, First: 6, Seq: 7, Attempts: 8, Unstarted: 9,
			Retry:      admission.RetryPolicy{MaxAttempts: 1, Base: 2, Max: 3},
			ClaimIndex: 10, ClaimPosition: 11, DiedAt: 12, BuriedAt: 18, Redriven: true, CameDue: 19,
			History: []admission.Attempt{{Number: 1, Outcome: admission.OutcomeExpired, EndedAt: 2, WorkerID: "w"}},
			Letter:  13, Every: 14, Cadence: admission.CadencePolicy{Name: "c", Base: 1, Factor: 2, Max: 3},
			Behind: 15, Resume: 16, Misses: 17,
		},
		admission.PermitRow{
			Token: token, Fence: 1, Tenant: 2, Lane: "l", Granted: 8, Expires: 3, TTL: 4, Cost: 5, BucketIDs: 6, Cancelled: true,
			Entry: "k", Letter: 7, Worker: "w", Node: "n", Batch: true, LockKey: "l", DedupeKey: "d", Uncounted: true, Borrowed: true,
			Wanted: 9,
		},
		admission.PartRow{Token: token, Fence: 1, Permit: 2, Entry: "k", Letter: 8, Cancelled: true},
		admission.WaiterRow{
			Key: admission.WaiterKey{Index: 1, Position: 2}, Seq: 3, Tenant: 4, Lane: "l", Cost: 5, TTL: 6, LockKey: "k",
			DedupeKey: "d", RequestID: "r", Digest: 1 << 63, RateOnly: true, Settle: true, Worker: "w", Nonce: 1 << 63,
			AskedAt: 7, Until: 8, DetachedUntil: 9,
		},
		admission.DoneRow{Pool: "p", Tenant: "t", Key: "d", At: 1, Seq: 2},
		admission.EndedRow{Token: token, Pool: "p", Tenant: "t", At: 1, Seq: 2},
		admission.RequestRow{
			Pool: "p", Tenant: "t", ID: "r", Digest: 1 << 63, Tokens: []admission.Token{token}, Fence: 1, At: 2, Seq: 3,
		},
	}
	for _, want := range rows {
		checkFilled(t, reflect.ValueOf(want), fmt.Sprintf("%T", want))
		m, err := rowToStorage(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rowFromStorage(m)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v became %+v", want, got)
		}
	}
}

func TestHeadersSurviveStorage(t *testing.T) {
	want := admission.Header{
		Index: 1, T: 2, W: 3, LeaseOffset: 4, Epoch: 5, Grants: 6, Seq: 7, Pools: 8, Revision: 9, AppliedAt: 10,
	}
	checkFilled(t, reflect.ValueOf(want), "Header")
	if got := headerFromStorage(headerToStorage(want)); got != want {
		t.Errorf("%+v became %+v", want, got)
	}
}

func TestDamagedSnapshotsAreRefused(t *testing.T) {
	good := snapshotBytes(t, busyState(t))
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		if _, _, err := readSnapshot(bytes.NewReader(bad)); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d of %d flipped: %v", i, len(good), err)
		}
		if _, _, err := readSnapshot(bytes.NewReader(good[:i])); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut to %d bytes of %d: %v", i, len(good), err)
		}
	}
	if _, _, err := readSnapshot(bytes.NewReader(append(bytes.Clone(good), 0))); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with a byte more: %v", err)
	}
}

func TestSnapshotsOfNewerVersionsAreRefused(t *testing.T) {
	for _, h := range []*storagev1.SnapshotHeader{
		{FormatVersion: snapshotFormat + 1, FeatureLevel: peer.FeatureLevel},
		{FormatVersion: snapshotFormat, FeatureLevel: peer.FeatureLevel + 1},
	} {
		var b bytes.Buffer
		f, err := newFrameWriter(&b)
		if err != nil {
			t.Fatal(err)
		}
		header, err := deterministic.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.write(headerFrame, header); err != nil {
			t.Fatal(err)
		}
		if _, _, err := readSnapshot(&b); !errors.Is(err, ErrUnknownFormat) {
			t.Errorf("%v: %v", h, err)
		}
	}
}

func FuzzReadSnapshot(f *testing.F) {
	good := snapshotBytes(f, busyState(f))
	f.Add(good, uint(0), byte(0))
	f.Add(good[:len(good)/2], uint(9), byte(1))
	f.Fuzz(func(t *testing.T, b []byte, at uint, flip byte) {
		if len(b) > 0 {
			b = bytes.Clone(b)
			b[at%uint(len(b))] ^= flip
		}
		st, _, err := readSnapshot(bytes.NewReader(b))
		if err == nil && st == nil {
			t.Error("neither a state nor an error")
		}
	})
}

// newestSnapshot returns the path of a data file in the newest snapshot.
func newestSnapshot(t testing.TB, dir, file string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, snapshotsDir, "*", file))
	if err != nil || len(found) == 0 {
		t.Fatalf("no snapshots in %s: %v", dir, err)
	}
	return found[len(found)-1]
}

func flipByte(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil && err != io.EOF {
		t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func (n *node) snapshot() {
	n.t.Helper()
	if err := n.raft.Snapshot().Error(); err != nil {
		n.t.Fatalf("snapshot: %v", err)
	}
}

func TestNodeStartsFromASnapshot(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	before := n.mustAcquire("acme")
	n.snapshot()
	after := n.mustAcquire("acme")
	leftover := filepath.Join(n.cfg.Dir, snapshotsDir, "1-1-1.tmp")
	if err := os.Mkdir(leftover, 0o755); err != nil {
		t.Fatal(err)
	}
	n.restart()
	for _, token := range []admission.Token{before, after} {
		if got := n.release(token); got != admission.LeaseReleased {
			t.Errorf("release: %v", got)
		}
	}
	if _, err := os.Stat(leftover); !os.IsNotExist(err) {
		t.Errorf("an unfinished snapshot was left: %v", err)
	}
}

func TestNodeFallsBackToTheOlderSnapshot(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	token := n.mustAcquire("acme")
	n.snapshot()
	second := n.mustAcquire("acme")
	n.snapshot()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	flipByte(t, newestSnapshot(t, n.cfg.Dir, "state.bin"), 40)
	n.open()
	for _, token := range []admission.Token{token, second} {
		if got := n.release(token); got != admission.LeaseReleased {
			t.Errorf("release: %v", got)
		}
	}
}

func TestNodeRefusesToStartWithoutAReadableSnapshot(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	for range trailingLogs {
		n.do(admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low"})
	}
	n.snapshot() // from now on the log begins in the middle
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"state.bin", "meta.json"} {
		path := newestSnapshot(t, n.cfg.Dir, file)
		flipByte(t, path, 0)
		s, err := Open(n.cfg, testLogger(t), newRegistry(), clock.System())
		if err == nil {
			s.Close()
			t.Fatalf("%s damaged: the node started", file)
		}
		if !strings.Contains(err.Error(), "snapshot") {
			t.Errorf("%s damaged: %v", file, err)
		}
		flipByte(t, path, 0)
	}
	n.open()
}

func TestImagesStandWhileTheStateMoves(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				op := &admission.Schedule{Pool: "mail", Entries: []admission.EntrySpec{{Tenant: "acme", Key: fmt.Sprint(i % 50)}}}
				if _, err := n.Do(t.Context(), Request{Op: op}, Request{Op: &admission.NextDue{Pool: "mail", MaxItems: 1}}); err != nil {
					t.Errorf("do: %v", err)
					return
				}
			}
		})
	}
	for range 50 {
		image := n.Image()
		first, second := image.Digest(), image.Digest()
		if first != second {
			t.Errorf("an image changed from %x to %x", first, second)
		}
	}
	close(stop)
	wg.Wait()
}

func TestSnapshotsAreTakenAsTheLogGrows(t *testing.T) {
	for name, cfg := range map[string]Config{"entries": {SnapshotEntries: 20}, "bytes": {SnapshotBytes: 2000}} {
		cfg.Dir = t.TempDir()
		n := startNode(t, cfg, clock.System())
		n.applyPolicy(testPolicy())
		deadline := time.Now().Add(10 * time.Second)
		for n.snapshots.oldest() == 0 {
			n.do(admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low"})
			if time.Now().After(deadline) {
				t.Fatalf("no snapshot by %s", name)
			}
		}
	}
}
