package raftstore

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/raftstore/peer"
)

const (
	// caughtUp is how many entries a member may be behind to be given a vote.
	caughtUp = 1000
	// healthyFor is how long it must have been so, in election timeouts.
	healthyFor = 10
)

// promote gives members their votes when they have caught up, and notes where
// members have moved to, until ctx ends. It removes nobody: one that is away
// may come back, and every removal makes the quorum smaller.
func (m *membership) promote(ctx context.Context) {
	timer := time.NewTimer(m.cfg.ElectionTimeout)
	defer timer.Stop()
	healthy := make(map[string]time.Time)
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			m.tend(ctx, healthy, time.Now())
			timer.Reset(m.cfg.ElectionTimeout)
		}
	}
}

// tend looks after all members once. Since when each of those without a vote has
// been healthy is in healthy.
func (m *membership) tend(ctx context.Context, healthy map[string]time.Time, now time.Time) {
	others := m.ask(ctx, m.members())
	for _, server := range m.s.servers() {
		id := string(server.ID)
		i := slices.IndexFunc(others, func(in peer.Info) bool { return in.NodeID == id })
		switch {
		case id == m.s.nodeID:
			m.moved(ctx, server, m.cfg.Advertise)
		case i < 0:
			delete(healthy, id)
		case server.Suffrage == raft.Voter:
			delete(healthy, id)
			m.moved(ctx, server, others[i].PeerAddr)
		default:
			m.moved(ctx, server, others[i].PeerAddr)
			m.promoteIf(ctx, others[i], healthy, now)
		}
	}
}

// promoteIf gives a member its vote if it has been fit for it long enough.
func (m *membership) promoteIf(ctx context.Context, in peer.Info, healthy map[string]time.Time, now time.Time) {
	if in.Applied+caughtUp < m.s.fsm.index() {
		delete(healthy, in.NodeID)
		return
	}
	since, known := healthy[in.NodeID]
	if !known {
		healthy[in.NodeID] = now
		return
	}
	if now.Sub(since) < healthyFor*m.cfg.ElectionTimeout {
		return
	}
	delete(healthy, in.NodeID)
	m.log("gives a member its vote", in.NodeID, m.within(ctx, func(ctx context.Context) error {
		return m.s.Promote(ctx, in.NodeID)
	}))
}

// moved notes where a member is now.
func (m *membership) moved(ctx context.Context, server raft.Server, addr string) {
	if addr == "" || peer.AddrOf(server.Address) == addr {
		return
	}
	m.log("notes that a member has moved", string(server.ID), m.within(ctx, func(ctx context.Context) error {
		return m.s.move(ctx, server, addr)
	}))
}

func (m *membership) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, transportTimeouts*m.cfg.ElectionTimeout)
	defer cancel()
	return do(ctx)
}

func (m *membership) log(what, nodeID string, err error) {
	if err != nil {
		m.s.log.Warn("failed to change a member: "+what, "member", nodeID, "error", err)
		return
	}
	m.s.log.Info(what, "member", nodeID)
}
