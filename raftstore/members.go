package raftstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/admitd/admit/raftstore/peer"
)

var (
	// ErrUnknownMember says that the cluster has no such member.
	ErrUnknownMember = errors.New("the cluster has no such member")
	// ErrMembership says that the members don't allow what was asked. Nothing was
	// done.
	ErrMembership = errors.New("the cluster's members don't allow it")
)

// Leader returns who leads, as far as this node knows.
func (s *Store) Leader() Leader {
	r := s.running()
	if r == nil {
		return Leader{}
	}
	_, id := r.LeaderWithID()
	switch {
	case string(id) == s.nodeID && s.term.Load() == nil:
		return Leader{} // it is not ready to yet, or not any more
	case string(id) == s.nodeID:
		return Leader{NodeID: s.nodeID, GRPCAddr: s.cfg.grpcAddr()}
	case id == "":
		return Leader{}
	}
	at, _, _ := s.cluster.port.Book().Find(string(id))
	return Leader{NodeID: string(id), GRPCAddr: at.GRPCAddr}
}

// Members returns the members of the cluster in the order of their ids, after it
// has asked them how they are, for an election timeout at most. Any node answers,
// as far as it knows.
func (s *Store) Members(ctx context.Context) ([]Member, error) {
	leader := s.Leader().NodeID
	said := make(map[string]peer.Info)
	if s.cluster != nil {
		for _, in := range s.cluster.ask(ctx, s.cluster.members()) {
			said[in.NodeID] = in
		}
	}
	members := []Member{}
	for _, server := range s.servers() {
		m := s.describe(server, said)
		m.Leader = m.NodeID == leader
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return members, nil
}

// describe tells of a member what the cluster's configuration says and what it said
// itself.
func (s *Store) describe(server raft.Server, said map[string]peer.Info) Member {
	m := Member{NodeID: string(server.ID), Voter: server.Suffrage == raft.Voter, LastContact: -1}
	switch {
	case m.NodeID == s.nodeID:
		m.Reachable, m.LastContact = true, 0
		m.Applied, m.Digest = s.fsm.decided()
		m.PeerAddr, m.GRPCAddr = s.cfg.peerAddr(), s.cfg.grpcAddr()
		return m
	case s.cluster == nil:
		return m
	}
	m.PeerAddr = peer.AddrOf(server.Address)
	if at, ago, known := s.cluster.port.Book().Find(m.NodeID); known {
		m.PeerAddr, m.GRPCAddr, m.LastContact = cmp.Or(at.PeerAddr, m.PeerAddr), at.GRPCAddr, ago
	}
	in, answered := said[m.NodeID]
	m.Reachable, m.Applied, m.Digest = answered, in.Applied, in.Digest
	return m
}

// Join takes the node that listens for members at peerAddr into the cluster. It
// has no vote until it has caught up; then it is given one.
//
// Errors of this and the other changes: *NotLeaderError, ErrNoQuorum,
// ErrShuttingDown, ErrUnknownMember and ErrMembership mean that nothing was done;
// ErrOutcomeUnknown that it maybe was.
func (s *Store) Join(ctx context.Context, peerAddr string) error {
	if _, err := s.leading(); err != nil {
		return err
	}
	if s.cluster == nil {
		return fmt.Errorf("%w: this node has no port for members", ErrMembership)
	}
	reply, err := s.cluster.port.Call(ctx, "", peerAddr, peer.Request{})
	if err != nil {
		return fmt.Errorf("%w: ask who is there: %w", ErrMembership, err)
	}
	// The address that was dialed may be another name of the node, and the others could
	// not know it.
	return s.addMember(ctx, reply.Info.NodeID, reply.Info.PeerAddr)
}

// addMember adds a member, or notes that it has another address.
func (s *Store) addMember(ctx context.Context, nodeID, peerAddr string) error {
	return s.change(ctx, func(within time.Duration) (raft.Future, error) {
		target := peer.Target(nodeID, peerAddr)
		if slices.ContainsFunc(s.servers(), func(m raft.Server) bool { return m.Address == target }) {
			return nil, nil
		}
		s.log.Info("takes a member in", "member", nodeID, "peer_addr", peerAddr)
		return s.raft.AddNonvoter(raft.ServerID(nodeID), target, 0, within), nil
	})
}

// move notes that a member has another address.
func (s *Store) move(ctx context.Context, server raft.Server, addr string) error {
	return s.change(ctx, func(within time.Duration) (raft.Future, error) {
		target := peer.Target(string(server.ID), addr)
		if server.Suffrage == raft.Voter {
			return s.raft.AddVoter(server.ID, target, 0, within), nil
		}
		return s.raft.AddNonvoter(server.ID, target, 0, within), nil
	})
}

// Promote gives a member its vote, however far it is behind.
func (s *Store) Promote(ctx context.Context, nodeID string) error {
	return s.change(ctx, func(within time.Duration) (raft.Future, error) {
		server, err := s.member(nodeID)
		if err != nil || server.Suffrage == raft.Voter {
			return nil, err
		}
		return s.raft.AddVoter(server.ID, server.Address, 0, within), nil
	})
}

// Remove takes a member out of the cluster. The node does not ask to be taken in again;
// with an empty data directory it would, as another. It is refused where those that would be left with a vote, as far as they have been heard of
// lately, are no quorum.
func (s *Store) Remove(ctx context.Context, nodeID string) error {
	return s.change(ctx, func(within time.Duration) (raft.Future, error) {
		server, err := s.member(nodeID)
		if err != nil {
			return nil, err
		}
		if server.Suffrage == raft.Voter {
			left := slices.DeleteFunc(s.voters(), func(v raft.Server) bool { return v.ID == server.ID })
			if there := s.inTouch(left); there <= len(left)/2 {
				return nil, fmt.Errorf("%w: without %s only %d of %d voters would be there", ErrMembership, nodeID, there, len(left))
			}
		}
		return s.raft.RemoveServer(server.ID, 0, within), nil
	})
}

// inTouch returns how many of the voters are this node or were heard of lately.
func (s *Store) inTouch(voters []raft.Server) (n int) {
	for _, v := range voters {
		if string(v.ID) == s.nodeID {
			n++
			continue
		}
		if _, ago, known := s.cluster.port.Book().Find(string(v.ID)); known && ago < transportTimeouts*s.cfg.electionTimeout() {
			n++
		}
	}
	return n
}

// Transfer hands the lead to a member with a vote, or with "" to any that is fit.
func (s *Store) Transfer(ctx context.Context, nodeID string) error {
	return s.change(ctx, func(within time.Duration) (raft.Future, error) {
		switch {
		case len(s.voters()) == 1:
			return nil, fmt.Errorf("%w: nobody else has a vote", ErrMembership)
		case nodeID == "":
			return s.raft.LeadershipTransfer(), nil
		}
		server, err := s.member(nodeID)
		switch {
		case err != nil || nodeID == s.nodeID:
			return nil, err
		case server.Suffrage != raft.Voter:
			return nil, fmt.Errorf("%w: %s has no vote", ErrMembership, nodeID)
		}
		return s.raft.LeadershipTransferToServer(server.ID, server.Address), nil
	})
}

// change makes one change of the members or the leader, on the leader, and waits
// for it as long as ctx allows. There is one at a time: what is decided by those who
// are there must be done before that is no longer so. begin hands it to raft within
// a time; there is none to make if it returns no future.
func (s *Store) change(ctx context.Context, begin func(within time.Duration) (raft.Future, error)) error {
	if _, err := s.leading(); err != nil {
		return err
	}
	select {
	case s.changing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%w: wait for another change: %w", ErrMembership, ctx.Err())
	case <-s.failed:
		return s.unavailable()
	case <-s.closing:
		return ErrShuttingDown
	}
	if !s.awaited() {
		<-s.changing
		return ErrShuttingDown
	}
	f, err := s.begun(ctx, begin)
	if err != nil || f == nil {
		s.waiters.Done()
		<-s.changing
		return err
	}
	// The next one waits for this one's end, whether its caller does or not.
	done := make(chan error, 1)
	go func() {
		defer s.waiters.Done()
		done <- s.answer(f)
		<-s.changing
	}()
	select {
	case err := <-done:
		if err == nil {
			return nil
		}
		return proposalError(err)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, ctx.Err())
	case <-s.failed:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, s.Err())
	}
}

// awaited has Close wait for one waiter more, unless it has begun.
func (s *Store) awaited() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isClosing() {
		return false
	}
	s.waiters.Add(1)
	return true
}

// begun begins a change, unless this node has lost the lead while it waited for another.
func (s *Store) begun(ctx context.Context, begin func(within time.Duration) (raft.Future, error)) (raft.Future, error) {
	if _, err := s.leading(); err != nil {
		return nil, err
	}
	within := transportTimeouts * s.cfg.electionTimeout()
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, time.Until(deadline))
	}
	// 0 would be for ever.
	return begin(max(within, time.Millisecond))
}

// answer waits for raft's answer. A transfer that is queued when raft ends has none.
func (s *Store) answer(f raft.Future) error {
	answered := make(chan error, 1)
	go func() { answered <- f.Error() }()
	select {
	case err := <-answered:
		return err
	case <-s.ended:
		return raft.ErrRaftShutdown
	}
}

// member returns a member.
func (s *Store) member(nodeID string) (raft.Server, error) {
	servers := s.servers()
	i := slices.IndexFunc(servers, func(m raft.Server) bool { return string(m.ID) == nodeID })
	if i < 0 {
		return raft.Server{}, fmt.Errorf("%w: %s", ErrUnknownMember, nodeID)
	}
	return servers[i], nil
}

func (s *Store) servers() []raft.Server {
	r := s.running()
	if r == nil {
		return nil
	}
	return slices.Clone(r.GetConfiguration().Configuration().Servers) // raft's own
}

func (s *Store) voters() []raft.Server {
	return slices.DeleteFunc(s.servers(), func(m raft.Server) bool { return m.Suffrage != raft.Voter })
}
