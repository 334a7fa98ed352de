package raftstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// Store is a durable node of admit: one voter. Its methods may be called by any
// number of goroutines at once.
type Store struct {
	cfg     Config
	log     *slog.Logger
	clk     clock.Clock
	metrics *metrics
	nodeID  string

	lock      *os.File
	wal       *walLog
	end       *logEnd
	snapshots *snapshots
	raft      *raft.Raft
	fsm       *fsm

	// term is set while this node leads and is ready. ending is the same, and
	// stays until what the term proposed has come back.
	term, ending atomic.Pointer[term]
	// cold is true until this process has led; of the leadership goroutine.
	cold bool
	// grown asks for a snapshot.
	grown chan struct{}

	// closing is closed by Close, failed by the first fatal error.
	closing   chan struct{}
	failed    chan struct{}
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
// node leads, within a second usually, the store becomes Ready.
//
// Errors: ErrInUse, ErrCorrupt, ErrUnknownFormat, and what the file system says.
func Open(cfg Config, log *slog.Logger, reg prometheus.Registerer, clk clock.Clock) (*Store, error) {
	s, err := openStore(cfg, log, reg, clk)
	if err != nil {
		return nil, err
	}
	s.run(s.raft.LeaderCh())
	return s, nil
}

// openStore is Open without what follows from leading.
func openStore(cfg Config, log *slog.Logger, reg prometheus.Registerer, clk clock.Clock) (*Store, error) {
	if cfg.Cluster != nil {
		return nil, errors.New("this version opens no member of a cluster of several")
	}
	m, err := newMetrics(reg)
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg.withDefaults(), log: log, clk: clk, metrics: m, cold: true,
		grown: make(chan struct{}, 1), closing: make(chan struct{}), failed: make(chan struct{}),
		changed: make(chan struct{}),
	}
	s.fsm = &fsm{clk: clk, metrics: m, st: admission.New(), fatal: s.fail, applied: s.applied, grown: s.noteGrowth}
	if s.lock, err = lockDir(cfg.Dir); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	return s, nil
}

// run starts what runs until Close. Raft says through leads whether this node
// does.
func (s *Store) run(leads <-chan bool) {
	s.loops.Go(func() { s.lead(leads) })
	s.loops.Go(s.snapshotLoop)
}

func (s *Store) open() error {
	dir, logger := s.cfg.Dir, raftLogger(s.log)
	id, err := readIdentity(dir)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && !fresh {
		return err
	}
	if s.end, err = openLogEnd(dir); err != nil {
		return err
	}
	if fresh {
		id = newIdentity()
		err = sweepUnfounded(dir, s.end)
	} else {
		err = checkWAL(filepath.Join(dir, walDir))
	}
	if err != nil {
		return err
	}
	s.nodeID = id.NodeID
	if err := os.MkdirAll(filepath.Join(dir, walDir), 0o755); err != nil {
		return fmt.Errorf("create the log's directory: %w", err)
	}
	if s.wal, err = openWAL(filepath.Join(dir, walDir), logger); err != nil {
		return err
	}
	store := &failStop{
		// A disk is slow in real time, whatever s.clk shows.
		durable: s.wal, clk: clock.System(), limit: s.cfg.WriteLimit, fatal: s.fail,
		wrote:    func(d time.Duration) { s.metrics.writeSeconds.Observe(d.Seconds()) },
		appended: s.end.set,
	}
	if s.snapshots, err = openSnapshots(dir, store, logger); err != nil {
		return err
	}
	store.oldest = s.snapshots.oldest
	return s.startRaft(store, id, fresh)
}

func (s *Store) startRaft(store *failStop, id identity, fresh bool) error {
	cache, err := raft.NewLogCache(logCacheEntries, store)
	if err != nil {
		return fmt.Errorf("set up the log's cache: %w", err)
	}
	stable := &oneVote{StableStore: store}
	addr, transport := raft.NewInmemTransport(raft.ServerAddress(s.nodeID))
	cfg := s.raftConfig()
	if fresh {
		voter := raft.Server{ID: cfg.LocalID, Address: addr}
		servers := raft.Configuration{Servers: []raft.Server{voter}}
		if err := raft.BootstrapCluster(cfg, cache, stable, s.snapshots, transport, servers); err != nil {
			return fmt.Errorf("found the cluster: %w", err)
		}
		if err := writeIdentity(s.cfg.Dir, id); err != nil {
			return err
		}
	}
	if err := s.checkFounded(cache, stable); err != nil {
		return err
	}
	r, err := raft.NewRaft(cfg, s.fsm, cache, stable, s.snapshots, transport)
	if err != nil {
		return errors.Join(fmt.Errorf("start raft: %w", err), s.snapshots.refusals(), s.fsm.refused)
	}
	if !votes(r, cfg.LocalID) {
		err := fmt.Errorf("%w: %s names node %s, which has no vote in this log", ErrCorrupt, identityFile, s.nodeID)
		return errors.Join(err, r.Shutdown().Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raft = r
	if s.fatal != nil {
		s.shutDownLocked()
	}
	return nil
}

// checkFounded refuses a directory whose log is not what the node once had:
// raft would panic, or wait for ever.
func (s *Store) checkFounded(log raft.LogStore, stable raft.StableStore) error {
	if err := errors.Join(s.end.check(log), s.wal.checkTerm()); err != nil {
		return err
	}
	if err := s.snapshots.check(); err != nil {
		return err
	}
	has, err := raft.HasExistingState(log, stable, s.snapshots)
	if err != nil {
		return fmt.Errorf("look at the log: %w", err)
	}
	if !has {
		return fmt.Errorf("%w: %s has an identity but no log", ErrCorrupt, s.cfg.Dir)
	}
	return checkLog(log)
}

// votes says whether a node has a vote: without one it would wait for ever.
func votes(r *raft.Raft, id raft.ServerID) bool {
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == id && s.Suffrage == raft.Voter
	})
}

// checkLog reads the whole log.
func checkLog(log raft.LogStore) error {
	first, err := log.FirstIndex()
	if err != nil {
		return fmt.Errorf("read the start of the log: %w", err)
	}
	last, err := log.LastIndex()
	if err != nil {
		return fmt.Errorf("read the end of the log: %w", err)
	}
	var l raft.Log
	for i := first; i <= last && i > 0; i++ {
		if err := log.GetLog(i, &l); err != nil {
			return fmt.Errorf("read log entry %d: %w", i, err)
		}
		if l.Index != i {
			return fmt.Errorf("%w: entry %d stands in the place of log entry %d", ErrCorrupt, l.Index, i)
		}
	}
	return nil
}

func (s *Store) raftConfig() *raft.Config {
	cfg := raft.DefaultConfig()
	cfg.LocalID = raft.ServerID(s.nodeID)
	cfg.HeartbeatTimeout = electionTimeout
	cfg.ElectionTimeout = electionTimeout
	cfg.LeaderLeaseTimeout = electionTimeout
	cfg.BatchApplyCh = true
	cfg.ShutdownOnRemove = false
	cfg.TrailingLogs = trailingLogs
	// snapshotLoop says when to take a snapshot, raft itself never does.
	cfg.SnapshotThreshold = 1 << 62
	cfg.Logger = raftLogger(s.log)
	cfg.NoLegacyTelemetry = true
	return cfg
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
	close(s.closing)
	s.loops.Wait()
	if errors.Is(s.Err(), errStalled) {
		return fmt.Errorf("close the store: %w", s.Err())
	}
	s.mu.Lock()
	down := s.shutDownLocked()
	s.mu.Unlock()
	err := down.Error()
	if s.Err() == nil {
		// Of entries that it had not begun, a raft that ended early says nothing.
		s.waiters.Wait()
	}
	return errors.Join(err, s.closeFiles())
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
