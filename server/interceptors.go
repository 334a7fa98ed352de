package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/admitd/admit/internal/repeat"
)

// around goes round each handler: metrics and the log see every call as its caller
// does; errors become statuses; some calls are traced; who is not known comes no
// further; and a panic becomes an error like others. It is one interceptor, not a chain
// of them: what comes after what is read in one place, and a call pays for no more than
// that.
type around struct {
	log    callLog
	calls  *callMetrics
	drain  *drain
	gate   checkpoint
	router *router
	traces *traces
}

func (a *around) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.UnaryInterceptor(a.unary), grpc.StreamInterceptor(a.stream)}
}

func (a *around) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began, counts := time.Now(), a.calls.began(info.FullMethod)
	var (
		resp any
		span trace.Span
	)
	admitted, err := a.admit(ctx, req, info.FullMethod)
	if err == nil {
		ctx, span = a.traces.taken(admitted, info.FullMethod, req)
		resp, err = a.router.route(ctx, req, info.FullMethod, handler)
	}
	if err != nil {
		resp, err = nil, statusError(err, repeat.Safe(req))
	}
	endCall(span, resp, err)
	counts.ended(began, a.log.ended(ctx, info.FullMethod, began, err))
	return resp, err
}

// admit returns the context of a call if it is known whose it is and what it wants.
func (a *around) admit(ctx context.Context, req any, method string) (context.Context, error) {
	ctx, err := a.gate.pass(ctx, method)
	if err == nil {
		err = checkDecoded(req)
	}
	return ctx, err
}

func (a *around) stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	began, counts := time.Now(), a.calls.began(info.FullMethod)
	ctx := stream.Context()
	err := a.drain.stream(stream, info.FullMethod, func(stream grpc.ServerStream) error {
		ctx, err := a.gate.pass(stream.Context(), info.FullMethod)
		if err != nil {
			return err
		}
		return answerStream(srv, &decodingStream{&contextStream{stream, ctx}}, handler)
	})
	if err != nil {
		err = statusError(err, true) // streams only read, or carry calls that have a status each
	}
	counts.ended(began, a.log.ended(ctx, info.FullMethod, began, err))
	return err
}

// aroundForwarded goes round the handlers of calls that another node took: it has asked
// who calls and counted them.
func aroundForwarded(log *slog.Logger, traces *traces) grpc.UnaryServerInterceptor {
	calls := callLog{log.With("forwarded", true)}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		began := time.Now()
		ctx, span := traces.forwarded(ctx, info.FullMethod, req)
		if err = checkDecoded(req); err == nil {
			resp, err = answer(ctx, req, handler)
		}
		if err != nil {
			resp, err = nil, statusError(err, repeat.Safe(req))
		}
		endCall(span, resp, err)
		calls.ended(ctx, info.FullMethod, began, err)
		return resp, err
	}
}

// answer runs a handler, whose panic is its own call's failure alone.
func answer(ctx context.Context, req any, handler grpc.UnaryHandler) (resp any, err error) {
	defer recovered(&err)
	return handler(ctx, req)
}

func answerStream(srv any, stream grpc.ServerStream, handler grpc.StreamHandler) (err error) {
	defer recovered(&err)
	return handler(srv, stream)
}

// recovered makes a panic the failure of one call. The process lives on: the state is
// behind the Store, which a handler can't harm.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = panicError(p)
	}
}

func panicError(p any) error {
	return statusError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()), false)
}
