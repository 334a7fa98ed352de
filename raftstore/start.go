package raftstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/internal/clock"
	"github.com/admitd/admit/raftstore/peer"
)

// open opens what is on the disk, and starts raft unless the node has yet to find
// a cluster.
func (s *Store) open() error {
	dir, logger := s.cfg.Dir, raftLogger(s.log)
	if err := s.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, walDir), 0o755); err != nil {
		return fmt.Errorf("create the log's directory: %w", err)
	}
	var err error
	if s.wal, err = openWAL(filepath.Join(dir, walDir), logger); err != nil {
		return err
	}
	s.disk = &failStop{
		// A disk is slow in real time, whatever s.clk shows: a build for tests may make
		// both wrong, which is no more than a limit that is a little off.
		durable: s.wal, clk: clock.System(), limit: s.cfg.WriteLimit, fatal: s.fail,
		wrote:    func(d time.Duration) { s.metrics.writeSeconds.Observe(d.Seconds()) },
		appended: s.appended,
	}
	if s.snapshots, err = openSnapshots(dir, s.disk, logger); err != nil {
		return err
	}
	s.disk.oldest, s.fsm.opened = s.snapshots.oldest, s.snapshots.lastOpened
	standing := s.ident.get().Standing
	if s.cfg.Cluster == nil {
		return s.startRaft(s.alone(standing))
	}
	if s.cluster, err = newMembership(s); err != nil || standing == seeking || standing == founding {
		return err
	}
	return s.startRaft(nil)
}

// identify finds out whose data the directory holds, and makes up a node where it
// holds none.
func (s *Store) identify() (err error) {
	var known bool
	if s.ident, known, err = readIdent(s.cfg.Dir); err != nil {
		return err
	}
	if s.end, err = openLogEnd(s.cfg.Dir); err != nil {
		return err
	}
	id := s.ident.get()
	name := ""
	if s.cfg.Cluster != nil {
		if name, err = s.cfg.Cluster.name(); err != nil {
			return err
		}
	}
	switch {
	case known && id.Standing == member:
		err = checkWAL(filepath.Join(s.cfg.Dir, walDir))
	case known && s.cfg.Cluster == nil:
		err = fmt.Errorf("%s belongs to node %s, which is to be of a cluster, and can't be opened alone", s.cfg.Dir, id.NodeID)
	case known && id.Standing == joining:
	default:
		err = sweepUnfounded(s.cfg.Dir, s.end)
	}
	switch {
	case err != nil:
		return err
	case !known && s.cfg.Cluster == nil:
		// Written when it has founded its log.
		s.ident.id = identity{NodeID: newNodeID(""), ClusterID: randomHex(8), Standing: founding}
	case !known:
		err = s.ident.change(func(id *identity) { id.NodeID, id.Standing = newNodeID(name), seeking })
	case name != "" && !peer.Owns(name, id.NodeID):
		err = fmt.Errorf("%s belongs to node %s, and the certificate is of node %s", s.cfg.Dir, id.NodeID, name)
	}
	s.nodeID = s.ident.get().NodeID
	return err
}

// alone returns the only voter, where a lone node is to be founded.
func (s *Store) alone(standing string) []raft.Server {
	if standing == member {
		return nil
	}
	return []raft.Server{{ID: raft.ServerID(s.nodeID), Address: raft.ServerAddress(s.nodeID)}}
}

// startRaft starts raft, with voters given after it has founded a cluster of them.
func (s *Store) startRaft(voters []raft.Server) error {
	transport := s.transport()
	r, err := s.newRaft(transport, voters)
	if err != nil {
		return errors.Join(err, transport.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raft = r
	if s.fatal != nil {
		s.shutDownLocked()
	} else if s.cluster != nil && s.isOnlyVoter(r) {
		s.loops.Go(func() { s.cluster.hurry(transport) })
	}
	return nil
}

func (s *Store) isOnlyVoter(r *raft.Raft) bool {
	mine, others := false, false
	for _, server := range r.GetConfiguration().Configuration().Servers {
		if server.Suffrage == raft.Voter {
			mine, others = mine || string(server.ID) == s.nodeID, others || string(server.ID) != s.nodeID
		}
	}
	return mine && !others
}

func (s *Store) newRaft(transport transport, voters []raft.Server) (*raft.Raft, error) {
	cache, err := raft.NewLogCache(logCacheEntries, s.disk)
	if err != nil {
		return nil, fmt.Errorf("set up the log's cache: %w", err)
	}
	stable := &oneVote{StableStore: s.disk}
	cfg := s.raftConfig()
	if voters != nil {
		servers := raft.Configuration{Servers: voters}
		if err := raft.BootstrapCluster(cfg, cache, stable, s.snapshots, transport, servers); err != nil {
			return nil, fmt.Errorf("found the cluster: %w", err)
		}
		if err := s.ident.settle(); err != nil {
			return nil, err
		}
	}
	if err := s.checkFounded(cache, stable); err != nil {
		return nil, err
	}
	r, err := raft.NewRaft(cfg, s.fsm, cache, stable, s.snapshots, transport)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), s.snapshots.refusals(), s.fsm.refused)
	}
	s.fsm.live.Store(true)
	if err := s.checkVoters(r.GetConfiguration().Configuration().Servers); err != nil {
		return nil, errors.Join(err, r.Shutdown().Error())
	}
	return r, nil
}

// transport is how raft talks to the others.
type transport interface {
	raft.Transport
	raft.WithClose
}

func (s *Store) transport() transport {
	if s.cluster != nil {
		return s.cluster.port.Raft(transportTimeouts*s.cfg.electionTimeout(), raftLogger(s.log))
	}
	_, t := raft.NewInmemTransport(raft.ServerAddress(s.nodeID))
	return t
}

// appended notes that the log on the disk ends at index, and what was added to it.
func (s *Store) appended(index uint64, added []*raft.Log) error {
	if slices.ContainsFunc(added, func(l *raft.Log) bool { return l.Type == raft.LogCommand }) {
		s.heard.note(s.clk.Now())
	}
	if err := s.end.set(index); err != nil {
		return err
	}
	if len(added) > 0 { // a snapshot that is installed cuts the log
		s.fsm.installs.Store(0)
	}
	return s.ident.settle()
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
	if !has && s.ident.get().Standing == member {
		return fmt.Errorf("%w: %s has an identity but no log", ErrCorrupt, s.cfg.Dir)
	}
	return checkLog(log)
}

// checkVoters refuses a lone node that has no vote, or not the only one: it would
// wait for ever.
func (s *Store) checkVoters(servers []raft.Server) error {
	if s.cluster != nil {
		return nil
	}
	mine := slices.ContainsFunc(servers, func(v raft.Server) bool { return string(v.ID) == s.nodeID && v.Suffrage == raft.Voter })
	switch {
	case !mine:
		return fmt.Errorf("%w: %s names node %s, which has no vote in this log", ErrCorrupt, identityFile, s.nodeID)
	case len(servers) > 1:
		return fmt.Errorf("%s belongs to one of %d members, and can't be opened alone", s.cfg.Dir, len(servers))
	}
	return nil
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
	cfg.HeartbeatTimeout = s.cfg.electionTimeout()
	cfg.ElectionTimeout = cfg.HeartbeatTimeout
	// Not less than the heartbeats': they wait for the disk, as all else does.
	cfg.LeaderLeaseTimeout = cfg.HeartbeatTimeout
	cfg.CommitTimeout = commitTimeout
	cfg.BatchApplyCh = true
	cfg.ShutdownOnRemove = false
	cfg.TrailingLogs = trailingLogs
	if s.cluster != nil {
		cfg.TrailingLogs = memberTrailingLogs
	}
	// snapshotLoop says when to take a snapshot, raft itself never does.
	cfg.SnapshotThreshold = 1 << 62
	cfg.Logger = raftLogger(s.log)
	cfg.NoLegacyTelemetry = true
	return cfg
}
