package raftstore

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore/peer"
)

// membership is a store's part in a cluster. It answers other members on the peer
// port, finds a cluster for a node that has none, and follows who leads.
type membership struct {
	s    *Store
	cfg  *Cluster
	port *peer.Port
	// ctx ends when the store closes.
	ctx    context.Context
	cancel context.CancelFunc
	// entered is closed when a node without a cluster has become one of one.
	entered chan struct{}
	// met is set once this node has applied what a leader had committed when they
	// first met: before that, what it shows may be far behind.
	met atomic.Bool
	// lease is until when leaseHolds is known to be true.
	lease atomic.Pointer[time.Time]
	// led is the last time that this node led; nil if it has not yet.
	led atomic.Pointer[lead]
	// comparing is taken while digests are compared.
	comparing chan struct{}

	mu sync.Mutex
	// sees are the nodes without a cluster that were found last.
	sees []string
	left sync.Once
}

// newMembership opens the peer port.
func newMembership(s *Store) (*membership, error) {
	m := &membership{s: s, cfg: s.cfg.Cluster, entered: make(chan struct{}), comparing: make(chan struct{}, 1)}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	var err error
	m.port, err = peer.Open(peer.Config{
		Listener: m.cfg.Listener, Advertise: m.cfg.Advertise, GRPCAddr: m.cfg.GRPCAddr, TLS: m.cfg.TLS,
		Node: m, Log: s.log,
	})
	return m, err
}

// Hello says who this node is.
func (m *membership) Hello() peer.Hello {
	id := m.s.ident.get()
	return peer.Hello{NodeID: id.NodeID, ClusterID: id.ClusterID}
}

// Admit lets a member talk raft to this node. One that means this very node, which
// has no cluster, has it for a member: this is how a node learns that it was taken
// in.
func (m *membership) Admit(from peer.Hello) error {
	switch {
	case from.ClusterID == "" || from.To != m.s.nodeID:
		return errors.New("raft is for members")
	case from.ClusterID == m.s.ident.get().ClusterID:
		return nil
	}
	return m.enter(from.ClusterID)
}

func (m *membership) enter(clusterID string) error {
	if err := m.s.ident.enter(clusterID); err != nil {
		return err
	}
	m.left.Do(func() {
		m.s.log.Info("is of a cluster", "node_id", m.s.nodeID, "cluster_id", clusterID)
		close(m.entered)
	})
	return nil
}

// Answer answers another node.
func (m *membership) Answer(ctx context.Context, from peer.Hello, r peer.Request) peer.Reply {
	var reply peer.Reply
	var err error
	switch {
	case r.Found != nil && m.cfg.Expect == 0:
		err = errors.New("this node founds no cluster, but waits to be taken into one")
	case r.Found != nil:
		err = m.enter(r.Found.ClusterID)
	case r.Join:
		err = m.s.addMember(ctx, from.NodeID, from.PeerAddr)
	case r.DigestAt > 0:
		m.s.fsm.read(func(*admission.State) {
			if digest, known := m.s.fsm.digests.at(r.DigestAt); known {
				reply.Digest = &digest
			}
		})
	}
	if err != nil {
		reply.Error = err.Error()
	}
	reply.Info = m.info()
	return reply
}

func (m *membership) info() peer.Info {
	id := m.s.ident.get()
	in := peer.Info{
		NodeID: id.NodeID, ClusterID: id.ClusterID, PeerAddr: m.cfg.Advertise, GRPCAddr: m.cfg.GRPCAddr,
		Founded: id.Standing == member, Expect: m.cfg.Expect,
		Wall: m.s.clk.Now().Wall.UnixNano(),
	}
	in.Applied, in.Digest = m.s.fsm.decided()
	if r := m.s.running(); r != nil {
		addr, leader := r.LeaderWithID()
		in.Leader = peer.Address{NodeID: string(leader), PeerAddr: peer.AddrOf(addr)}
		in.Last, in.Committed = r.LastIndex(), r.CommitIndex()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in.Sees = m.sees
	return in
}

// follow tells who waits whenever another leads, and looks for the others while
// nobody does, until the store closes: they may not know where this node is now, or
// that it is to be one of them.
func (m *membership) follow() {
	seen := make(chan raft.Observation, 1)
	led := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	m.s.raft.RegisterObserver(led)
	defer m.s.raft.DeregisterObserver(led)
	timer := time.NewTimer(m.cfg.ElectionTimeout)
	defer timer.Stop()
	for {
		select {
		case <-m.s.closing:
			return
		case <-seen:
			m.s.noteChange()
		case <-timer.C:
			if m.s.Leader().NodeID == "" {
				m.ask(m.ctx, m.members())
				m.rejoin()
			}
			timer.Reset(m.cfg.ElectionTimeout)
		}
	}
}

// meet asks who leads how far the cluster is, and waits until this node is there.
func (m *membership) meet() {
	every := m.cfg.ElectionTimeout / 5
	timer := time.NewTimer(every)
	defer timer.Stop()
	for !m.meetLeader() {
		timer.Reset(every)
		select {
		case <-m.s.closing:
			return
		case <-m.s.failed:
			return
		case <-timer.C:
		}
	}
	m.met.Store(true)
	m.s.noteChange()
}

func (m *membership) meetLeader() bool {
	at := m.info().Leader
	switch {
	case at.NodeID == m.s.nodeID:
		return m.s.term.Load() != nil
	case at.NodeID == "":
		return false
	}
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.ElectionTimeout)
	defer cancel()
	r, err := m.port.CallMember(ctx, at.NodeID, at.PeerAddr, peer.Request{})
	if err != nil || r.Info.Leader.NodeID != at.NodeID {
		return false
	}
	return m.s.until(m.ctx, func() bool { return m.s.fsm.seen.Load() >= r.Info.Committed }) == nil
}

// hurry has the only voter elect itself at once: there is nobody whose heartbeat
// could be late.
func (m *membership) hurry(t raft.Transport) {
	var resp raft.TimeoutNowResponse
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax}
	addr := peer.Target(m.s.nodeID, m.cfg.Advertise)
	if err := t.TimeoutNow(raft.ServerID(m.s.nodeID), addr, &raft.TimeoutNowRequest{RPCHeader: header}, &resp); err != nil {
		m.s.log.Debug("failed to hurry an election", "error", err) // it takes its time then
	}
}

// members returns the other members.
func (m *membership) members() []place {
	var others []place
	for _, v := range m.s.servers() {
		if string(v.ID) != m.s.nodeID {
			others = append(others, place{string(v.ID), peer.AddrOf(v.Address)})
		}
	}
	return others
}

// place is where a node is, or with no id where whoever is there is.
type place struct{ nodeID, addr string }

// ask asks nodes who they are, all at once, and returns what those say that answer
// within an election timeout.
func (m *membership) ask(ctx context.Context, places []place) []peer.Info {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.ElectionTimeout)
	defer cancel()
	said := make([]peer.Info, len(places))
	var asking sync.WaitGroup
	for i, p := range places {
		asking.Go(func() {
			if r, err := m.port.CallMember(ctx, p.nodeID, p.addr, peer.Request{}); err == nil {
				said[i] = r.Info
			} else {
				m.s.log.Debug("a node does not answer", "peer_addr", p.addr, "error", err)
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(said, func(in peer.Info) bool { return in.NodeID == "" })
}
