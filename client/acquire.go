package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Work says what is to be admitted.
type Work struct {
	// Pool is the capacity domain. Required.
	Pool string
	// Tenant is on whose behalf. Required.
	Tenant string
	// Category is what the work is. Empty means the tenant's own lane.
	Category string
	// Cost is the tokens to take, 1 to 2^53. 0 means 1.
	Cost int64
	// TTL is how long the permit lives unless renewed, 1 s to 24 h. 0 means the
	// pool's permit_ttl.
	TTL time.Duration
	// RequestID names this call across processes. Empty means one made for it.
	RequestID string
	// WorkerID is shown to operators beside the permit; optional.
	WorkerID string
}

func (w Work) request() *admitv1.AcquireRequest {
	r := &admitv1.AcquireRequest{
		Pool: w.Pool, Tenant: w.Tenant, Category: w.Category,
		RequestId: w.RequestID, WorkerId: w.WorkerID,
		Ttl: optionalDuration(w.TTL),
	}
	if w.Cost != 0 {
		r.Cost = &w.Cost
	}
	if r.RequestId == "" {
		r.RequestId = rand.Text()
	}
	return r
}

// Decision is the answer to an Acquire: exactly one of Permit and Shed is set.
type Decision struct {
	// Permit is the right to work. Release it, or it holds its slot until it
	// expires.
	Permit *Permit
	// Shed is why there is none, and when to come back.
	Shed *admitv1.Shed
	// Shedding is the state of the lanes and what of the tenant is held.
	Shedding *admitv1.Shedding
	// Replayed says that the permit is that of an earlier call with the same
	// RequestID.
	Replayed bool
}

// Acquire asks for a permit once: being shed is an answer, not an error, and
// nothing waits for it. Errors are gRPC statuses, retried where that can help.
func (c *Client) Acquire(ctx context.Context, w Work) (Decision, error) {
	var (
		resp  *admitv1.AcquireResponse
		asked time.Time
	)
	req := w.request()
	err := c.retry(ctx, func() (err error) {
		asked = time.Now()
		resp, err = c.admission.Acquire(ctx, req)
		return err
	})
	if err != nil {
		return Decision{}, fmt.Errorf("acquire a permit of pool %q for tenant %q: %w", w.Pool, w.Tenant, err)
	}
	d := Decision{
		Shed:     resp.GetDecision().GetShed(),
		Shedding: resp.GetShedding(),
		Replayed: resp.GetDecision().GetReplayed(),
	}
	if p := resp.GetDecision().GetPermit(); p != nil {
		d.Permit = newPermit(p, asked)
	}
	return d, nil
}

// Renew extends permits by their tokens, at most 1000; the results are in the
// order of the tokens. A ttl of 0 means each permit's own. Errors are gRPC
// statuses, retried where that can help.
func (c *Client) Renew(ctx context.Context, ttl time.Duration, tokens ...string) ([]*admitv1.RenewResult, error) {
	var resp *admitv1.RenewResponse
	req := &admitv1.RenewRequest{Tokens: tokens, Ttl: optionalDuration(ttl)}
	err := c.retry(ctx, func() (err error) {
		resp, err = c.admission.Renew(ctx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("renew %d permits: %w", len(tokens), err)
	}
	return resp.GetResults(), nil
}

// Release says how the work under a permit ended.
type Release struct {
	// Outcome is how the work ended. Unspecified means DONE.
	Outcome admitv1.Outcome
	// ActualCost settles an estimated cost, 0 to 2^53. nil leaves the estimate.
	ActualCost *int64
	// RetryAfter is, with THROTTLED, how long the provider asked to wait. 0
	// means that it didn't say.
	RetryAfter time.Duration
	// Bucket is, with THROTTLED, the bucket to pause. Empty means the pool's only
	// POOL bucket.
	Bucket string
	// Result is, with DONE on an entry with a cadence, what the work found.
	// Unspecified means a hit.
	Result admitv1.Finding
}

// Release gives a permit back by its token and returns what became of it. Errors
// are gRPC statuses, retried where that can help; a retry of a release that had
// arrived says ALREADY_RELEASED.
func (c *Client) Release(ctx context.Context, token string, r Release) (admitv1.LeaseResult, error) {
	var resp *admitv1.ReleaseResponse
	req := &admitv1.ReleaseRequest{
		Token: token, Outcome: r.Outcome, ActualCost: r.ActualCost,
		RetryAfter: optionalDuration(r.RetryAfter), Bucket: r.Bucket, Result: r.Result,
	}
	err := c.retry(ctx, func() (err error) {
		resp, err = c.admission.Release(ctx, req)
		return err
	})
	if err != nil {
		return admitv1.LeaseResult_LEASE_RESULT_UNSPECIFIED, fmt.Errorf("release a permit: %w", err)
	}
	return resp.GetResult(), nil
}

// optionalDuration leaves out a duration of 0.
func optionalDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}
