// Package rawraft is three nodes of hashicorp/raft that replicate entries for a state
// that does nothing with them: the library and the log store that admit uses, as they
// come. The leader is part of this program and its caller calls the library, with no
// server in between: what a commit takes is the least that any decision can.
package rawraft

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"

	"github.com/admitd/admit/bench/system"
)

// Server is the name under which the program runs as a follower.
const Server = "raft"

const members = 3

// Raft is the system.
type Raft struct {
	version   string
	leader    *node
	processes system.Processes
}

func (r *Raft) Name() string     { return "hashicorp/raft, 3 nodes" }
func (r *Raft) Version() string  { return r.version }
func (r *Raft) Processes() []int { return append(r.processes.IDs(), os.Getpid()) }

// Start starts two followers, and the leader here.
func (r *Raft) Start(ctx context.Context, dir string) error {
	var err error
	if r.version, err = system.ModuleVersion(ctx, ".", "github.com/hashicorp/raft"); err != nil {
		return err
	}
	addrs, err := system.FreeAddrs(members)
	if err != nil {
		return err
	}
	for i, addr := range addrs[1:] {
		home := filepath.Join(dir, fmt.Sprint(i+1))
		cmd, err := system.Self(Server, append([]string{home, addr}, addrs...)...)
		if err != nil {
			return err
		}
		p, err := system.StartProcess(home+".log", cmd)
		if err != nil {
			return err
		}
		r.processes = append(r.processes, p)
	}
	if r.leader, err = newNode(filepath.Join(dir, "0"), addrs[0], addrs, time.Second); err != nil {
		return err
	}
	return r.processes[0].Await(ctx, func(context.Context) error { return r.leader.raft.VerifyLeader().Error() })
}

func (r *Raft) Stop() error {
	var err error
	if r.leader != nil {
		err = r.leader.close()
	}
	return errors.Join(err, r.processes.Stop())
}

// Serve runs a follower until it is killed: args are its directory, its address and
// those of all.
func Serve(args []string) error {
	// It leaves it to the leader to become that.
	if _, err := newNode(args[0], args[1], args[2:], time.Minute); err != nil {
		return err
	}
	select {}
}

// node is a member.
type node struct {
	raft      *raft.Raft
	log       *wal.WAL
	transport *raft.NetworkTransport
}

// cacheSize is that of admit's cache of the log, in entries.
const cacheSize = 128

func newNode(dir, addr string, all []string, election time.Duration) (*node, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	log, err := wal.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	n := &node{log: log}
	if n.transport, err = raft.NewTCPTransport(addr, nil, members, 10*time.Second, io.Discard); err != nil {
		return nil, errors.Join(fmt.Errorf("listen: %w", err), n.close())
	}
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.BatchApplyCh, cfg.Logger = raft.ServerID(addr), true, hclog.NewNullLogger()
	cfg.HeartbeatTimeout, cfg.ElectionTimeout, cfg.LeaderLeaseTimeout = election, election, time.Second
	var servers raft.Configuration
	for _, a := range all {
		servers.Servers = append(servers.Servers, raft.Server{ID: raft.ServerID(a), Address: raft.ServerAddress(a)})
	}
	cache, err := raft.NewLogCache(cacheSize, log)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cache the log: %w", err), n.close())
	}
	snapshots := raft.NewInmemSnapshotStore()
	if err := raft.BootstrapCluster(cfg, cache, log, snapshots, n.transport, servers); err != nil {
		return nil, errors.Join(fmt.Errorf("found the cluster: %w", err), n.close())
	}
	if n.raft, err = raft.NewRaft(cfg, nothing{}, cache, log, snapshots, n.transport); err != nil {
		return nil, errors.Join(fmt.Errorf("start raft: %w", err), n.close())
	}
	return n, nil
}

func (n *node) close() error {
	var all error
	if n.raft != nil {
		all = n.raft.Shutdown().Error()
	}
	if n.transport != nil {
		all = errors.Join(all, n.transport.Close())
	}
	return errors.Join(all, n.log.Close())
}
