package admitd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// with calls a node.
func with(addr string, do func(*grpc.ClientConn) error) error {
	conn, err := system.Dial(addr)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close())
}

// findLeader notes where the leader takes calls. A node that is alone leads.
func (a *Admit) findLeader(ctx context.Context) error {
	a.leader = a.api[0]
	members, err := a.members(ctx)
	if err != nil {
		return err
	}
	for _, m := range members {
		if m.GetLeader() && m.GetGrpcAddr() != "" {
			a.leader = m.GetGrpcAddr()
		}
	}
	return nil
}

// agreeLimit is how long members may take to have all of the log when nobody asks
// any more.
const agreeLimit = 20 * time.Second

// Check says whether all is well with what was decided, and the same node led.
func (a *Admit) Check(ctx context.Context) []result.Check {
	return append(a.CheckDecisions(ctx), a.CheckLeader(ctx))
}

// CheckDecisions says whether all members have decided the same, and whether more was
// given out than there is.
func (a *Admit) CheckDecisions(ctx context.Context) []result.Check {
	agree := result.Check{What: a.Name() + ": all members have applied the same entries with the same decisions"}
	if err := a.agree(ctx); err != nil {
		agree.Wrong = err.Error()
	}
	over := result.Check{What: a.Name() + ": no pool has more permits than its limit"}
	if err := a.withinLimits(ctx); err != nil {
		over.Wrong = err.Error()
	}
	return []result.Check{agree, over}
}

// CheckLeader says whether the node that led when they started led until now.
func (a *Admit) CheckLeader(ctx context.Context) result.Check {
	led := result.Check{What: a.Name() + ": the same node led all the time"}
	if err := a.led(ctx); err != nil {
		led.Wrong = err.Error()
	}
	return led
}

// led returns an error if another node leads than when the nodes started: while they
// elected one nobody was served, and afterwards calls took a detour.
func (a *Admit) led(ctx context.Context) error {
	before := a.leader
	if err := a.findLeader(ctx); err != nil {
		return err
	}
	if a.leader != before {
		return fmt.Errorf("%s leads, and not %s as when it began", a.leader, before)
	}
	return nil
}

// agree waits until all members have the same digest at the same index.
func (a *Admit) agree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agreeLimit)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	err := errors.New("no time to ask them")
	for ctx.Err() == nil {
		members, differ := a.members(ctx)
		if differ == nil {
			differ = same(members, a.nodes)
		}
		if differ == nil {
			return nil
		}
		if ctx.Err() == nil {
			err = differ
		}
		select {
		case <-again.C:
		case <-ctx.Done():
		}
	}
	return err
}

// same returns an error unless so many members have decided the same.
func same(members []*admitv1.Member, nodes int) error {
	if len(members) != nodes {
		return fmt.Errorf("%d of %d members are there", len(members), nodes)
	}
	first := members[0]
	for _, m := range members {
		switch {
		case !m.GetReachable():
			return fmt.Errorf("%s does not answer", m.GetNodeId())
		case m.DecisionsDigest == nil && nodes > 1:
			return fmt.Errorf("%s tells no digest", m.GetNodeId())
		case m.GetAppliedIndex() != first.GetAppliedIndex():
			return fmt.Errorf("%s has applied %d, %s %d", first.GetNodeId(), first.GetAppliedIndex(), m.GetNodeId(), m.GetAppliedIndex())
		case m.GetDecisionsDigest() != first.GetDecisionsDigest():
			return fmt.Errorf("%s has decided otherwise than %s up to %d", m.GetNodeId(), first.GetNodeId(), m.GetAppliedIndex())
		}
	}
	return nil
}

func (a *Admit) members(ctx context.Context) ([]*admitv1.Member, error) {
	var resp *admitv1.ListMembersResponse
	err := with(a.leader, func(conn *grpc.ClientConn) (err error) {
		resp, err = admitv1.NewClusterServiceClient(conn).ListMembers(ctx, &admitv1.ListMembersRequest{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask for the members: %w", err)
	}
	return resp.GetMembers(), nil
}

func (a *Admit) withinLimits(ctx context.Context) error {
	return with(a.leader, func(conn *grpc.ClientConn) error {
		resp, err := admitv1.NewStatusServiceClient(conn).QueueHealth(ctx, &admitv1.QueueHealthRequest{})
		if err != nil {
			return fmt.Errorf("ask how the pools stand: %w", err)
		}
		for _, p := range resp.GetPools() {
			if p.MaxActive != nil && p.GetActive() > p.GetMaxActive() {
				return fmt.Errorf("pool %s has %d of %d", p.GetPool(), p.GetActive(), p.GetMaxActive())
			}
		}
		return nil
	})
}
