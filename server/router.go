package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server/forward"
)

// leaderTrailer tells callers where the leader is, beside answers that came from
// there by way of another node. Who asks the leader itself saves the detour.
const leaderTrailer = "admit-leader"

// router has the leader decide what this node can't. A call is tried here first: what
// is not well formed goes no further, and a node that does not lead says so without
// having done anything. Then the call goes to the leader, once: a node that was sent
// it, and does not lead either, refuses it.
type router struct {
	store  Store
	drain  *drain
	traces *traces
	debug  *debugger
	// forwarder is nil where the node is alone.
	forwarder *forward.Forwarder
	following sync.WaitGroup
}

// follow tells the forwarder and the debugger who leads, until the drain begins.
func (r *router) follow() {
	for {
		changed := r.store.ReadyChanged()
		leader := r.store.Leader()
		r.forwarder.Lead(leader.GRPCAddr)
		if leader.NodeID != r.store.NodeID() {
			r.debug.endAll("this node does not lead any more")
		}
		select {
		case <-changed:
		case <-r.drain.ctx.Done():
			return
		}
	}
}

// start begins to follow the leader, if there are others.
func (r *router) start() {
	if r.forwarder != nil {
		r.following.Go(r.follow)
	}
}

// close ends what is still on its way. The drain has begun.
func (r *router) close() {
	r.following.Wait()
	if r.forwarder != nil {
		r.forwarder.Close()
	}
}

// elsewhere says whether err means that another node is to answer the call, and
// which.
func (r *router) elsewhere(ctx context.Context, err error) (*raftstore.NotLeaderError, bool) {
	if err == nil || r.forwarder == nil {
		return nil, false
	}
	var leader *raftstore.NotLeaderError
	if forwarded(ctx) || !errors.As(err, &leader) || leader.LeaderAddr == "" {
		return nil, false
	}
	return leader, !errors.Is(err, raftstore.ErrOutcomeUnknown) && !errors.Is(err, forward.ErrNotSent)
}

// route forwards the calls that the handler finds to be the leader's.
func (r *router) route(ctx context.Context, req any, method string, handler grpc.UnaryHandler) (any, error) {
	began := time.Now()
	resp, err := answer(ctx, req, handler)
	leader, elsewhere := r.elsewhere(ctx, err)
	m, isMessage := req.(proto.Message)
	if !elsewhere || !isMessage {
		return resp, err
	}
	var stop <-chan struct{}
	if shorten(m, time.Since(began)) {
		stop = r.drain.ctx.Done()
	}
	answer, err := r.forward(ctx, leader, method, m, stop)
	if err != nil {
		return nil, err
	}
	// It fails only where nothing can be sent any more, answers neither.
	_ = grpc.SetTrailer(ctx, metadata.Pairs(leaderTrailer, leader.LeaderAddr))
	return encoded(answer), nil
}

// forward has the leader answer a call.
func (r *router) forward(
	ctx context.Context, leader *raftstore.NotLeaderError, method string, req proto.Message, stop <-chan struct{},
) ([]byte, error) {
	call, err := outgoing(ctx, method, req)
	if err != nil {
		return nil, err
	}
	span := r.traces.onward(ctx, method, leader.LeaderAddr)
	call.Traceparent = traceparent(span)
	answer, err := r.forwarder.Do(ctx, leader.LeaderAddr, call, stop)
	err = r.explain(ctx, leader, err, stop != nil)
	endOnward(span, err)
	return answer, err
}

// outgoing is a call as the leader is sent it.
func outgoing(ctx context.Context, method string, req proto.Message) (forward.Call, error) {
	data, err := proto.Marshal(req)
	if err != nil {
		return forward.Call{}, fmt.Errorf("encode a request to the leader: %w", err)
	}
	return forward.Call{Method: method, Request: data, Principal: identityOf(ctx).Name}, nil
}

// explain tells why the leader did not answer a call, which the drain ends if it waits.
func (r *router) explain(ctx context.Context, leader *raftstore.NotLeaderError, err error, waits bool) error {
	switch {
	case errors.Is(err, forward.ErrNotSent):
		return fmt.Errorf("%w: %w", leader, err)
	case endedThere(err) && ctx.Err() == nil && waits && r.drain.ctx.Err() != nil:
		return raftstore.ErrShuttingDown // the leader ended it as it was told to
	}
	return err
}

// shorten takes what has passed from a request's max_wait: the caller has waited so
// long already. It says whether the call may wait.
func shorten(req proto.Message, passed time.Duration) (mayWait bool) {
	less := func(d *durationpb.Duration) *durationpb.Duration {
		if d == nil {
			return nil
		}
		return durationpb.New(max(d.AsDuration()-passed, 0))
	}
	switch r := req.(type) {
	case *admitv1.AcquireRequest:
		r.MaxWait = less(r.MaxWait)
		return r.MaxWait != nil
	case *admitv1.BatchAcquireRequest:
		for _, item := range r.GetRequests() {
			item.MaxWait = less(item.MaxWait)
		}
		return slices.ContainsFunc(r.GetRequests(), waits)
	case *admitv1.NextDueRequest:
		r.MaxWait = less(r.MaxWait)
		return true
	default:
		return false
	}
}
