package sidecar

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/repeat"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// idHeader is where a worker is told the request_id that its call was given here.
const idHeader = "admit-request-id"

// upstream makes the calls of workers to the cluster.
type upstream struct {
	client  *client.Client
	gate    *gate
	retries prometheus.Counter
}

// acquire asks for a permit.
func (u *upstream) acquire(ctx context.Context, in *admitv1.AcquireRequest) (resp *admitv1.AcquireResponse, err error) {
	wait := in.GetMaxWait().AsDuration()
	asking, end := u.during(ctx, wait)
	defer end()
	if unnamed(in) {
		in = named(in)
		tell(ctx, in.GetRequestId())
	}
	err = u.send(asking, wait, repeat.Safe(in), func(ctx context.Context, left time.Duration) (err error) {
		req := in
		if wait > 0 {
			req = proto.CloneOf(in) // a try that was given up may still be sent
			req.MaxWait = durationpb.New(left)
		}
		resp, err = u.client.Permits().Acquire(ctx, req)
		return err
	})
	return resp, u.gate.explain(ctx, err)
}

// batchAcquire asks for many.
func (u *upstream) batchAcquire(ctx context.Context, in *admitv1.BatchAcquireRequest) (resp *admitv1.BatchAcquireResponse, err error) {
	var wait time.Duration
	all := &admitv1.BatchAcquireRequest{Requests: make([]*admitv1.AcquireRequest, len(in.GetRequests()))}
	for i, r := range in.GetRequests() {
		wait = max(wait, r.GetMaxWait().AsDuration())
		if all.Requests[i] = r; unnamed(r) {
			all.Requests[i] = named(r)
		}
	}
	asking, end := u.during(ctx, wait)
	defer end()
	err = u.send(asking, wait, repeat.Safe(all), func(ctx context.Context, left time.Duration) (err error) {
		req := all
		if wait > 0 {
			req = proto.CloneOf(all)
			for _, r := range req.GetRequests() {
				if r.MaxWait != nil {
					r.MaxWait = durationpb.New(min(left, r.GetMaxWait().AsDuration()))
				}
			}
		}
		resp, err = u.client.Admission().BatchAcquire(ctx, req)
		return err
	})
	return resp, u.gate.explain(ctx, err)
}

// acquireOnce asks for tokens alone. There is nothing to give back, so that the call ends
// with its worker.
func (u *upstream) acquireOnce(ctx context.Context, in *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	asking, end := u.with(ctx, in.GetMaxWait().AsDuration())
	defer end()
	resp, err := u.client.Permits().Acquire(asking, in)
	return resp, u.gate.explain(ctx, err)
}

// batchAcquireOnce is acquireOnce for many.
func (u *upstream) batchAcquireOnce(ctx context.Context, in *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	var wait time.Duration
	for _, r := range in.GetRequests() {
		wait = max(wait, r.GetMaxWait().AsDuration())
	}
	asking, end := u.with(ctx, wait)
	defer end()
	resp, err := u.client.Admission().BatchAcquire(asking, in)
	return resp, u.gate.explain(ctx, err)
}

// with is the context of a call that ends with its worker, and when the sidecar stops if
// it may be held open.
func (u *upstream) with(ctx context.Context, wait time.Duration) (asking context.Context, end func()) {
	if wait > 0 {
		return u.gate.hold(ctx)
	}
	return ctx, func() {}
}

// nextDue claims entries.
func (u *upstream) nextDue(ctx context.Context, in *admitv1.NextDueRequest) (resp *admitv1.NextDueResponse, err error) {
	wait := in.GetMaxWait().AsDuration()
	asking, end := u.during(ctx, wait)
	defer end()
	if in.GetRequestId() == "" {
		in = proto.CloneOf(in)
		in.RequestId = rand.Text()
		tell(ctx, in.GetRequestId())
	}
	err = u.send(asking, wait, true, func(ctx context.Context, left time.Duration) (err error) {
		req := in
		if wait > 0 {
			req = proto.CloneOf(in)
			req.MaxWait = durationpb.New(left)
		}
		resp, err = u.client.Admission().NextDue(ctx, req)
		return err
	})
	return resp, u.gate.explain(ctx, err)
}

// during is the context of a call. One that may be held open ends with its worker, and
// when the sidecar stops. Any other goes on without its worker until its deadline: what it
// is granted can then be given back.
func (u *upstream) during(ctx context.Context, wait time.Duration) (asking context.Context, end func()) {
	if wait > 0 {
		return u.gate.hold(ctx)
	}
	return u.gate.outlive(ctx)
}

// send makes a call, which may be held open for a wait: once, or again as the client does
// where its repetition has the effect of one. It is told what is left of the wait.
func (u *upstream) send(ctx context.Context, wait time.Duration, again bool, call func(ctx context.Context, left time.Duration) error) error {
	if !again {
		return call(ctx, wait)
	}
	until, first := time.Now().Add(wait), true
	return u.client.Retry(ctx, wait, func(ctx context.Context) error {
		if !first {
			u.retries.Inc()
		}
		first = false
		return call(ctx, max(time.Until(until), 0))
	})
}

// unnamed says whether an Acquire is given a request_id here, so that it can be sent
// again. One that takes tokens alone is not: what would be lost by it is a few tokens, and
// the cluster remembers each id for ten minutes.
func unnamed(r *admitv1.AcquireRequest) bool {
	return r.GetRequestId() == "" && !r.GetDryRun() && (!r.GetRateOnly() || r.GetSettle())
}

// named is a request with an id.
func named(r *admitv1.AcquireRequest) *admitv1.AcquireRequest {
	r = proto.CloneOf(r)
	r.RequestId = rand.Text()
	return r
}

// tell says in the answer's header which id a call was given.
func tell(ctx context.Context, id string) {
	_ = grpc.SetHeader(ctx, metadata.Pairs(idHeader, id)) // fails where nobody is told any more
}
