package admission

import (
	"fmt"
	"runtime"
	"testing"
	"time"
)

// bench is a state of one pool whose time goes on.
type bench struct {
	*State
	e Entry
}

func newBench(p PoolPolicy) *bench {
	p.Name = "p"
	b := &bench{State: New()}
	b.w = birth
	res := b.apply(0, ApplyPolicy{Policy: Policy{Pools: []PoolPolicy{p}}, ExpectedRevision: AnyRevision})[0].(*PolicyResult)
	if res.Err != nil {
		panic(res.Err)
	}
	return b
}

func (b *bench) apply(passed time.Duration, ops ...Op) []Result {
	b.e = Entry{Index: b.index + 1, T: b.t.Add(passed), W: b.w.Add(passed), Ops: ops}
	return b.Apply(b.e)
}

// blast schedules n entries that are due now, spread over tenants.
func (b *bench) blast(n, tenants int) {
	const batch = 1000
	for from := 0; from < n; from += batch {
		op := &Schedule{Pool: "p"}
		for i := from; i < min(from+batch, n); i++ {
			op.Entries = append(op.Entries, EntrySpec{Tenant: fmt.Sprint("tenant-", i%tenants), Key: fmt.Sprint("key-", i), DueAt: b.w})
		}
		b.apply(0, op)
	}
	for b.ripening() {
		b.apply(0)
	}
}

// ripening says whether due entries are still to be counted.
func (b *bench) ripening() bool {
	due, ok := b.Due()
	return ok && due <= b.w
}

// marketing is a pool like one that sends mail: a provider's bucket, two lanes, a
// bucket for fair use.
var marketing = PoolPolicy{
	MaxActive: 1_000_000,
	Buckets: []BucketPolicy{
		{Name: "provider", Scope: ScopePool, Capacity: 1 << 40, Refill: 1 << 40, Period: time.Second, PerPermit: true},
		{Name: "fair-use", Scope: ScopeTenant, Capacity: 1 << 30, Refill: 1 << 30, Period: time.Second},
	},
	Lanes:      []LanePolicy{{Name: "high"}, {Name: "low", LeaveSlots: 8}},
	Categories: map[string]string{"otp": "high", "bulk": "low"},
	Limits:     LimitsPolicy{EntriesPerTenant: 10_000_000, Tenants: 1_000_000, NewTenantsPerSecond: 1_000_000_000},
}

// crowd is tenants that are known and stay so: each has an entry for next year.
func (b *bench) crowd(tenants int) (names []string) {
	for i := range tenants {
		names = append(names, fmt.Sprint("tenant-", i))
	}
	for from := 0; from < tenants; from += 1000 {
		op := &Schedule{Pool: "p"}
		for _, name := range names[from:min(from+1000, tenants)] {
			op.Entries = append(op.Entries, EntrySpec{Tenant: name, Key: "k", Category: "otp", DueAt: b.w.Add(365 * 24 * time.Hour)})
		}
		b.apply(0, op)
	}
	return names
}

// BenchmarkAcquire is an entry with one Acquire, with as many tenants known and
// some 10,000 permits out. Permits are given back in between, off the clock.
func BenchmarkAcquire(b *testing.B) {
	const batch = 1000
	for _, tenants := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			s := newBench(marketing)
			names := s.crowd(tenants)
			ask := &Acquire{Pool: "p", Category: "otp", Cost: 1}
			ops := []Op{ask}
			acquire := func(i int) Token {
				ask.Tenant, ask.Nonce = names[i*7919%tenants], uint64(i)
				return s.apply(time.Microsecond, ops...)[0].(*AcquireResult).Decision.Permit.Token
			}
			var live []Token
			for i := range 10 * batch {
				live = append(live, acquire(i))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				if i%batch == 0 {
					b.StopTimer()
					for _, token := range live[:batch] {
						s.apply(0, &Release{Token: token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent})
					}
					live = append(live[:0:0], live[batch:]...)
					b.StartTimer()
				}
				live = append(live, acquire(i))
			}
		})
	}
}

// BenchmarkAcquireExpire is an entry with one Acquire in which one permit of
// 10,000 expires, with as many tenants known.
func BenchmarkAcquireExpire(b *testing.B) {
	const permits = 10_000
	for _, tenants := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			s := newBench(marketing)
			names := s.crowd(tenants)
			ask := &Acquire{Pool: "p", Category: "otp", Cost: 1, TTL: permits * time.Millisecond}
			ops := []Op{ask}
			acquire := func(i int) {
				ask.Tenant, ask.Nonce = names[i*7919%tenants], uint64(i)
				s.apply(time.Millisecond, ops...)
			}
			for i := range permits {
				acquire(i)
			}
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				acquire(i)
			}
		})
	}
}

// BenchmarkNextDue10 is one entry with a NextDue of 10 out of a backlog. What it
// claims is given back unstarted, out of the clock, so that the backlog stays.
func BenchmarkNextDue10(b *testing.B) {
	for _, tenants := range []int{10, 10_000} {
		for _, entries := range []int{1000, 1_000_000} {
			if entries < tenants {
				continue
			}
			b.Run(fmt.Sprintf("tenants=%d/entries=%d", tenants, entries), func(b *testing.B) {
				s := newBench(marketing)
				s.blast(entries, tenants)
				poll := []Op{&NextDue{Pool: "p", MaxItems: 10}}
				const batch = 50 // at most half of the backlog is claimed at a time
				var back []Op
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					for _, c := range s.apply(time.Microsecond, poll...)[0].(*NextDueResult).Claims {
						back = append(back, &Release{Token: c.Permit.Token, Outcome: OutcomeThrottled, ActualCost: Absent, RetryAfter: 0, Bucket: "provider"})
					}
					if i%batch == batch-1 {
						b.StopTimer()
						if len(back) != 10*batch {
							b.Fatalf("%d claims in %d calls", len(back), batch)
						}
						s.apply(0, back...)
						back = back[:0]
						b.StartTimer()
					}
				}
			})
		}
	}
}

// BenchmarkDecideShed is a refusal, as a leader answers it without an entry.
func BenchmarkDecideShed(b *testing.B) {
	for _, tenants := range []int{100, 100_000} {
		b.Run(fmt.Sprintf("tenants=%d", tenants), func(b *testing.B) {
			full := marketing
			full.MaxActive = 10
			s := newBench(full)
			for range 10 {
				s.apply(0, &Acquire{Pool: "p", Tenant: "other", Category: "otp", Cost: 1})
			}
			s.blast(tenants, tenants)
			ask := &Acquire{Pool: "p", Tenant: "tenant-7", Category: "otp", Cost: 1}
			b.ReportAllocs()
			for b.Loop() {
				if s.Decide(s.t, ask).Decision.Shed == nil {
					b.Fatal("granted")
				}
			}
		})
	}
}

// BenchmarkMemory reports the live heap that each due entry takes, its key and
// tenant's name included.
func BenchmarkMemory(b *testing.B) {
	for _, tenants := range []int{10, 10_000} {
		const entries = 1_000_000
		b.Run(fmt.Sprintf("tenants=%d/entries=%d", tenants, entries), func(b *testing.B) {
			for b.Loop() {
				before := liveHeap()
				s := newBench(marketing)
				s.blast(entries, tenants)
				b.ReportMetric(float64(liveHeap()-before)/entries, "B/entry")
				runtime.KeepAlive(s)
			}
		})
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
