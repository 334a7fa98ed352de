package server

import (
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Permits are listed from the oldest on, without their tokens, page by page; the first
// page counts them all by age.
func TestListPermits(t *testing.T) {
	h, store := startWithPolicy(t)
	for i, tenant := range []string{"acme", "umbrella", "acme"} {
		store.at = admission.Instant(time.Duration(i) * 20 * time.Second)
		resp, err := h.Acquire(soon(t), &admitv1.AcquireRequest{
			Pool: "email", Tenant: tenant, Category: "otp", WorkerId: fmt.Sprintf("w%d", i), Ttl: durationpb.New(time.Hour),
		})
		if err != nil || resp.GetDecision().GetPermit() == nil {
			t.Fatalf("got %v, %v", resp, err)
		}
	}
	store.at = admission.Instant(45 * time.Second)
	first, err := h.status.ListPermits(soon(t), &admitv1.ListPermitsRequest{Pool: "email", Tenant: "acme", PageSize: 1})
	if err != nil || len(first.GetPermits()) != 1 {
		t.Fatalf("got %v, %v", first, err)
	}
	oldest := first.GetPermits()[0]
	if oldest.GetWorkerId() != "w0" || oldest.GetHeldFor().AsDuration() != 45*time.Second || oldest.GetState() != admitv1.PermitState_PERMIT_STATE_LIVE {
		t.Errorf("the oldest is %v", oldest)
	}
	ages := ""
	for _, a := range first.GetAges() {
		ages += fmt.Sprint(a.GetUnder().AsDuration(), ":", a.GetPermits(), " ")
	}
	if ages != "1s:0 10s:1 1m0s:1 10m0s:0 1h0m0s:0 0s:0 " {
		t.Errorf("by age: %s", ages)
	}
	next := &admitv1.ListPermitsRequest{Pool: "email", Tenant: "acme", PageSize: 1, PageToken: first.GetNextPageToken()}
	last, err := h.status.ListPermits(soon(t), next)
	if err != nil || last.GetPermits()[0].GetWorkerId() != "w2" || last.GetNextPageToken() != "" || last.GetAges() != nil {
		t.Errorf("got %v, %v", last, err)
	}
	next.Tenant = "umbrella"
	if _, err = h.status.ListPermits(soon(t), next); tell(t, err).code != codes.InvalidArgument {
		t.Errorf("another list's token: %v", err)
	}
	if _, err = h.status.ListPermits(soon(t), &admitv1.ListPermitsRequest{Pool: "nowhere"}); tell(t, err).reason != "POOL_NOT_FOUND" {
		t.Errorf("no such pool: %v", err)
	}
}
