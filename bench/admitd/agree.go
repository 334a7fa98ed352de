package admitd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/result"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// with calls a node.
func with(addr string, do func(*grpc.ClientConn) error) error {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("dial %s: %w", addr, err)
	}
	return errors.Join(do(conn), conn.Close())
}

func (a *Admit) findLeader(ctx context.Context) error {
	return with(a.api[0], func(conn *grpc.ClientConn) error {
		resp, err := admitv1.NewClusterServiceClient(conn).ListMembers(ctx, &admitv1.ListMembersRequest{})
		if err != nil {
			return fmt.Errorf("ask for the leader: %w", err)
		}
		for _, m := range resp.GetMembers() {
			if m.GetLeader() {
				a.leader = m.GetGrpcAddr()
			}
		}
		if a.leader == "" {
			a.leader = a.api[0]
		}
		return nil
	})
}

// agreeLimit is how long replicas may take to have all of the log when nobody asks
// any more.
const agreeLimit = 20 * time.Second

// Check says whether the replicas are in the same place of the log and show the same
// there, and whether more was given out than there was.
func (a *Admit) Check(ctx context.Context) []result.Check {
	agree := result.Check{What: a.Name() + ": all replicas run, have applied the same log and show the same pools"}
	over := result.Check{What: a.Name() + ": no pool has more permits than its limit"}
	pools, err := a.agree(ctx)
	if err != nil {
		agree.Wrong = err.Error()
	}
	for _, p := range pools {
		if p.MaxActive != nil && p.GetActive() > p.GetMaxActive() {
			over.Wrong = fmt.Sprintf("pool %s has %d of %d", p.GetPool(), p.GetActive(), p.GetMaxActive())
		}
	}
	if len(pools) == 0 {
		over.Wrong = "no pool was shown"
	}
	return []result.Check{agree, over}
}

// agree waits until all replicas show the same at the same index.
func (a *Admit) agree(ctx context.Context) ([]*admitv1.PoolHealth, error) {
	ctx, cancel := context.WithTimeout(ctx, agreeLimit)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	var pools []*admitv1.PoolHealth
	err := errors.New("no time to ask them")
	for ctx.Err() == nil {
		shown, differ := a.compare(ctx)
		if differ == nil {
			return shown, nil
		}
		if ctx.Err() == nil {
			pools, err = shown, differ
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	return pools, err
}

func (a *Admit) compare(ctx context.Context) ([]*admitv1.PoolHealth, error) {
	var first *admitv1.QueueHealthResponse
	for _, addr := range a.api {
		resp, err := a.shown(ctx, addr)
		switch {
		case err != nil:
			return nil, err
		case first == nil:
			first = resp
		case resp.GetLogIndex() != first.GetLogIndex():
			return nil, fmt.Errorf("%s is at %d of the log, %s at %d", a.api[0], first.GetLogIndex(), addr, resp.GetLogIndex())
		case !proto.Equal(resp, first):
			return nil, fmt.Errorf("%s shows other pools at %d of the log than %s", addr, resp.GetLogIndex(), a.api[0])
		}
	}
	return first.GetPools(), nil
}

// shown is what a node has, but for what goes on with its clock.
func (a *Admit) shown(ctx context.Context, addr string) (*admitv1.QueueHealthResponse, error) {
	var resp *admitv1.QueueHealthResponse
	err := with(addr, func(conn *grpc.ClientConn) (err error) {
		resp, err = admitv1.NewStatusServiceClient(conn).QueueHealth(ctx, &admitv1.QueueHealthRequest{Stale: true})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask %s how it stands: %w", addr, err)
	}
	resp.Age, resp.ClusterTime = nil, nil
	for _, p := range resp.GetPools() {
		p.Buckets = nil
	}
	return resp, nil
}

// Answers returns what a caller is answered, for others to be as long.
func (a *Admit) Answers(ctx context.Context) (*admitv1.AcquireResponse, *admitv1.ReleaseResponse, error) {
	var acquired *admitv1.AcquireResponse
	var released *admitv1.ReleaseResponse
	err := with(a.leader, func(conn *grpc.ClientConn) (err error) {
		api := admitv1.NewAdmissionServiceClient(conn)
		acquired, err = api.Acquire(ctx, &admitv1.AcquireRequest{Pool: calls.Wide, Tenant: "tenant-000"})
		if err != nil {
			return fmt.Errorf("acquire: %w", err)
		}
		released, err = api.Release(ctx, &admitv1.ReleaseRequest{Token: acquired.GetDecision().GetPermit().GetToken()})
		if err != nil {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	})
	return acquired, released, err
}
