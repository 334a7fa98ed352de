package server

import (
	"context"
	"log/slog"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// Membership is the cluster's members and the changes of them. The changes block
// until they hold.
type Membership interface {
	// NodeID is that of this node.
	NodeID() string
	// Members returns the members, by id. It asks them first how they are.
	Members(ctx context.Context) ([]raftstore.Member, error)
	// Join takes in the node that listens for members at an address.
	Join(ctx context.Context, peerAddr string) error
	// Promote gives a member a vote.
	Promote(ctx context.Context, nodeID string) error
	// Remove takes a member out.
	Remove(ctx context.Context, nodeID string) error
	// Transfer hands the lead to a member, or to any with an empty id.
	Transfer(ctx context.Context, nodeID string) error
}

type clusterService struct {
	admitv1.UnsafeClusterServiceServer
	members Membership
	log     *slog.Logger
}

func (s *clusterService) ListMembers(ctx context.Context, _ *admitv1.ListMembersRequest) (*admitv1.ListMembersResponse, error) {
	members, err := s.members.Members(ctx)
	if err != nil {
		return nil, err
	}
	return writeMembers(s.members.NodeID(), members), nil
}

func (s *clusterService) Join(ctx context.Context, in *admitv1.JoinRequest) (*admitv1.JoinResponse, error) {
	addr, err := readJoin(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.JoinResponse{}, s.change(ctx, "took a member in", addr, s.members.Join)
}

func (s *clusterService) Promote(ctx context.Context, in *admitv1.PromoteRequest) (*admitv1.PromoteResponse, error) {
	id, err := readMember(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.PromoteResponse{}, s.change(ctx, "gave a member its vote", id, s.members.Promote)
}

func (s *clusterService) Remove(ctx context.Context, in *admitv1.RemoveRequest) (*admitv1.RemoveResponse, error) {
	id, err := readMember(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.RemoveResponse{}, s.change(ctx, "took a member out", id, s.members.Remove)
}

func (s *clusterService) Transfer(ctx context.Context, in *admitv1.TransferRequest) (*admitv1.TransferResponse, error) {
	id, err := readTransfer(in)
	if err != nil {
		return nil, err
	}
	return &admitv1.TransferResponse{}, s.change(ctx, "handed over the lead", id, s.members.Transfer)
}

// change makes a change and logs it.
func (s *clusterService) change(ctx context.Context, done, member string, make func(context.Context, string) error) error {
	if err := make(ctx, member); err != nil {
		return err
	}
	s.log.InfoContext(ctx, done, "member", member)
	return nil
}
