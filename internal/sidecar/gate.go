package sidecar

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/admitd/admit/internal/repeat"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

const (
	// maxCalls is how many calls of workers may be under way, those held open included.
	// What renews and gives back is refused only at twice that.
	maxCalls = 8192
	// traceHeader is where a caller tells its place in a trace, as W3C writes it.
	traceHeader = "traceparent"
)

// gate goes round each call: it counts it, refuses it where there are too many or the
// sidecar stops, and tells failures as a worker may know them.
type gate struct {
	open    atomic.Int64
	most    int64
	metrics *metrics
	// closing ends when no call is begun any more, cutting when none is waited for.
	closing, cutting context.Context
	close, cut       context.CancelFunc
}

func newGate(m *metrics) *gate {
	g := &gate{most: maxCalls, metrics: m}
	g.closing, g.close = context.WithCancel(context.Background())
	g.cutting, g.cut = context.WithCancel(context.Background())
	return g
}

func (g *gate) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
	began := time.Now()
	leave, err := g.enter(info.FullMethod)
	if err == nil {
		resp, err = handler(placed(ctx), req)
		leave()
	}
	if err != nil {
		resp, err = nil, told(ctx, err, repeat.Safe(req))
	}
	g.metrics.ended(info.FullMethod, began, err)
	return resp, err
}

func (g *gate) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	began := time.Now()
	leave, err := g.enter(info.FullMethod)
	switch {
	case err != nil:
	case info.FullMethod == admitv1alpha1.SessionService_Session_FullMethodName:
		err = handler(srv, stream) // it ends when its calls have
		leave()
	default:
		ctx, end := g.hold(stream.Context())
		err = handler(srv, &contextStream{stream, ctx})
		end()
		leave()
	}
	if err != nil {
		err = told(stream.Context(), g.explain(stream.Context(), err), true) // streams only read, or carry calls that have a status each
	}
	g.metrics.ended(info.FullMethod, began, err)
	return err
}

// enter lets a call in. Health is always told, and what is served.
func (g *gate) enter(method string) (leave func(), err error) {
	if strings.HasPrefix(method, "/grpc.") {
		return func() {}, nil
	}
	most := g.most
	switch method {
	case admitv1.AdmissionService_Renew_FullMethodName, admitv1.AdmissionService_Release_FullMethodName,
		admitv1.AdmissionService_BatchRelease_FullMethodName:
		most *= 2
	default:
		if g.closing.Err() != nil {
			return nil, errStopping
		}
	}
	if g.open.Add(1) > most {
		g.open.Add(-1)
		g.metrics.refused.WithLabelValues("calls").Inc()
		return nil, errManyCalls
	}
	return func() { g.open.Add(-1) }, nil
}

// hold is the context of a call that may be held open: it ends when the sidecar stops.
func (g *gate) hold(ctx context.Context) (held context.Context, end func()) {
	held, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(g.closing, cancel)
	return held, func() { stop(); cancel() }
}

// outlive is the context of a call that goes on without its worker: it ends with the
// worker's deadline, or when the sidecar has no more time.
func (g *gate) outlive(ctx context.Context) (asking context.Context, end func()) {
	var cancel context.CancelFunc
	if deadline, ok := ctx.Deadline(); ok {
		asking, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
	} else {
		asking, cancel = context.WithCancel(context.WithoutCancel(ctx))
	}
	stop := context.AfterFunc(g.cutting, cancel)
	return asking, func() { stop(); cancel() }
}

// explain tells of a call that was held open that the sidecar ended it, if it did.
func (g *gate) explain(ctx context.Context, err error) error {
	if err != nil && g.closing.Err() != nil && ctx.Err() == nil && isCancelled(err) {
		return errStopping
	}
	return err
}

// placed is the context of a call at its caller's place in a trace: what is asked of the
// cluster for it is in the same trace.
func placed(ctx context.Context) context.Context {
	if at := metadata.ValueFromIncomingContext(ctx, traceHeader); len(at) == 1 {
		return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: at[0]})
	}
	return ctx
}

// contextStream is a stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *contextStream) Context() context.Context { return s.ctx }
