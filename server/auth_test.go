package server

import (
	"context"
	"crypto/tls"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// fakeGuard knows one token.
type fakeGuard string

func (g fakeGuard) Identify(_ *tls.ConnectionState, token string) (Identity, bool) {
	return Identity{Name: "ann"}, token == string(g)
}

func TestWhoIsNotKnownIsTurnedAway(t *testing.T) {
	store := newFakeStore()
	h := startWith(t, store, Options{Guard: fakeGuard("secret")}, insecure.NewCredentials())
	for _, c := range []struct {
		name    string
		headers []string
		known   bool
	}{
		{"no token", nil, false},
		{"another token", []string{"Bearer other"}, false},
		{"an empty token", []string{"Bearer "}, false},
		{"another scheme", []string{"Basic secret"}, false},
		{"no scheme", []string{"secret"}, false},
		{"two headers", []string{"Bearer secret", "Bearer secret"}, false},
		{"the token", []string{"Bearer secret"}, true},
		{"a scheme in lower case", []string{"bearer secret"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := soon(t)
			for _, v := range c.headers {
				ctx = metadata.AppendToOutgoingContext(ctx, "authorization", v)
			}
			before := len(store.seen)
			_, err := h.Renew(ctx, &admitv1.RenewRequest{Tokens: []string{"AQAAAAAAAAAAAAUAAAABSTADiu_u_Z0"}})
			wantKnown(t, c.known, err)
			if got := len(store.seen) - before; (got > 0) != c.known {
				t.Errorf("%d requests reached the store", got)
			}
			stream, err := h.status.WatchShedding(ctx, &admitv1.WatchSheddingRequest{Pool: "none"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = stream.Recv()
			if got := tell(t, err).code; (got == codes.Unauthenticated) == c.known {
				t.Errorf("the stream ended with %s", got)
			}
		})
	}
}

func wantKnown(t *testing.T, known bool, err error) {
	t.Helper()
	if known {
		if err != nil {
			t.Error(err)
		}
		return
	}
	if got := tell(t, err); got.code != codes.Unauthenticated || got.reason != "UNAUTHENTICATED" {
		t.Errorf("got %+v", got)
	}
}

// A balancer asks for health without a token; what the API looks like is for
// callers alone.
func TestHealthIsForEverybody(t *testing.T) {
	h := startWith(t, newFakeStore(), Options{Guard: fakeGuard("secret")}, insecure.NewCredentials())
	if _, err := grpc_health_v1.NewHealthClient(h.conn).Check(soon(t), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	stream, err := grpc_reflection_v1.NewServerReflectionClient(h.conn).ServerReflectionInfo(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); tell(t, err).code != codes.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

func TestAHandlerCanSeeWhoCalls(t *testing.T) {
	gate := checkpoint{fakeGuard("")} // what comes without a token is ann's
	ctx, err := gate.pass(context.Background(), "/admit.v1.AdmissionService/Acquire")
	if err != nil || identityOf(ctx).Name != "ann" {
		t.Errorf("got %+v, %v", identityOf(ctx), err)
	}
	if got := identityOf(context.Background()); got != (Identity{}) {
		t.Errorf("somebody stands where nobody asked: %+v", got)
	}
}
