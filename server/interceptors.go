package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"google.golang.org/grpc"
)

// interceptors go round each handler, outermost first: metrics and the log see
// every call as its caller does; errors become statuses within them; who is not
// known comes no further; innermost a panic becomes an error like others.
func interceptors(log *slog.Logger, calls *grpcprom.ServerMetrics, drain *drain, gate checkpoint) []grpc.ServerOption {
	logger := callLogger(log)
	opts := []logging.Option{
		logging.WithLogOnEvents(logging.FinishCall),
		logging.WithLevels(logLevel),
		logging.WithDurationField(logging.DurationToDurationField),
		logging.WithDisableLoggingFields(logging.ComponentFieldKey, logging.MethodTypeFieldKey, logging.SystemTag[0]),
	}
	onPanic := recovery.WithRecoveryHandler(panicError)
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			calls.UnaryServerInterceptor(),
			logging.UnaryServerInterceptor(logger, opts...),
			statusInterceptor,
			gate.unary,
			decodeInterceptor,
			recovery.UnaryServerInterceptor(onPanic),
		),
		grpc.ChainStreamInterceptor(
			calls.StreamServerInterceptor(),
			logging.StreamServerInterceptor(logger, opts...),
			drain.streamInterceptor,
			statusStreamInterceptor,
			gate.stream,
			recovery.StreamServerInterceptor(onPanic),
		),
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

// statusStreamInterceptor is the same for calls that stream their answer: all of
// them only read.
func statusStreamInterceptor(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := handler(srv, &decodingStream{stream}); err != nil {
		return statusError(err, true)
	}
	return nil
}

// callLogger writes one line for each call, failed ones with the cause that
// the caller isn't told, and panics with their stack.
func callLogger(log *slog.Logger) logging.Logger {
	return logging.LoggerFunc(func(ctx context.Context, level logging.Level, msg string, fields ...any) {
		if !log.Enabled(ctx, slog.Level(level)) {
			return
		}
		for i := 0; i < len(fields); i += 2 {
			if key, ok := fields[i].(string); ok {
				fields[i] = strings.ReplaceAll(key, ".", "_")
			}
		}
		log.Log(ctx, slog.Level(level), msg, fields...)
	})
}
