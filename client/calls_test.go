package client_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Who passes calls on has them sent as they are, and again as the client's own.
func TestCallsThatArePassedOn(t *testing.T) {
	f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		if n == 0 {
			return nil, refusal(codes.Unavailable, "NO_QUORUM", time.Second)
		}
		return granted(permit("p", time.Minute)), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		req := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: "mine"}
		var got *admitv1.AcquireResponse
		began, tries := time.Now(), 0
		err := c.Retry(t.Context(), 0, func(ctx context.Context) (err error) {
			tries++
			got, err = c.Permits().Acquire(ctx, req)
			return err
		})
		if err != nil || tries != 2 || got.GetDecision().GetPermit().GetToken() != "p" {
			t.Errorf("%d tries ended with %v, %v", tries, got, err)
		}
		if waited := time.Since(began); waited < time.Second {
			t.Errorf("the node asked for a second and was given %v", waited)
		}
		for _, call := range noted(f, &f.acquires) {
			if call.req.GetRequestId() != "mine" {
				t.Errorf("the node was asked %v", call.req)
			}
		}
	})
}

// A provider that makes no spans has the caller's own place told to the node, if it is
// sampled.
func TestAPlaceIsPassedOn(t *testing.T) {
	for place, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00": "",
		"": "",
	} {
		f := &fake{}
		n := serve(f)
		c, err := client.Dial("passthrough:///fake", client.WithSession(), client.WithTracing(noop.NewTracerProvider()),
			client.WithDialOptions(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.listener.DialContext(ctx) })))
		if err != nil {
			t.Fatal(err)
		}
		ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.MapCarrier{"traceparent": place})
		if _, err := c.Acquire(ctx, client.Work{Pool: "email", Tenant: "acme"}); err != nil {
			t.Error(err)
		}
		n.sessions.mu.Lock()
		if got := n.sessions.places; len(got) != 1 || got[0] != want {
			t.Errorf("the node was told %q, want %q", got, want)
		}
		n.sessions.mu.Unlock()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		n.stop()
	}
}

// A Unix socket is one, however its path is written.
func TestAUnixSocket(t *testing.T) {
	t.Chdir(t.TempDir())
	f := &fake{}
	n := serve(f)
	defer n.stop()
	l, err := net.Listen("unix", "sock")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- n.server.Serve(l) }()
	path, err := filepath.Abs("sock")
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"unix:sock", "unix:" + path, "unix://" + path} {
		c, err := client.Dial(addr, client.WithRetryFor(0))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Acquire(t.Context(), client.Work{Pool: "email", Tenant: "acme"}); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	n.stop()
	if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		t.Error(err)
	}
}
