package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

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
	// MaxWait is how long to wait in line where it can't be granted at once, up
	// to 60 s. 0 means not at all.
	MaxWait time.Duration
	// LockKey names what only so many permits of the tenant may hold at once, as
	// the pool's lock_max_active says. Empty means no lock.
	LockKey string
	// DedupeKey names the job, whoever sends it: it runs once at a time, and not
	// again when it is done. Empty means that this is a job of its own.
	DedupeKey string
	// RequestID names this call across processes. Empty means one made for it. There is
	// none for RateOnly without Settle or MaxWait, so that a sidecar may grant it by
	// itself; a retry may take the tokens once more.
	RequestID string
	// IssuedAt is when a call with this RequestID was first sent, by any process.
	// With it, one that is too old to be known is refused and not done again. The
	// zero time means that this is not checked.
	IssuedAt time.Time
	// RateOnly takes tokens and no slot. The permit is PERMIT_STATE_SPENT and
	// needs no release, unless Settle is set: then it lives to tell its actual
	// cost by.
	RateOnly, Settle bool
	// Backlog is how much waits behind this in the caller's own queue. 0 means
	// not told.
	Backlog int64
	// WorkerID is shown to operators beside the permit; optional.
	WorkerID string
}

func (w Work) request() *admitv1.AcquireRequest {
	r := &admitv1.AcquireRequest{
		Pool: w.Pool, Tenant: w.Tenant, Category: w.Category,
		RequestId: w.RequestID, WorkerId: w.WorkerID,
		Ttl: optionalDuration(w.TTL), MaxWait: optionalDuration(w.MaxWait),
		LockKey: w.LockKey, DedupeKey: w.DedupeKey, RateOnly: w.RateOnly, Settle: w.Settle, Backlog: w.Backlog,
	}
	if !w.IssuedAt.IsZero() {
		r.IssuedAt = timestamppb.New(w.IssuedAt)
	}
	if w.Cost != 0 {
		r.Cost = &w.Cost
	}
	if r.RequestId == "" && !w.spends() {
		r.RequestId = rand.Text()
	}
	return r
}

// spends says that all there is to the work is its tokens, now: it has no id unless it is
// given one, so that a sidecar may grant it by itself.
func (w *Work) spends() bool { return w.RateOnly && !w.Settle && w.MaxWait == 0 }

// Decision is the answer to an Acquire: one of Permit and Shed is set, or after a
// DryRun WouldGrant.
type Decision struct {
	// Permit is the right to work. Release it, or it holds its slot until it
	// expires.
	Permit *Permit
	// Shed is why there is none, and when to come back.
	Shed *admitv1.Shed
	// WouldGrant is what a dry run found where nothing stands in the way.
	WouldGrant *admitv1.WouldGrant
	// Borrowed says that the permit is beyond what the tenant is entitled to.
	Borrowed bool
	// WouldShed is, beside a permit of a pool that only watches, why there would
	// have been none.
	WouldShed *admitv1.Shed
	// Shedding is the state of the lanes and what of the tenant is held.
	Shedding *admitv1.Shedding
	// Replayed says that the permit is that of an earlier call with the same
	// RequestID.
	Replayed bool
}

// Acquire asks for a permit once, and waits for it up to w.MaxWait: being shed is
// an answer, not an error. Errors are gRPC statuses, retried where that can help;
// a retry goes on waiting in the same place.
func (c *Client) Acquire(ctx context.Context, w Work) (Decision, error) {
	return c.acquire(ctx, w, w.request())
}

// DryRun asks what Acquire would get now, without waiting. It changes nothing.
func (c *Client) DryRun(ctx context.Context, w Work) (Decision, error) {
	req := w.request()
	req.DryRun = true
	return c.acquire(ctx, w, req)
}

func (c *Client) acquire(ctx context.Context, w Work, req *admitv1.AcquireRequest) (Decision, error) {
	var (
		resp  *admitv1.AcquireResponse
		asked time.Time
	)
	until := time.Now().Add(w.MaxWait)
	err := c.retryFrom(ctx, until, func(ctx context.Context) (err error) {
		asked = time.Now()
		if w.MaxWait > 0 {
			req = proto.CloneOf(req) // a try that was given up may still be sent
			req.MaxWait = durationpb.New(max(until.Sub(asked), 0))
		}
		if resp, err = c.permits.Acquire(ctx, req); w.spends() {
			err = lossBearable(err)
		}
		return err
	})
	if err != nil {
		return Decision{}, fmt.Errorf("acquire a permit of pool %q for tenant %q: %w", w.Pool, w.Tenant, err)
	}
	return newDecision(resp, asked, w.MaxWait > 0), nil
}

func newDecision(resp *admitv1.AcquireResponse, asked time.Time, waits bool) Decision {
	in := resp.GetDecision()
	d := Decision{
		Shed:       in.GetShed(),
		WouldGrant: in.GetWouldGrant(),
		Borrowed:   in.GetBorrowed(),
		WouldShed:  in.GetWouldShed(),
		Shedding:   resp.GetShedding(),
		Replayed:   in.GetReplayed(),
	}
	if p := in.GetPermit(); p != nil {
		if now := time.Now(); waits && now.Sub(asked) > p.GetExpiresIn().AsDuration()/10 {
			asked = now // it was in line: its time began when it was granted
		}
		d.Permit = newPermit(p, asked)
	}
	return d
}

// Demand is what waits in a queue that admit does not own.
type Demand struct {
	// Pool is what it waits for. Required.
	Pool string
	// Tenant is whose it is. Required.
	Tenant string
	// Category is what the work is. Empty means the tenant's own lane.
	Category string
	// Backlog is how much waits, 0 to 2^53.
	Backlog int64
	// TTL is how long the report holds, up to 60 s. 0 means 5 s.
	TTL time.Duration
}

// ReportDemand reports demand and returns the state of the lanes. Of one tenant
// and lane a report in a second is noted; a newer one may have to wait for its
// turn. Errors are gRPC statuses, retried where that can help.
func (c *Client) ReportDemand(ctx context.Context, d Demand) (*admitv1.Shedding, error) {
	var resp *admitv1.ReportDemandResponse
	req := &admitv1.ReportDemandRequest{
		Pool: d.Pool, Tenant: d.Tenant, Category: d.Category, Backlog: d.Backlog, Ttl: optionalDuration(d.TTL),
	}
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = c.admission.ReportDemand(ctx, req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("report demand for pool %q of tenant %q: %w", d.Pool, d.Tenant, err)
	}
	return resp.GetShedding(), nil
}

// Renew extends permits by their tokens, at most 1000; the results are in the
// order of the tokens. A ttl of 0 means each permit's own. Errors are gRPC
// statuses, retried where that can help.
func (c *Client) Renew(ctx context.Context, ttl time.Duration, tokens ...string) ([]*admitv1.RenewResult, error) {
	var resp *admitv1.RenewResponse
	req := &admitv1.RenewRequest{Tokens: tokens, Ttl: optionalDuration(ttl)}
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = c.permits.Renew(ctx, req)
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
	err := c.retry(ctx, func(ctx context.Context) (err error) {
		resp, err = c.permits.Release(ctx, req)
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
