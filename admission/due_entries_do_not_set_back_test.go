package admission

import (
	"testing"
	"time"
)

// Entries that nobody polls for cost whoever waits in line nothing.
func TestDueEntriesDoNotSetBackWhoWaits(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1})
	held := s.granted("x")
	s.plan(in(0, "idle", "due"), in(0, "both", "due"))
	for range 60 {
		for _, tenant := range []string{"plain", "both", "third"} {
			s.acquire(&Acquire{Pool: "p", Tenant: tenant, Cost: 1, MaxWait: time.Minute})
		}
	}
	got := map[string]int{}
	for range 60 {
		s.release(held.Token)
		ends := s.Ended()
		if len(ends) != 1 {
			t.Fatalf("%d waits ended by one release", len(ends))
		}
		held = ends[0].Result.Decision.Permit
		got[held.Tenant]++
	}
	want(t, "permits of who has due entries too", got["both"], 20)
	want(t, "permits of who has none", got["plain"], 20)
}
