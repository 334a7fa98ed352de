package admission

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// crowd is how many tenants come once in a test of the heap, and how many of them
// at most are known at a time.
func crowd() (tenants, atOnce int) {
	if os.Getenv("ADMIT_NIGHTLY") != "" {
		return 1_000_000, 100_000
	}
	return 20_000, 10_000
}

// A million tenants that each ask once, or have one entry, leave the heap where it
// was when they are forgotten: with them go their permits, entries, request ids,
// dedupe keys, and the room that was made for all these.
func TestOneOffTenantsLeaveTheHeapAtBase(t *testing.T) {
	for what, visit := range map[string]func(s *story, from, n int){
		"Acquire and Release":      visitByAcquire,
		"Schedule, claim and DONE": visitBySchedule,
	} {
		t.Run(what, func(t *testing.T) {
			tenants, atOnce := crowd()
			s := tell(t, PoolPolicy{
				Buckets:       []BucketPolicy{{Name: "b", Scope: ScopeTenant, Capacity: 5, Refill: 1, Period: time.Second}},
				DoneRetention: time.Minute,
				Limits: LimitsPolicy{
					Tenants: int64(atOnce) * 2, NewTenantsPerSecond: int64(atOnce) * 2,
				},
			})
			s.quick = true
			visit(s, 0, 1)
			s.forgetAll()
			base := liveHeap()
			most := base
			for from := 0; from < tenants; from += atOnce {
				visit(s, from, atOnce)
				most = max(most, liveHeap())
				s.forgetAll()
			}
			left := liveHeap()
			t.Logf("%d tenants, %d at once: base %d, most %d, left %d bytes", tenants, atOnce, base, most, left)
			if most < base+int64(atOnce)*500 {
				t.Errorf("the crowd took %d bytes: nothing is shown", most-base)
			}
			if left > base+roomOfAnEntry {
				t.Errorf("%d bytes are left of %d", left-base, most-base)
			}
			check(t, s.State)
		})
	}
}

const (
	// visitors is how many tenants one entry is about.
	visitors = 1000
	// roomOfAnEntry is what a state keeps to work with: as much as its largest entry
	// needed, however many tenants there were.
	roomOfAnEntry = 128 << 10
)

// forgetAll lets time pass until everything that can be is forgotten.
func (s *story) forgetAll() {
	s.Helper()
	known := func() int { return s.tenants.Len() + s.requests.Len() + s.ended.Len() + s.dones.Len() }
	s.wait(memoryWindow)
	for before := known(); before > 0; {
		s.wait(2 * time.Second)
		now := known()
		if now >= before {
			s.Fatalf("%d rows stay", now)
		}
		before = now
	}
}

func visitByAcquire(s *story, from, n int) {
	for begin := from; begin < from+n; begin += visitors {
		var asks, releases []Op
		for i := range min(visitors, from+n-begin) {
			id := fmt.Sprint("t", begin+i)
			asks = append(asks, &Acquire{Pool: "p", Tenant: id, Cost: 1, RequestID: id, DedupeKey: id, LockKey: id})
		}
		for _, r := range s.do(asks...) {
			d := r.(*AcquireResult).Decision
			if d.Shed != nil {
				s.Fatalf("shed %s", d.Shed.Reason)
			}
			releases = append(releases, &Release{Token: d.Permit.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent})
		}
		s.do(releases...)
		s.wait(time.Millisecond)
	}
}

func visitBySchedule(s *story, from, n int) {
	for begin := from; begin < from+n; begin += visitors {
		var specs []EntrySpec
		for i := range min(visitors, from+n-begin) {
			id := fmt.Sprint("t", begin+i)
			specs = append(specs, EntrySpec{Tenant: id, Key: id, Route: id, Group: id, Relative: true})
		}
		for _, row := range s.plan(specs...) {
			want(s, "scheduled", row.Status, Scheduled)
		}
		r := s.do(&NextDue{Pool: "p", MaxItems: visitors, RequestID: fmt.Sprint(begin)})[0].(*NextDueResult)
		want(s, "claims", len(r.Claims), len(specs))
		var releases []Op
		for _, c := range r.Claims {
			releases = append(releases, &Release{Token: c.Permit.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent})
		}
		s.do(releases...)
		s.wait(time.Millisecond)
	}
}
