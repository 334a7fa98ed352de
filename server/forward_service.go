package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server/forward"
)

// forwardService answers what other nodes were asked. It passes on to the handlers
// of the API, as if the call had come by itself.
type forwardService struct {
	forwardv1.UnsafeForwardServiceServer
	*forward.Receiver
	replica Replica
}

func newForwardService(store Store, api *dispatcher, gate checkpoint, drain *drain, m *forward.Metrics) *forwardService {
	return &forwardService{replica: store, Receiver: &forward.Receiver{
		Admit:      gate.admitNode,
		Answer:     api.answer,
		Overloaded: statusError(&raftstore.OverloadedError{Queue: forwardQueue, RetryAfter: retryLater}, true),
		Stopping:   drain.ctx.Done(),
		Metrics:    m,
	}}
}

// forwardQueue names the forwarded calls in errors.
const forwardQueue = "forwarded calls"

// errNoNode says that what is for the nodes of the cluster came from elsewhere.
var errNoNode = errors.New("the caller is no node of the cluster")

// admitNode lets the nodes of the cluster in. Without a guard nobody is asked who he
// is: a call by way of this stream can do no more than one that came by itself.
func (c checkpoint) admitNode(ctx context.Context) error {
	if c.guard != nil && !identityOf(ctx).Node {
		return errNoNode
	}
	return nil
}

func (s *forwardService) ReadPoint(ctx context.Context, _ *forwardv1.ReadPointRequest) (*forwardv1.ReadPointResponse, error) {
	if !forwarded(ctx) {
		return nil, errNoNode
	}
	p, err := s.replica.ReadPoint(ctx)
	if err != nil {
		return nil, err
	}
	return &forwardv1.ReadPointResponse{
		LogIndex: p.Index, ClusterTime: durationpb.New(time.Duration(p.T)), Wall: int64(p.W),
	}, nil
}

// readPoint asks the leader for the present. A question without an answer has done
// nothing: no leader was found.
func (r *router) readPoint(ctx context.Context, leader *raftstore.NotLeaderError) (p raftstore.ReadPoint, err error) {
	answer, err := r.forward(ctx, leader, forwardv1.ForwardService_ReadPoint_FullMethodName, &forwardv1.ReadPointRequest{}, nil)
	switch {
	case errors.Is(err, forward.ErrLost) && ctx.Err() != nil:
		return p, ctx.Err()
	case errors.Is(err, forward.ErrLost):
		return p, fmt.Errorf("%w: %v", leader, err)
	case err != nil:
		return p, err
	}
	var resp forwardv1.ReadPointResponse
	if err := proto.Unmarshal(answer, &resp); err != nil {
		return p, fmt.Errorf("decode the leader's read point: %w", err)
	}
	p = raftstore.ReadPoint{
		Index: resp.GetLogIndex(), T: admission.Instant(resp.GetClusterTime().AsDuration()), W: admission.Wall(resp.GetWall()),
	}
	return p, nil
}

// dispatcher finds the handlers of forwarded calls. It is registered with what they
// are, as a server of gRPC is, and passes that on to one.
type dispatcher struct {
	server  *grpc.Server
	limiter *limiter
	// around goes round each handler.
	around  grpc.UnaryServerInterceptor
	traces  *traces
	codec   encoding.CodecV2
	methods map[string]boundMethod
}

type boundMethod struct {
	service any
	grpc.MethodDesc
}

func newDispatcher(g *grpc.Server, limiter *limiter, log *slog.Logger, traces *traces) *dispatcher {
	return &dispatcher{
		server: g, limiter: limiter, around: aroundForwarded(log, traces), traces: traces, codec: newMarkingCodec(), methods: make(map[string]boundMethod),
	}
}

// RegisterService implements grpc.ServiceRegistrar.
func (d *dispatcher) RegisterService(desc *grpc.ServiceDesc, service any) {
	for _, m := range desc.Methods {
		d.methods["/"+desc.ServiceName+"/"+m.MethodName] = boundMethod{service, m}
	}
	d.server.RegisterService(d.limiter.around(desc), service)
}

type forwardedKey struct{}

// forwarded says whether a call came by way of another node. It goes no further.
func forwarded(ctx context.Context) bool { return ctx.Value(forwardedKey{}) != nil }

// answer has a forwarded call answered here.
func (d *dispatcher) answer(ctx context.Context, c forward.Call) ([]byte, error) {
	m, ok := d.methods[c.Method]
	if !ok {
		return nil, statusError(errNoMethod, true)
	}
	ctx = context.WithValue(ctx, forwardedKey{}, true)
	// Who forwards is a node, who calls is not: it has no more rights here than there.
	ctx = context.WithValue(ctx, identityKey{}, Identity{Name: c.Principal})
	ctx = d.traces.belowNode(ctx, c.Traceparent)
	decode := func(v any) error { return d.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(c.Request)}, v) }
	resp, err := m.Handler(m.service, ctx, decode, d.around)
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(resp.(proto.Message))
	if err != nil {
		return nil, statusError(fmt.Errorf("encode an answer: %w", err), false)
	}
	return data, nil
}

// errNoMethod says that a newer node forwarded what this one has not.
var errNoMethod = errors.New("the leader has no such method")
