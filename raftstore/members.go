package raftstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
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
	if s.term.Load() != nil {
		return Leader{NodeID: s.nodeID}
	}
	return Leader{}
}

// Members returns the members of the cluster in the order of their ids. Any node
// answers, as far as it knows.
func (s *Store) Members(context.Context) ([]Member, error) {
	leader := s.Leader().NodeID
	members := []Member{}
	for _, server := range s.servers() {
		id := string(server.ID)
		m := Member{NodeID: id, Voter: server.Suffrage == raft.Voter, Leader: id == leader, LastContact: -1}
		if id == s.nodeID {
			m.Reachable, m.LastContact, m.Applied = true, 0, s.fsm.index()
		}
		members = append(members, m)
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.NodeID, b.NodeID) })
	return members, nil
}

// Join asks the node that listens for members at peerAddr into the cluster. It
// has no vote until it has caught up; then it is given one.
//
// Errors of this and the other changes: *NotLeaderError, ErrNoQuorum,
// ErrShuttingDown, ErrUnknownMember and ErrMembership mean that nothing was done;
// ErrOutcomeUnknown that it maybe was.
func (s *Store) Join(ctx context.Context, peerAddr string) error {
	if _, err := s.leading(); err != nil {
		return err
	}
	return fmt.Errorf("%w: this node has no peer port", ErrMembership)
}

// Promote gives a member its vote, however far it is behind.
func (s *Store) Promote(ctx context.Context, nodeID string) error {
	server, err := s.member(nodeID)
	if err != nil || server.Suffrage == raft.Voter {
		return err
	}
	return s.change(ctx, s.raft.AddVoter(server.ID, server.Address, 0, 0))
}

// Remove takes a member out of the cluster. Its id never comes back.
func (s *Store) Remove(ctx context.Context, nodeID string) error {
	server, err := s.member(nodeID)
	if err != nil {
		return err
	}
	if voters := s.voters(); server.Suffrage == raft.Voter && len(voters) == 1 {
		return fmt.Errorf("%w: %s is the only one with a vote", ErrMembership, nodeID)
	}
	return s.change(ctx, s.raft.RemoveServer(server.ID, 0, 0))
}

// Transfer hands the lead to a member with a vote, or with "" to any that is fit.
func (s *Store) Transfer(ctx context.Context, nodeID string) error {
	if _, err := s.leading(); err != nil {
		return err
	}
	if len(s.voters()) == 1 {
		return fmt.Errorf("%w: nobody else has a vote", ErrMembership)
	}
	if nodeID == "" {
		return s.change(ctx, s.raft.LeadershipTransfer())
	}
	server, err := s.member(nodeID)
	switch {
	case err != nil:
		return err
	case nodeID == s.nodeID:
		return nil
	case server.Suffrage != raft.Voter:
		return fmt.Errorf("%w: %s has no vote", ErrMembership, nodeID)
	}
	return s.change(ctx, s.raft.LeadershipTransferToServer(server.ID, server.Address))
}

// change waits for a change of the members, as long as ctx allows.
func (s *Store) change(ctx context.Context, f raft.Future) error {
	done := make(chan error, 1)
	s.waiters.Go(func() { done <- f.Error() })
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

// member returns a member, on the leader.
func (s *Store) member(nodeID string) (raft.Server, error) {
	if _, err := s.leading(); err != nil {
		return raft.Server{}, err
	}
	servers := s.servers()
	i := slices.IndexFunc(servers, func(m raft.Server) bool { return string(m.ID) == nodeID })
	if i < 0 {
		return raft.Server{}, fmt.Errorf("%w: %s", ErrUnknownMember, nodeID)
	}
	return servers[i], nil
}

func (s *Store) servers() []raft.Server { return s.raft.GetConfiguration().Configuration().Servers }

func (s *Store) voters() []raft.Server {
	return slices.DeleteFunc(s.servers(), func(m raft.Server) bool { return m.Suffrage != raft.Voter })
}
