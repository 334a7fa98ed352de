package admission

import (
	"fmt"
	"testing"
	"time"
)

// A picture of many held tenants is made without looking at one of them.
func TestPictureOfManyHeld(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, PermitTTL: time.Hour})
	s.quick = true
	s.granted("z")
	for n := range 100 {
		specs := make([]EntrySpec, 100)
		for i := range specs {
			specs[i] = in(0, fmt.Sprintf("t%d-%d", n, i), "k")
		}
		s.plan(specs...)
		s.wait(time.Second) // newcomers are bounded
	}
	var pic *Picture
	allocs := testing.AllocsPerRun(1, func() { pic, _ = s.Picture(s.t, s.w, "p") })
	if allocs > 30 {
		t.Errorf("a picture takes %g allocations", allocs)
	}
	held := 0
	for range pic.All(HeldFilter{}) {
		held++
	}
	want(t, "held tenants", held, 10_000)
	want(t, "total", pic.Totals[0], HeldTotal{PoolCap, 10_000})
	if _, err := s.Picture(s.t, s.w, "none"); err == nil || err.Reason != PoolNotFound {
		t.Errorf("no such pool: %v", err)
	}
}

// Where time alone frees it, a picture says when.
func TestPictureTellsWhenToRetry(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{
		{Name: "rate", Scope: ScopePool, Capacity: 1, Refill: 1, Period: time.Second},
		{Name: "fair", Scope: ScopeTenant, Capacity: 1, Refill: 1, Period: time.Minute},
	}})
	s.granted("a")
	s.plan(in(0, "a", "1"), in(0, "b", "1"))
	pic, _ := s.Picture(s.t, s.w, "p")
	got := ""
	for row := range pic.All(HeldFilter{}) {
		got += fmt.Sprint(row.Tenant, " ", row.Reason, " ", row.RetryAfter, "; ")
	}
	want(t, "rows", got, "a TENANT_RATE 1m0s; b POOL_RATE 1s; ")
}
