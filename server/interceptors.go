package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
)

// interceptors go round each handler, outermost first: metrics and the log see
// every call as its caller does; errors become statuses within them; who is not
// known comes no further; innermost a panic becomes an error like others.
func interceptors(log *slog.Logger, calls *grpcprom.ServerMetrics, drain *drain, gate checkpoint, router *router) []grpc.ServerOption {
	ended := callLog{log}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			calls.UnaryServerInterceptor(),
			ended.unary,
			statusInterceptor,
			gate.unary,
			decodeInterceptor,
			router.unary,
			recovery.UnaryServerInterceptor(onPanic),
		),
		grpc.ChainStreamInterceptor(
			calls.StreamServerInterceptor(),
			ended.stream,
			drain.streamInterceptor,
			statusStreamInterceptor,
			gate.stream,
			recovery.StreamServerInterceptor(onPanic),
		),
	}
}

var onPanic = recovery.WithRecoveryHandler(panicError)

// forwardedInterceptors go round the handlers of calls that another node took: it
// has asked who calls and counted them.
func forwardedInterceptors(log *slog.Logger) grpc.UnaryServerInterceptor {
	inner := []grpc.UnaryServerInterceptor{
		callLog{log.With("forwarded", true)}.unary,
		statusInterceptor,
		decodeInterceptor,
		recovery.UnaryServerInterceptor(onPanic),
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		for _, around := range slices.Backward(inner) {
			next := handler
			handler = func(ctx context.Context, req any) (any, error) { return around(ctx, req, info, next) }
		}
		return handler(ctx, req)
	}
}

// panicError makes the failure of a call of a panic in its handler. The process
// lives on: the state is behind the Store, which a handler can't harm.
func panicError(p any) error {
	return statusError(fmt.Errorf("panic: %v\n%s", p, debug.Stack()), false)
}

// statusInterceptor has the one place where errors become statuses do so.
func statusInterceptor(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, statusError(err, retrySafe(req))
	}
	return resp, nil
}

// statusStreamInterceptor is the same for streams: they only read, or carry calls that
// have a status each.
func statusStreamInterceptor(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := handler(srv, &decodingStream{stream}); err != nil {
		return statusError(err, true)
	}
	return nil
}
