package raftstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// Store is a durable node of admit, alone or a member of a cluster. Its methods may
// be called by any number of goroutines at once.
type Store struct {
	cfg     Config
	log     *slog.Logger
	clk     clock.Clock
	metrics *metrics
	nodeID  string
	ident   *ident

	lock      *os.File
	wal       *walLog
	end       *logEnd
	disk      *failStop
	snapshots *snapshots
	// cluster is nil where the node is alone.
	cluster *membership
	// raft is nil until the node is of a cluster; see running.
	raft *raft.Raft
	fsm  *fsm

	// term is set while this node leads and is ready. ending is the same, and
	// stays until what the term proposed has come back.
	term, ending atomic.Pointer[term]
	heard        heard
	// transfers are of whoever proposes: the leadership goroutine, or the term's.
	transfers transfers
	// changing is taken by who changes the members.
	changing chan struct{}
	confirms confirms
	// grown asks for a snapshot.
	grown chan struct{}

	// closing is closed by Close, failed by the first fatal error.
	closing chan struct{}
	failed  chan struct{}
	// ended is closed once raft has ended: what it has not answered it never will.
	ended     chan struct{}
	closeOnce sync.Once
	closeErr  error
	loops     sync.WaitGroup
	// waiters wait for entries on their way through raft.
	waiters sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}
	fatal   error
	// down is raft's shutdown, which can be waited for but once.
	down raft.Future
}

// Open opens the store in cfg.Dir, or founds one there. It returns once the
// last snapshot is restored; when the rest of the log is applied too and the
// node leads, within a second usually where it is alone, the store becomes Ready.
// A node that is new to its cluster looks for it after Open has returned.
//
// Errors: ErrInUse, ErrCorrupt, ErrUnknownFormat, and what the file system says.
func Open(cfg Config, log *slog.Logger, reg prometheus.Registerer, clk clock.Clock) (*Store, error) {
	s, err := openStore(cfg, log, reg, clk)
	if err != nil {
		return nil, err
	}
	if s.raft == nil {
		s.loops.Go(s.settle)
	} else {
		s.run(s.raft.LeaderCh())
	}
	return s, nil
}

// settle finds or founds a cluster, and begins to work for it.
func (s *Store) settle() {
	voters, err := s.cluster.seek()
	switch {
	case s.isClosing():
		return
	case err == nil:
		err = s.startRaft(voters)
	}
	if err != nil {
		s.fail(fmt.Errorf("find a cluster: %w", err))
		return
	}
	s.run(s.raft.LeaderCh())
}

// openStore is Open without what follows from leading.
func openStore(cfg Config, log *slog.Logger, reg prometheus.Registerer, clk clock.Clock) (*Store, error) {
	if err := cfg.Cluster.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg.withDefaults(), log: log, clk: clk, metrics: m,
		grown: make(chan struct{}, 1), closing: make(chan struct{}), failed: make(chan struct{}), ended: make(chan struct{}),
		changed: make(chan struct{}), changing: make(chan struct{}, 1),
	}
	s.fsm = &fsm{clk: clk, metrics: m, st: admission.New(), alone: cfg.Cluster == nil, fatal: s.fail, applied: s.applied, checked: s.compare, grown: s.noteGrowth,
		restored: func() { s.heard.note(clk.Now()) }}
	if s.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closePort(), s.closeFiles())
	}
	return s, nil
}

// run starts what runs until Close. Raft says through leads whether this node
// does.
func (s *Store) run(leads <-chan bool) {
	s.loops.Go(func() { s.lead(leads) })
	s.loops.Go(s.snapshotLoop)
	if s.cluster != nil {
		s.loops.Go(s.cluster.follow)
		s.loops.Go(s.cluster.meet)
	}
}

// NodeID returns the node's identity: it lives and dies with the data.
func (s *Store) NodeID() string { return s.nodeID }

// Failed returns a channel that is closed when the store can't go on; Err then
// says why. The owner is to end the process: some of the store may hang.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Err returns why the store can't go on, or nil.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal
}

// fail ends the store. It may be called by whatever found that it can't go on,
// and does not block.
func (s *Store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal != nil {
		return
	}
	s.fatal = err
	s.log.Error("the store ends", "error", err)
	s.setTermLocked(nil)
	// At once: raft takes a failed write for a reason to elect itself anew, and
	// panics when it can't store the new term.
	if s.raft != nil {
		s.shutDownLocked()
	}
	close(s.failed)
}

// running returns raft once it runs.
func (s *Store) running() *raft.Raft {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.raft
}

func (s *Store) shutDownLocked() raft.Future {
	if s.down == nil {
		s.down = s.raft.Shutdown()
	}
	return s.down
}

// Close ends the store in good order: calls in the log are answered, others
// refused. It waits for all goroutines, unless a write hangs. Further calls
// return what the first did.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.HandOver(context.Background())
	close(s.closing)
	if s.cluster != nil {
		s.cluster.cancel()
	}
	s.loops.Wait()
	if errors.Is(s.Err(), errStalled) {
		return errors.Join(fmt.Errorf("close the store: %w", s.Err()), s.closePort())
	}
	var err error
	if s.running() != nil {
		s.confirms.close(s.failed)
		s.mu.Lock()
		down := s.shutDownLocked()
		s.mu.Unlock()
		err = down.Error()
	}
	close(s.ended)
	if s.Err() == nil {
		// Of entries that it had not begun, a raft that ended early says nothing.
		s.waiters.Wait()
	}
	return errors.Join(err, s.closePort(), s.closeFiles())
}

func (s *Store) closePort() error {
	if s.cluster == nil || s.cluster.port == nil {
		return nil
	}
	return s.cluster.port.Close()
}

func (s *Store) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *Store) closeFiles() error {
	var err error
	if s.wal != nil {
		err = s.wal.Close()
	}
	if s.end != nil {
		err = errors.Join(err, s.end.close())
	}
	// Last, as it lets others in.
	return errors.Join(err, s.lock.Close())
}
