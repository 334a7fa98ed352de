package admitd

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/calls"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Answers returns what a caller is answered that is granted a permit and gives it back,
// for others to be as long.
func (a *Admit) Answers(ctx context.Context) (*admitv1.AcquireResponse, *admitv1.ReleaseResponse, error) {
	acquired, err := a.acquire(ctx, calls.Wide)
	if err != nil {
		return nil, nil, err
	}
	var released *admitv1.ReleaseResponse
	err = with(a.leader, func(conn *grpc.ClientConn) (err error) {
		token := acquired.GetDecision().GetPermit().GetToken()
		released, err = admitv1.NewAdmissionServiceClient(conn).Release(ctx, &admitv1.ReleaseRequest{Token: token})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("release: %w", err)
	}
	return acquired, released, nil
}

// Fill takes the one permit of the pool Full, and returns what the next who asks is
// answered.
func (a *Admit) Fill(ctx context.Context) (*admitv1.AcquireResponse, error) {
	for {
		resp, err := a.acquire(ctx, calls.Full)
		if err != nil || resp.GetDecision().GetShed() != nil {
			return resp, err
		}
	}
}

func (a *Admit) acquire(ctx context.Context, pool string) (*admitv1.AcquireResponse, error) {
	var resp *admitv1.AcquireResponse
	err := with(a.leader, func(conn *grpc.ClientConn) (err error) {
		resp, err = admitv1.NewAdmissionServiceClient(conn).Acquire(ctx, &admitv1.AcquireRequest{Pool: pool, Tenant: "tenant-000"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("acquire: %w", err)
	}
	return resp, nil
}

// LogIndex is how far the leader's log has come.
func (a *Admit) LogIndex(ctx context.Context) (uint64, error) {
	members, err := a.members(ctx)
	if err != nil {
		return 0, err
	}
	for _, m := range members {
		if m.GetGrpcAddr() == a.leader || a.nodes == 1 {
			return m.GetAppliedIndex(), nil
		}
	}
	return 0, fmt.Errorf("the leader is not among %d members", len(members))
}
