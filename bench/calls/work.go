package calls

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Releases counts those that were refused while Acquires may have been.
type Releases struct{ refused, acquiresRefused atomic.Int64 }

// Refused is how many Releases were refused for overload, and how many Acquires.
func (r *Releases) Refused() (releases, acquires int64) {
	return r.refused.Load(), r.acquiresRefused.Load()
}

// releaseWithin is how long a Release may take: it is worth waiting for.
const releaseWithin = 10 * time.Second

// streams is how many calls at most share a connection: less than a node takes on one.
const streams = 512

// Work opens callers that take a permit for a tenant and give it back, both as one
// request, and wait no longer for the permit than within. An empty tenant means a
// hundred of them.
func Work(at Target, asTenant string, within time.Duration, releases *Releases) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		c, err := dialOften(at(), (callers+streams-1)/streams)
		return &work{clients: c, tenant: asTenant, within: within, releases: releases}, err
	}
}

type work struct {
	*clients
	tenant   string
	within   time.Duration
	releases *Releases
}

func (o *work) Do(ctx context.Context, caller int) (int, error) {
	req := &admitv1.AcquireRequest{Pool: Wide, Tenant: o.tenant}
	if req.Tenant == "" {
		req.Tenant = tenant(caller)
	}
	soon, cancel := context.WithTimeout(ctx, o.within)
	resp, err := o.of(caller).Acquire(soon, req)
	cancel()
	if err != nil {
		if status.Code(err) == codes.ResourceExhausted {
			o.releases.acquiresRefused.Add(1)
		}
		return 0, err
	}
	p, err := granted(resp)
	if err != nil {
		return 0, err
	}
	later, cancel := context.WithTimeout(ctx, releaseWithin)
	defer cancel()
	_, err = o.of(caller).Release(later, &admitv1.ReleaseRequest{Token: p.GetToken()})
	if status.Code(err) == codes.ResourceExhausted {
		o.releases.refused.Add(1)
	}
	return 1, err
}
