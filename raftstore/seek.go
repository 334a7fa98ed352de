package raftstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/raftstore/peer"
)

// seek looks for a cluster until this node is of one. It returns the voters to
// found one with, or none where the node was taken into one.
//
// A cluster that exists is joined: this node asks its leader, and is in when the
// leader first talks raft to it. Only where nobody has a cluster is one founded,
// by the node with the lowest id of those that see each other. It makes up the
// cluster's id and has each of them promise to be of that one and no other, on its
// disk. Not before all have does it found the cluster: so none is founded twice, and
// two are only by twice as many nodes as it takes for one.
func (m *membership) seek() ([]raft.Server, error) {
	// Far more often than others can be expected to change anything.
	every := m.cfg.ElectionTimeout / 5
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.entered:
			return nil, nil
		case <-m.s.closing:
			return nil, ErrShuttingDown
		case <-timer.C:
		}
		voters, err := m.look()
		if err != nil || voters != nil {
			return voters, err
		}
		timer.Reset(every + rand.N(every))
	}
}

// look looks around once.
func (m *membership) look() ([]raft.Server, error) {
	others := slices.DeleteFunc(m.ask(m.ctx, m.seeds()), func(in peer.Info) bool { return in.NodeID == m.s.nodeID })
	m.mu.Lock()
	m.sees = nil
	for _, in := range others {
		if !in.Founded {
			m.sees = append(m.sees, in.NodeID)
		}
	}
	m.mu.Unlock()
	if i := slices.IndexFunc(others, func(in peer.Info) bool { return in.Founded }); i >= 0 {
		m.askIn(others[i])
		return nil, nil
	}
	self := m.info()
	set := founders(self, others)
	if set == nil || self.ClusterID == "" && set[0].NodeID != self.NodeID {
		return nil, nil
	}
	return m.found(set)
}

// founders returns who is to found a cluster, in the order of their ids: the first
// of those without one that see each other, this node among them, as many as it
// takes; or nil while there are too few.
func founders(self peer.Info, others []peer.Info) []peer.Info {
	if self.Expect == 0 {
		return nil
	}
	set := []peer.Info{self}
	for _, in := range others {
		free := in.ClusterID == "" || in.ClusterID == self.ClusterID
		if !in.Founded && free && in.Expect == self.Expect && !sees(set, in.NodeID) {
			set = append(set, in)
		}
	}
	slices.SortFunc(set, func(a, b peer.Info) int { return strings.Compare(a.NodeID, b.NodeID) })
	if len(set) < self.Expect {
		return nil
	}
	set = set[:self.Expect]
	if !sees(set, self.NodeID) {
		return nil
	}
	for _, a := range set {
		if a.ClusterID == "" && !seesAll(a, set) {
			return nil
		}
	}
	return set
}

func sees(set []peer.Info, id string) bool {
	return slices.ContainsFunc(set, func(in peer.Info) bool { return in.NodeID == id })
}

func seesAll(a peer.Info, set []peer.Info) bool {
	for _, b := range set {
		if b.NodeID != a.NodeID && !slices.Contains(a.Sees, b.NodeID) {
			return false
		}
	}
	return true
}

// found has the others promise to be of the cluster, and returns its voters when
// all have.
func (m *membership) found(set []peer.Info) ([]raft.Server, error) {
	if err := m.s.ident.found(); err != nil {
		if m.s.ident.get().Standing == joining {
			return nil, nil // another was faster
		}
		return nil, err
	}
	clusterID := m.s.ident.get().ClusterID
	var voters []raft.Server
	for _, in := range set {
		voters = append(voters, raft.Server{ID: raft.ServerID(in.NodeID), Address: peer.Target(in.NodeID, in.PeerAddr)})
		if in.NodeID == m.s.nodeID {
			continue
		}
		if err := m.call(in, peer.Request{Found: &peer.Found{ClusterID: clusterID}}); err != nil {
			m.s.log.Info("failed to found a cluster", "cluster_id", clusterID, "with", in.NodeID, "error", err)
			return nil, nil
		}
	}
	m.s.log.Info("founds a cluster", "node_id", m.s.nodeID, "cluster_id", clusterID, "voters", len(voters))
	return voters, nil
}

// rejoin is for a node that has promised to be of a cluster and was founded or taken in
// without: it asks to be. One that is a member already is told so by its leader's first
// call.
func (m *membership) rejoin() {
	id := m.s.ident.get()
	if id.Standing != joining {
		return
	}
	others := m.ask(m.ctx, m.seeds())
	if i := slices.IndexFunc(others, func(in peer.Info) bool { return in.Founded && in.ClusterID == id.ClusterID }); i >= 0 {
		m.askIn(others[i])
	}
}

// seeds are the places at which to look for a cluster.
func (m *membership) seeds() []place {
	places := make([]place, len(m.cfg.Join))
	for i, addr := range m.cfg.Join {
		places[i] = place{addr: addr}
	}
	return places
}

// askIn asks the leader of a cluster to take this node in.
func (m *membership) askIn(in peer.Info) {
	to := peer.Info{NodeID: in.Leader.NodeID, PeerAddr: in.Leader.PeerAddr}
	if to.NodeID == "" {
		return // they have to elect one first
	}
	if err := m.call(to, peer.Request{Join: true}); err != nil {
		m.s.log.Info("failed to join a cluster", "cluster_id", in.ClusterID, "leader", to.NodeID, "error", err)
	}
}

func (m *membership) call(to peer.Info, r peer.Request) error {
	ctx, cancel := context.WithTimeout(m.ctx, transportTimeouts*m.cfg.ElectionTimeout)
	defer cancel()
	reply, err := m.port.CallMember(ctx, to.NodeID, to.PeerAddr, r)
	if err != nil {
		return err
	}
	if reply.Error != "" {
		return fmt.Errorf("node %s: %w", to.NodeID, errors.New(reply.Error))
	}
	return nil
}
