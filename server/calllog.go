package server

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/peer"
)

// callLog writes one line for each call when it has ended, failed ones with the
// cause that the caller isn't told, and panics with their stack. Most calls end
// well, which is told only at debug: nothing is gathered for a line that nobody
// sees, as a ready-made interceptor does.
type callLog struct{ log *slog.Logger }

// ended tells how a call ended, and returns the code.
func (l callLog) ended(ctx context.Context, method string, began time.Time, err error) (code string) {
	code, level := ending(err)
	if !l.log.Enabled(ctx, level) {
		return code
	}
	service, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	line := []slog.Attr{
		slog.String("grpc_service", service), slog.String("grpc_method", name), slog.String("grpc_code", code),
		slog.Duration("duration", time.Since(began)),
	}
	if p, ok := peer.FromContext(ctx); ok {
		line = append(line, slog.String("peer_address", p.Addr.String()))
	}
	if deadline, ok := ctx.Deadline(); ok {
		line = append(line, slog.Time("deadline", deadline))
	}
	if call := trace.SpanContextFromContext(ctx); call.IsSampled() {
		line = append(line, slog.String("trace_id", call.TraceID().String()))
	}
	if err != nil {
		line = append(line, slog.String("error", err.Error()))
	}
	l.log.LogAttrs(ctx, level, "finished call", line...)
	return code
}
