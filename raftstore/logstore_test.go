package raftstore

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/internal/clock"
)

// shakyDisk is a store whose writes fail or hang on demand.
type shakyDisk struct {
	*raft.InmemStore
	err  error
	hang <-chan struct{}
}

func (d *shakyDisk) StoreLogs(logs []*raft.Log) error {
	if d.hang != nil {
		<-d.hang
	}
	if d.err != nil {
		return d.err
	}
	return d.InmemStore.StoreLogs(logs)
}

func (d *shakyDisk) Set(k, v []byte) error {
	if d.err != nil {
		return d.err
	}
	return d.InmemStore.Set(k, v)
}

// newFailStop returns a store on a disk, and what it reports as fatal.
func newFailStop(d *shakyDisk) (s *failStop, fatal func() []error) {
	var mu sync.Mutex
	var errs []error
	s = &failStop{
		durable: d, clk: clock.System(), limit: time.Second,
		fatal: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		},
		wrote:    func(time.Duration) {},
		appended: func(uint64, []*raft.Log) error { return nil },
		oldest:   func() uint64 { return 0 },
	}
	return s, func() []error {
		mu.Lock()
		defer mu.Unlock()
		return errs
	}
}

func TestStoreEndsAtItsFirstFailedWrite(t *testing.T) {
	broken := errors.New("input/output error")
	disk := &shakyDisk{InmemStore: raft.NewInmemStore()}
	s, fatal := newFailStop(disk)
	if err := s.StoreLog(sampleLog(1)); err != nil {
		t.Fatal(err)
	}
	disk.err = broken
	if err := s.StoreLog(sampleLog(2)); !errors.Is(err, broken) {
		t.Errorf("a failed write: %v", err)
	}
	disk.err = nil
	if err := s.StoreLog(sampleLog(3)); !errors.Is(err, broken) {
		t.Errorf("a write after a failed one: %v", err)
	}
	if err := s.Set([]byte("k"), nil); !errors.Is(err, broken) {
		t.Errorf("a vote after a failed write: %v", err)
	}
	if got := fatal(); len(got) != 1 || !errors.Is(got[0], broken) {
		t.Errorf("told the owner %v", got)
	}
}

func TestStoreEndsWhenAWriteHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s, fatal := newFailStop(&shakyDisk{InmemStore: raft.NewInmemStore(), hang: hang})
		done := make(chan error)
		go func() { done <- s.StoreLog(sampleLog(1)) }()
		time.Sleep(time.Second - 1) // of the bubble's time
		synctest.Wait()
		if got := fatal(); got != nil {
			t.Fatalf("before the limit: %v", got)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if got := fatal(); len(got) != 1 || !errors.Is(got[0], errStalled) {
			t.Fatalf("after the limit: %v", got)
		}
		close(hang)
		if err := <-done; !errors.Is(err, errStalled) {
			t.Errorf("a write that came through late: %v", err)
		}
	})
}

// A process that was stopped in the middle of a write has not watched a disk hang.
func TestStoreOutlivesAPauseOfItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s, fatal := newFailStop(&shakyDisk{InmemStore: raft.NewInmemStore(), hang: hang})
		stopped := clock.NewManual(time.Unix(0, 0))
		s.clk = stopped
		done := make(chan error)
		go func() { done <- s.StoreLog(sampleLog(1)) }()
		synctest.Wait()
		stopped.Advance(time.Hour)
		synctest.Wait()
		if got := fatal(); got != nil {
			t.Fatalf("after a pause: %v", got)
		}
		close(hang)
		if err := <-done; err != nil {
			t.Errorf("a write that ended with the pause: %v", err)
		}
	})
}

func TestCompactionKeepsWhatFollowsTheOldestSnapshot(t *testing.T) {
	s, _ := newFailStop(&shakyDisk{InmemStore: raft.NewInmemStore()})
	for i := range uint64(10) {
		if err := s.StoreLog(sampleLog(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	s.oldest = func() uint64 { return 4 }
	if err := s.DeleteRange(1, 8); err != nil {
		t.Fatal(err)
	}
	if first, _ := s.FirstIndex(); first != 5 {
		t.Errorf("after compaction the log begins at %d, want 5", first)
	}
	if err := s.DeleteRange(6, 10); err != nil {
		t.Fatal(err)
	}
	if last, _ := s.LastIndex(); last != 5 {
		t.Errorf("after a conflict the log ends at %d, want 5", last)
	}
}

func TestAVoteIsOneRecord(t *testing.T) {
	disk := raft.NewInmemStore()
	s := &oneVote{StableStore: disk}
	vote := func(term uint64, candidate string) {
		t.Helper()
		if err := s.SetUint64([]byte(lastVoteTerm), term); err != nil {
			t.Fatal(err)
		}
		if candidate == "" {
			return
		}
		if err := s.Set([]byte(lastVoteCand), []byte(candidate)); err != nil {
			t.Fatal(err)
		}
	}
	vote(4, "a")
	vote(5, "") // a crash before the candidate
	s = &oneVote{StableStore: disk}
	term, err := s.GetUint64([]byte(lastVoteTerm))
	if term != 4 || err != nil {
		t.Errorf("term %d, %v; want 4", term, err)
	}
	candidate, err := s.Get([]byte(lastVoteCand))
	if string(candidate) != "a" || err != nil {
		t.Errorf("candidate %q, %v; want a", candidate, err)
	}
}
