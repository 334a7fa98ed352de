package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
)

// around goes round each handler: metrics and the log see every call as its caller
// does; errors become statuses; who is not known comes no further; and a panic becomes
// an error like others. It is one interceptor, not a chain of them: what comes after what
// is read in one place, and a call pays for no more than that.
type around struct {
	log    callLog
	calls  *callMetrics
	drain  *drain
	gate   checkpoint
	router *router
}

func (a *around) options() []grpc.ServerOption {
	return []grpc.ServerOption{grpc.UnaryInterceptor(a.unary), grpc.StreamInterceptor(a.stream)}
}

func (a *around) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	began, counts := time.Now(), a.calls.began(info.FullMethod)
	resp, err := a.admit(ctx, req, info, handler)
	if err != nil {
		resp, err = nil, statusError(err, retrySafe(req))
	}
	counts.ended(began, a.log.ended(ctx, info.FullMethod, began, err))
	return resp, err
}

// admit has a call answered, here or by the leader, if it is known whose it is and what
// it wants.
func (a *around) admit(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	ctx, err := a.gate.pass(ctx, info.FullMethod)
	if err == nil {
		err = checkDecoded(req)
	}
	if err != nil {
		return nil, err
	}
	return a.router.route(ctx, req, info.FullMethod, handler)
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
func aroundForwarded(log *slog.Logger) grpc.UnaryServerInterceptor {
	calls := callLog{log.With("forwarded", true)}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		began := time.Now()
		if err = checkDecoded(req); err == nil {
			resp, err = answer(ctx, req, handler)
		}
		if err != nil {
			resp, err = nil, statusError(err, retrySafe(req))
		}
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
