package admission

import (
	"testing"
	"time"
)

// The age that operators see is that of the oldest entry that is still there.
func TestOldestAgeFollowsTheHeadOfTheLine(t *testing.T) {
	s := tell(t, PoolPolicy{})
	age := func() time.Duration {
		return s.Health(s.t, s.w, "p")[0].Lanes[0].OldestAge
	}
	s.plan(in(0, "a", "first"))
	s.wait(time.Second)
	s.plan(in(0, "a", "second"))
	s.wait(time.Second)
	want(t, "age of the first", age(), 2*time.Second)
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "first"})
	want(t, "age once the first is gone", age(), time.Second)
	s.plan(EntrySpec{Tenant: "a", Key: "older", DueAt: s.w.Add(-time.Minute)})
	want(t, "age of one that was due before", age(), time.Minute)
}

func TestHealthTellsWhoWaitsInALane(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}})
	s.granted("a")
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute})
	lanes := s.Health(s.t, s.w, "p")[0].Lanes
	want(t, "waiting above", lanes[0].Waiting, 0)
	want(t, "waiting below", lanes[1].Waiting, 1)
}
