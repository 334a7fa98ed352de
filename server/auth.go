package server

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Guard says who calls. Its methods may be called concurrently.
type Guard interface {
	// Identify returns whose call came over a connection, or false if nobody known
	// is behind it. conn is nil where the connection is in plain text; token is what
	// the caller sent as `authorization: Bearer`, or nothing.
	Identify(conn *tls.ConnectionState, token string) (Identity, bool)
}

// Identity is who calls. Where there is no guard nobody asks: it is zero.
type Identity struct {
	// Name is the caller's name.
	Name string
	// Node says that the caller is another node of the cluster.
	Node bool
}

// errUnauthenticated says that nobody known is behind a call.
var errUnauthenticated = errors.New("the caller is not known")

// checkpoint asks a guard who calls; without one it lets everybody in.
type checkpoint struct{ guard Guard }

// pass returns the context of a call whose caller is known. Health is for
// everybody: a balancer has no token.
func (c checkpoint) pass(ctx context.Context, method string) (context.Context, error) {
	if c.guard == nil || strings.HasPrefix(method, "/"+grpc_health_v1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	id, ok := c.guard.Identify(connection(ctx), bearer(ctx))
	if !ok {
		return nil, errUnauthenticated
	}
	return context.WithValue(ctx, identityKey{}, id), nil
}

type identityKey struct{}

// identityOf is whose call it is.
func identityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

func connection(ctx context.Context) *tls.ConnectionState {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(credentials.TLSInfo)
	if !ok {
		return nil
	}
	return &info.State
}

// bearer is the token of a call. Two are none: one of them might have been added
// on the way.
func bearer(ctx context.Context) string {
	values := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(values) != 1 {
		return ""
	}
	return BearerToken(values[0])
}

// BearerToken returns the token in the value of an Authorization header, or
// nothing.
func BearerToken(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
