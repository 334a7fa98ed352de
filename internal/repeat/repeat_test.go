package repeat

import (
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

func TestSafe(t *testing.T) {
	one := int64(1)
	for _, c := range []struct {
		req  proto.Message
		want bool
	}{
		{&admitv1.AcquireRequest{}, false},
		{&admitv1.AcquireRequest{RequestId: "r"}, true},
		{&admitv1.AcquireRequest{DryRun: true}, true},
		{&admitv1.ReportDemandRequest{}, true},
		{&admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{{RequestId: "r"}, {}}}, false},
		{&admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{{RequestId: "r"}, {RequestId: "s"}}}, true},
		{&admitv1.NextDueRequest{}, false},
		{&admitv1.NextDueRequest{RequestId: "r"}, true},
		{&admitv1.RenewRequest{}, true},
		{&admitv1.ReleaseRequest{}, true},
		{&admitv1.ScheduleRequest{}, true},
		{&admitv1.UnscheduleRequest{}, true},
		{&admitv1.RedriveRequest{}, false},
		{&admitv1.PurgeDeadRequest{}, false},
		{&ratelimitv3.RateLimitRequest{}, false},
		{&admitv1alpha1.LeaseShareRequest{}, false},
		{&admitv1.PauseRequest{}, true},
		{&admitv1.ApplyPolicyRequest{}, false},
		{&admitv1.ApplyPolicyRequest{ExpectedRevision: &one}, true},
	} {
		if got := Safe(c.req); got != c.want {
			t.Errorf("%T{%v}: got %v", c.req, c.req, got)
		}
	}
}
