package admission

import "testing"

// A tenant that had its cycle is told so even where the call was full as well.
func TestCycleCapIsToldBeforeBatchFull(t *testing.T) {
	s := tell(t, PoolPolicy{Lanes: []LanePolicy{{Name: "l", TenantCycleLimit: 1}}})
	s.plan(in(0, "a", "1"), in(0, "a", "2"), in(0, "b", "1"), in(0, "b", "2"))
	call := s.do(&NextDue{Pool: "p", MaxItems: 1})[0].(*NextDueResult)
	want(t, "claims", len(call.Claims), 1)
	out := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 2, Call: call})
	for _, row := range out.Held {
		reason := BatchFull
		if row.Tenant == call.Claims[0].Permit.Tenant {
			reason = CycleCap
		}
		want(t, "reason of "+row.Tenant, row.Reason, reason)
	}
}
