package client_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Each try of a call is a span below the caller's own, which tells how the try ended.
func TestEachTryIsASpan(t *testing.T) {
	for way, opts := range map[string][]client.Option{"by itself": nil, "in a session": {client.WithSession()}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
				if n == 0 {
					return nil, status.Error(codes.Unavailable, "come again")
				}
				return granted(permit("p", 0)), nil
			}}
			n, out := serve(f), tracetest.NewInMemoryExporter()
			defer n.stop()
			p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
			c, err := client.Dial("passthrough:///fake", append(opts, client.WithTracing(p), client.WithDialOptions(
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.listener.DialContext(ctx) })))...)
			if err != nil {
				t.Fatal(err)
			}
			ctx, own := p.Tracer("test").Start(t.Context(), "own")
			if _, err := c.Acquire(ctx, client.Work{Pool: "email", Tenant: "acme"}); err != nil {
				t.Fatal(err)
			}
			got := out.GetSpans()
			if len(got) != 2 {
				t.Fatalf("%s: there are %d spans", way, len(got))
			}
			for i, want := range []struct {
				status otelcodes.Code
				code   int64
			}{{otelcodes.Error, 14}, {otelcodes.Unset, 0}} {
				set := attribute.NewSet(got[i].Attributes...)
				code, _ := set.Value("rpc.grpc.status_code")
				if got[i].Parent.SpanID() != own.SpanContext().SpanID() || got[i].Name != "admit.v1.AdmissionService/Acquire" ||
					got[i].Status.Code != want.status || code.AsInt64() != want.code {
					t.Errorf("%s: try %d is %+v", way, i, got[i])
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
