package sidecar

import (
	"context"
	"slices"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// maxItems is how many permits a call can be about at most.
const maxItems = 1000

// admission answers AdmissionService: with what the cluster says. What comes of permits it
// tells the table.
type admission struct {
	admitv1.UnsafeAdmissionServiceServer
	up    *upstream
	table *table
	rates *rates
}

// Acquire implements AdmissionServiceServer.
func (a *admission) Acquire(ctx context.Context, in *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	if ofRate(in) {
		return a.rates.acquire(ctx, in)
	}
	places, err := a.table.reserve(1)
	if err != nil {
		return nil, err
	}
	defer places.leave()
	asked := time.Now()
	resp, err := a.up.acquire(ctx, in)
	if err == nil {
		places.take(ctx, resp.GetDecision().GetPermit(), since(asked, in.GetMaxWait().AsDuration()), in.GetRequestId() != "")
	}
	return resp, err
}

// BatchAcquire implements AdmissionServiceServer.
func (a *admission) BatchAcquire(ctx context.Context, in *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	if len(in.GetRequests()) <= maxItems && slices.ContainsFunc(in.GetRequests(), ofRate) {
		return a.rates.batch(ctx, in, a.acquireAll)
	}
	return a.acquireAll(ctx, in)
}

// acquireAll has the cluster decide a batch.
func (a *admission) acquireAll(ctx context.Context, in *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	places, err := a.table.reserve(min(len(in.GetRequests()), maxItems))
	if err != nil {
		return nil, err
	}
	defer places.leave()
	asked := time.Now()
	resp, err := a.up.batchAcquire(ctx, in)
	if err != nil {
		return nil, err
	}
	for i, r := range resp.GetResults() {
		if i < len(in.GetRequests()) {
			req := in.GetRequests()[i]
			from := since(asked, req.GetMaxWait().AsDuration())
			places.take(ctx, r.GetResponse().GetDecision().GetPermit(), from, req.GetRequestId() != "")
		}
	}
	return resp, nil
}

// Renew implements AdmissionServiceServer.
func (a *admission) Renew(ctx context.Context, in *admitv1.RenewRequest) (resp *admitv1.RenewResponse, err error) {
	asking, end := a.up.during(ctx, 0)
	defer end()
	var asked time.Time
	err = a.up.send(asking, 0, true, func(ctx context.Context, _ time.Duration) (err error) {
		asked = time.Now()
		resp, err = a.up.client.Permits().Renew(ctx, in)
		return err
	})
	if err == nil {
		a.table.renewed(ctx, in.GetTokens(), resp.GetResults(), asked)
	}
	return resp, err
}

// Release implements AdmissionServiceServer.
func (a *admission) Release(ctx context.Context, in *admitv1.ReleaseRequest) (resp *admitv1.ReleaseResponse, err error) {
	asking, end := a.up.during(ctx, 0)
	defer end()
	err = a.up.send(asking, 0, true, func(ctx context.Context, _ time.Duration) (err error) {
		resp, err = a.up.client.Permits().Release(ctx, in)
		return err
	})
	if err == nil {
		a.table.forget(in.GetToken())
	}
	return resp, err
}

// BatchRelease implements AdmissionServiceServer.
func (a *admission) BatchRelease(ctx context.Context, in *admitv1.BatchReleaseRequest) (resp *admitv1.BatchReleaseResponse, err error) {
	asking, end := a.up.during(ctx, 0)
	defer end()
	err = a.up.send(asking, 0, true, func(ctx context.Context, _ time.Duration) (err error) {
		resp, err = a.up.client.Admission().BatchRelease(ctx, in)
		return err
	})
	for i, r := range resp.GetResults() {
		if r.GetResponse() != nil && i < len(in.GetRequests()) {
			a.table.forget(in.GetRequests()[i].GetToken())
		}
	}
	return resp, err
}

// NextDue implements AdmissionServiceServer.
func (a *admission) NextDue(ctx context.Context, in *admitv1.NextDueRequest) (*admitv1.NextDueResponse, error) {
	places, err := a.table.reserve(int(min(max(in.GetMaxItems(), 1), maxItems)))
	if err != nil {
		return nil, err
	}
	defer places.leave()
	asked := time.Now()
	resp, err := a.up.nextDue(ctx, in)
	if err != nil {
		return nil, err
	}
	for _, c := range resp.GetClaims() {
		places.take(ctx, c.GetPermit(), since(asked, in.GetMaxWait().AsDuration()), in.GetRequestId() != "")
	}
	return resp, nil
}

// ReportDemand implements AdmissionServiceServer.
func (a *admission) ReportDemand(ctx context.Context, in *admitv1.ReportDemandRequest) (resp *admitv1.ReportDemandResponse, err error) {
	err = a.up.send(ctx, 0, true, func(ctx context.Context, _ time.Duration) (err error) {
		resp, err = a.up.client.Admission().ReportDemand(ctx, in)
		return err
	})
	return resp, err
}

// since is from when the time of a permit counts: from before it was asked for, or from
// now where it may have been in line.
func since(asked time.Time, wait time.Duration) time.Time {
	if wait > 0 {
		return time.Now()
	}
	return asked
}
