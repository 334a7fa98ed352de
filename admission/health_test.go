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
