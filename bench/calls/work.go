package calls

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

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

// Work opens callers that take size permits for a tenant with one call and give them
// back with another, all as size requests, and wait no longer for the permits than within.
// An empty tenant means a hundred of them.
func Work(at Target, asTenant string, size int, within time.Duration, releases *Releases) system.Open {
	return func(_ context.Context, callers int) (system.Operation, error) {
		o := &work{size: size, within: within, releases: releases}
		of := []string{asTenant}
		if asTenant == "" {
			of = nil
			for i := range tenants {
				of = append(of, tenant(i))
			}
		}
		for _, t := range of {
			in, err := asked(t, size)
			if err != nil {
				return nil, err
			}
			o.asked = append(o.asked, in)
		}
		var err error
		o.clients, err = dialOften(at(), (callers+streams-1)/streams)
		return o, err
	}
}

type work struct {
	*clients
	// asked are the requests for permits, by tenant, as they are sent.
	asked    []encoded
	size     int
	within   time.Duration
	releases *Releases
}

// asked asks for so many permits of a tenant.
func asked(tenant string, size int) (encoded, error) {
	req := &admitv1.BatchAcquireRequest{}
	for range size {
		req.Requests = append(req.Requests, &admitv1.AcquireRequest{Pool: Wide, Tenant: tenant})
	}
	return proto.Marshal(req)
}

func (o *work) Do(ctx context.Context, caller int) (int, error) {
	tokens, err := o.acquire(ctx, caller)
	if err != nil {
		if status.Code(err) == codes.ResourceExhausted {
			o.releases.acquiresRefused.Add(1)
		}
		return 0, err
	}
	later, cancel := context.WithTimeout(ctx, releaseWithin)
	defer cancel()
	if err = giveBack(later, o.of(caller), tokens); status.Code(err) == codes.ResourceExhausted {
		o.releases.refused.Add(1)
	}
	return o.size, err
}

// acquire returns the tokens of the permits.
func (o *work) acquire(ctx context.Context, caller int) (tokens []string, err error) {
	soon, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	resp := &admitv1.BatchAcquireResponse{}
	in, on := o.asked[caller%len(o.asked)], o.conns[caller%len(o.conns)]
	if err := on.Invoke(soon, admitv1.AdmissionService_BatchAcquire_FullMethodName, in, resp, grpc.ForceCodecV2(preparing)); err != nil {
		return nil, err
	}
	for _, r := range resp.GetResults() {
		p, err := granted(r.GetResponse())
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, p.GetToken())
	}
	return tokens, nil
}
