package admission_test

import (
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

func report(tenant string, backlog int64) *admission.ReportDemand {
	return &admission.ReportDemand{Pool: "p", Tenant: tenant, Backlog: backlog, TTL: time.Minute}
}

func TestAKeptSlotIsToldWithWhoHoldsTheOthers(t *testing.T) {
	preferred := int64(1)
	s := script(t, admission.PoolPolicy{
		MaxActive: 2, PermitTTL: 20 * time.Second,
		Overrides: []admission.TenantPolicy{{ID: "a", PreferredActive: &preferred}},
	})
	s.do(0, report("a", 3))
	want(t, "the first is granted", granted(s.do(0, ask("b", 1))[0]), true)
	shed := refusal(t, s.do(0, ask("b", 1))[0])
	want(t, "reason", shed.Reason, admission.ReclaimWait)
	want(t, "holders", shed.Blocking[0].Holders, 1)
	want(t, "earliest expiry", shed.EarliestExpiry, 20*time.Second)
	s.do(0, report("a", 0))
	s.do(0, ask("b", 1))
	s.do(0, report("a", 1))
	want(t, "limits where no slot is free either", len(refusal(t, s.do(0, ask("b", 1))[0]).Blocking), 2)
}

// A call that takes no batches leaves the entries of such a lane; what is only
// reported there it was never asked for.
func TestACallLeavesNothingThatIsOnlyReported(t *testing.T) {
	s := script(t, admission.PoolPolicy{
		MaxActive: 1,
		Lanes:     []admission.LanePolicy{{Name: "l", Batch: admission.BatchPolicy{Size: 2, Only: true}}},
		Defaults:  admission.TenantPolicy{MaxActive: 1},
	})
	s.do(0, plan("a", "k", "l"), &admission.NextDue{Pool: "p", MaxItems: 1, Batch: true})
	s.do(0, report("b", 1), report("a", 1))
	call := s.do(0, &admission.NextDue{Pool: "p", MaxItems: 1})[0].(*admission.NextDueResult)
	totals := s.core.Shedding(s.at, s.wall, admission.SheddingQuery{Pool: "p", Call: call}).Totals
	want(t, "reasons", len(totals), 2)
	want(t, "first reason", totals[0].Reason, admission.BatchOnly)
	want(t, "second reason", totals[1], admission.HeldTotal{Reason: admission.PoolCap, Tenants: 1})
}

// Whether an idle tenant is forgotten does not wait for those who say that they
// have nothing.
func TestAReportOfNothingLeavesNoTrace(t *testing.T) {
	s := script(t, admission.PoolPolicy{Buckets: []admission.BucketPolicy{
		{Name: "f", Scope: admission.ScopeTenant, Capacity: 1, Refill: 1, Period: time.Second},
	}})
	s.do(0, &admission.Acquire{Pool: "p", Tenant: "a", Cost: 1, RateOnly: true})
	s.do(time.Second, report("a", 0))
	s.do(0, report("b", 0))
	s.do(naiveSpareTime)
	want(t, "tenants", s.core.Health(s.at, s.wall, "p")[0].Tenants, 0)
}
