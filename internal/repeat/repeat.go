// Package repeat says which of the API's requests may be sent again.
package repeat

import (
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// Safe says whether sending a request again has the effect of sending it once. Acquire
// and NextDue need a request_id for it. Renew and Release name their permit; Schedule and
// Unschedule their keys; Pause and Resume a state that is the same twice, and so does
// ReportDemand. A policy may be applied again only over the revision that it was meant to
// replace, else it could undo another's in between. Members come and go by their ids.
// Redrive and PurgeDead take up to a limit each time, Envoy's requests their hits, and
// LeaseShare tokens. All others only read, and so does a dry run.
func Safe(req any) bool {
	switch r := req.(type) {
	case *admitv1.AcquireRequest:
		return r.GetRequestId() != "" || r.GetDryRun()
	case *admitv1.BatchAcquireRequest:
		for _, item := range r.GetRequests() {
			if !Safe(item) {
				return false
			}
		}
		return true
	case *admitv1.NextDueRequest:
		return r.GetRequestId() != ""
	case *admitv1.RedriveRequest, *admitv1.PurgeDeadRequest, *ratelimitv3.RateLimitRequest, *admitv1alpha1.LeaseShareRequest:
		return false
	case *admitv1.ApplyPolicyRequest:
		return r.ExpectedRevision != nil || r.GetDryRun()
	default:
		return true
	}
}
