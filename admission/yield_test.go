package admission

import (
	"testing"
	"time"
)

// Lanes below yield to who asks above for a lock that is free, and not to who waits for one
// that is held: he can't be served.
func TestLanesDoNotYieldToWhoWaitsForALock(t *testing.T) {
	for key, reason := range map[string]Reason{"held": ReasonNone, "free": LaneYield} {
		s := tell(t, PoolPolicy{
			Lanes:      []LanePolicy{{Name: "high"}, {Name: "low", Yield: &YieldPolicy{}}},
			Categories: map[string]string{"urgent": "high"},
		})
		s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "urgent", Cost: 1, LockKey: "held"})
		results := s.do(
			&Acquire{Pool: "p", Tenant: "a", Category: "urgent", Cost: 1, LockKey: key, MaxWait: time.Minute},
			&Acquire{Pool: "p", Tenant: "b", Cost: 1},
		)
		got := ReasonNone
		if shed := results[1].(*AcquireResult).Decision.Shed; shed != nil {
			got = shed.Reason
		}
		want(t, "the lane below, beside an Acquire whose lock is "+key, got, reason)
	}
}
