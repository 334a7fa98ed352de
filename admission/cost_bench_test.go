package admission

import (
	"fmt"
	"testing"
	"time"
)

// The benchmarks of this file are those of docs/benchmarks.md: Cost is of one step,
// under backlogs and crowds of several sizes; the Longest ones measure the longest
// of many steps, and want -benchtime=1x.

// load is what a state holds while a cost is measured.
type load struct {
	entries, tenants int
	blocked          bool // 99 of 100 tenants are at their cap
}

func (l load) String() string {
	return fmt.Sprintf("entries=%d/tenants=%d/blocked=%v", l.entries, l.tenants, l.blocked)
}

// loads are the backlogs, then the crowds, of which in the end most are blocked.
var loads = []load{
	{1e3, 1e3, false}, {1e4, 1e3, false}, {1e5, 1e3, false}, {1e6, 1e3, false}, {1e7, 1e3, false},
	{1e5, 10, false}, {1e5, 100, false}, {1e5, 1e4, false}, {1e5, 1e5, false},
	{1e5, 100, true}, {1e5, 1e3, true}, {1e5, 1e4, true}, {1e5, 1e5, true},
}

// loaded is a state under a load.
type loaded struct {
	load
	*bench
	free []string // tenants that are not at their cap
}

func (l load) build() *loaded {
	p := marketing
	s := &loaded{load: l}
	for i := range l.tenants {
		if name := fmt.Sprint("tenant-", i); !l.blocked || i%100 == 0 {
			s.free = append(s.free, name)
			if l.blocked {
				p.Overrides = append(p.Overrides, TenantPolicy{ID: name, MaxActive: p.MaxActive})
			}
		}
	}
	if l.blocked {
		p.Defaults.MaxActive = 1
	}
	s.bench = newBench(p)
	s.blast(l.entries, l.tenants)
	for i := range l.tenants {
		if l.blocked && i%100 != 0 {
			s.apply(0, &Acquire{Pool: "p", Tenant: fmt.Sprint("tenant-", i), Category: "bulk", Cost: 1, TTL: 24 * time.Hour})
		}
	}
	return s
}

// BenchmarkCost is what one step costs under each load.
func BenchmarkCost(b *testing.B) {
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			s := l.build()
			b.Run("acquire", s.acquire)
			b.Run("nextdue10", s.nextDue10)
			b.Run("snapshot", s.snapshot)
		})
	}
}

// acquire is an entry with an Acquire and one with its Release.
func (s *loaded) acquire(b *testing.B) {
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		got := s.apply(time.Microsecond, &Acquire{
			Pool: "p", Tenant: s.free[i*7919%len(s.free)], Category: "otp", Cost: 1, Nonce: uint64(i),
		})[0].(*AcquireResult)
		if got.Err != nil || !got.Decision.Granted() {
			b.Fatalf("not granted: %+v", got)
		}
		s.apply(time.Microsecond, &Release{
			Token: got.Decision.Permit.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent,
		})
	}
}

// nextDue10 is an entry with a NextDue of 10. What it claims is given back, off
// the clock, so that the backlog stays.
func (s *loaded) nextDue10(b *testing.B) {
	const batch = 20 // leaves most of the smallest backlog waiting
	b.ReportAllocs()
	var back []Op
	for i := range b.N {
		for _, c := range s.apply(time.Microsecond, &NextDue{Pool: "p", MaxItems: 10, Nonce: uint64(i)})[0].(*NextDueResult).Claims {
			back = append(back, &Release{
				Token: c.Permit.Token, Outcome: OutcomeThrottled, ActualCost: Absent, RetryAfter: 0, Bucket: "provider",
			})
		}
		if i%batch < batch-1 && i < b.N-1 {
			continue
		}
		b.StopTimer()
		if want := (i%batch + 1) * 10; len(back) != want {
			b.Fatalf("%d claims, want %d", len(back), want)
		}
		s.apply(0, back...)
		back = back[:0]
		b.StartTimer()
	}
}

// snapshot takes images, one after the other.
func (s *loaded) snapshot(b *testing.B) {
	for b.Loop() {
		s.Snapshot()
	}
}

// longest runs steps until one says that it was the last, and reports how long the
// longest took.
func longest(b *testing.B, step func() (more bool)) {
	most := time.Duration(0)
	for more := true; more; {
		began := time.Now()
		more = step()
		most = max(most, time.Since(began))
	}
	b.ReportMetric(float64(most.Nanoseconds())/1e6, "longest-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLongestDue is the longest entry while a million entries that come due at
// one instant are made ready, counted and claimed from.
func BenchmarkLongestDue(b *testing.B) {
	const entries = 1_000_000
	for _, shape := range []struct {
		name            string
		tenants, routes int
	}{{"one-route", 1, 1}, {"many-routes", 1, 10_000}, {"many-tenants", 100_000, 1}} {
		b.Run(shape.name, func(b *testing.B) {
			for range b.N {
				s := newBench(marketing)
				for from := 0; from < entries; from += 1000 {
					op := &Schedule{Pool: "p"}
					for i := from; i < from+1000; i++ {
						op.Entries = append(op.Entries, EntrySpec{
							Tenant: fmt.Sprint("tenant-", i%shape.tenants), Key: fmt.Sprint(i),
							Route: fmt.Sprint(i % shape.routes), DueAt: birth.Add(time.Hour),
						})
					}
					s.apply(0, op)
				}
				passed := time.Hour
				liveHeap() // leaves no garbage of the building to collect
				longest(b, func() bool {
					s.apply(passed, &NextDue{Pool: "p", MaxItems: 10}, &Acquire{Pool: "p", Tenant: "tenant-0", Category: "otp", Cost: 1})
					passed = time.Millisecond
					return s.ripening()
				})
			}
		})
	}
}

// BenchmarkLongestExpiry is the longest entry while 10,000 permits that end at one
// instant expire: bare ones, and claims whose entries go back to the queue.
func BenchmarkLongestExpiry(b *testing.B) {
	const permits = 10_000
	for _, claims := range []bool{false, true} {
		b.Run(fmt.Sprintf("claims=%v", claims), func(b *testing.B) {
			for range b.N {
				s := newBench(marketing)
				if claims {
					s.blast(2*permits, 1000)
				}
				for i := 0; i < permits && claims; i += 1000 {
					s.apply(0, &NextDue{Pool: "p", MaxItems: 1000, TTL: time.Minute, Nonce: uint64(i)})
				}
				for i := 0; i < permits && !claims; i++ {
					s.apply(0, &Acquire{Pool: "p", Tenant: fmt.Sprint("tenant-", i%1000), Category: "otp", Cost: 1, TTL: time.Minute, Nonce: uint64(i)})
				}
				if n := s.permits.Len(); n != permits {
					b.Fatalf("%d permits live", n)
				}
				passed := time.Minute
				liveHeap()
				longest(b, func() bool {
					s.apply(passed)
					passed = time.Millisecond
					return s.permits.Len() > 0
				})
			}
		})
	}
}

// BenchmarkLongestWait is the longest entry while 10,000 waits that end at one
// instant are answered: of waiters for a slot, and of those for a lock of their
// tenant's.
func BenchmarkLongestWait(b *testing.B) {
	const waits = 10_000
	full := marketing
	full.MaxActive = 10
	full.Limits.Waiting, full.Limits.WaitingPerTenant = 2*waits, 2*waits
	for _, lock := range []string{"", "key"} {
		b.Run(fmt.Sprintf("locks=%v", lock != ""), func(b *testing.B) {
			for range b.N {
				s := newBench(full)
				for range full.MaxActive {
					s.apply(0, &Acquire{Pool: "p", Tenant: "holder", Category: "otp", Cost: 1, TTL: time.Hour})
				}
				for i := range waits {
					s.apply(0, &Acquire{
						Pool: "p", Tenant: fmt.Sprint("tenant-", i%1000), Category: "otp", Cost: 1,
						MaxWait: time.Minute, LockKey: lock, Nonce: uint64(i), RequestID: fmt.Sprint(i),
					})
				}
				if n := s.waiters.Len(); n != waits {
					b.Fatalf("%d wait", n)
				}
				passed := time.Minute
				liveHeap()
				longest(b, func() bool {
					s.apply(passed)
					passed = time.Millisecond
					return s.waiters.Len() > 0
				})
			}
		})
	}
}

// An uncontended Acquire allocates its result, its permit and what the trees need
// now and then.
func TestAcquireAllocatesLittle(t *testing.T) {
	s := newBench(marketing)
	names := s.crowd(100)
	ask := &Acquire{Pool: "p", Category: "otp", Cost: 1}
	ops, i := []Op{ask}, 0
	got := testing.AllocsPerRun(2000, func() {
		i++
		ask.Tenant, ask.Nonce = names[i%len(names)], uint64(i)
		s.apply(time.Microsecond, ops...)
	})
	if got > 4 {
		t.Errorf("an Acquire makes %v allocations, want at most 4", got)
	}
}
