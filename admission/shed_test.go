package admission

import (
	"testing"
	"time"
)

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

// A permit above a lane's cap does not count in it, so its end frees nothing.
func TestALaneCapIsFreedByItsOwnLanes(t *testing.T) {
	s := tell(t, PoolPolicy{
		Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"urgent": "high"},
		Defaults: TenantPolicy{LaneMaxActive: map[string]int64{"low": 1}},
	})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "urgent", Cost: 1, TTL: time.Second})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, TTL: time.Minute})
	want(t, "earliest expiry", s.shed("a", LaneCap).EarliestExpiry, time.Minute)
}

// What the call itself lacks does not come with time.
func TestACallsOwnReasonHasNoRetryAfter(t *testing.T) {
	s := tell(t, PoolPolicy{
		Buckets: []BucketPolicy{{Name: "b", Scope: ScopePool, Capacity: 1, Refill: 1, Period: time.Second}},
		Lanes:   []LanePolicy{{Name: "l", Batch: BatchPolicy{Size: 2, Only: true}}},
	})
	s.plan(in(0, "a", "1"), in(0, "a", "2"))
	s.do(&NextDue{Pool: "p", MaxItems: 1, Batch: true})
	call := s.do(&NextDue{Pool: "p", MaxItems: 1})[0].(*NextDueResult)
	held := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1, Call: call}).Held[0]
	want(t, "reason", held.Reason, BatchOnly)
	want(t, "retry_after", held.RetryAfter, Absent)
	want(t, "retry_after without the call", s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1}).Held[0].RetryAfter, time.Second)
}

// A call that is refused leaves the entries for that reason, whatever else holds
// them. Who waits in line is none of its business.
func TestARefusedCallIsToldSoFirst(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, Limits: LimitsPolicy{RequestIDs: 1}})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "i"})
	s.acquire(&Acquire{Pool: "p", Tenant: "b", Cost: 1, MaxWait: time.Minute})
	s.plan(in(0, "c", "k"))
	call := s.do(&NextDue{Pool: "p", MaxItems: 1, RequestID: "j"})[0].(*NextDueResult)
	out := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 2, Call: call})
	want(t, "first total", out.Totals[0], HeldTotal{Cardinality, 1})
	want(t, "second total", out.Totals[1], HeldTotal{PoolCap, 1})
}
