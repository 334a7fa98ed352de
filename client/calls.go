package client

import (
	"context"
	"time"

	"google.golang.org/grpc"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// PermitCalls are the calls about permits, as the generated stub has them.
type PermitCalls interface {
	Acquire(context.Context, *admitv1.AcquireRequest, ...grpc.CallOption) (*admitv1.AcquireResponse, error)
	Renew(context.Context, *admitv1.RenewRequest, ...grpc.CallOption) (*admitv1.RenewResponse, error)
	Release(context.Context, *admitv1.ReleaseRequest, ...grpc.CallOption) (*admitv1.ReleaseResponse, error)
}

// Permits returns the calls about permits, on the session where the client has one:
// for who stands between others and the cluster and passes on what they ask. They are
// sent once, as they are; Retry sends them as the client's own.
func (c *Client) Permits() PermitCalls { return c.permits }

// Retry makes a call as the client makes its own: again, with jitter, while that may
// help, for the client's retry time and what the call may wait beside. Each try has a
// context of its own, which ends when a node has been silent for too long. The call must
// be one whose repetition has the effect of one: with a request_id, or by its nature. The
// error is that of the last try.
func (c *Client) Retry(ctx context.Context, wait time.Duration, call func(ctx context.Context) error) error {
	return c.retryFrom(ctx, time.Now().Add(wait), call)
}
