package raftstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// BenchmarkDo measures one Acquire and its Release, each durable, on the disk
// of the temporary directory: calls one after the other with batches of them,
// and clients that call for one at once.
func BenchmarkDo(b *testing.B) {
	for _, batch := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { benchDo(b, batch, 1) })
	}
	for _, clients := range []int{16, 128, 1024} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) { benchDo(b, 1, clients) })
	}
}

func benchDo(b *testing.B, batch, clients int) {
	n := startNode(b, Config{Dir: b.TempDir()}, clock.System())
	p := testPolicy()
	p.Pools[0].MaxActive = 0
	n.applyPolicy(p)
	b.ReportAllocs()
	work := make(chan struct{}, b.N)
	for range (b.N + batch - 1) / batch {
		work <- struct{}{}
	}
	close(work)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range clients {
		tenant := fmt.Sprintf("t%d", i%100)
		wg.Go(func() {
			for range work {
				if err := acquireAndRelease(n.Store, b, tenant, batch); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func acquireAndRelease(s *Store, b *testing.B, tenant string, batch int) error {
	reqs := make([]Request, batch)
	for i := range reqs {
		reqs[i].Op = &admission.Acquire{Pool: "mail", Tenant: tenant, Cost: 1}
	}
	answers, err := s.Do(b.Context(), reqs...)
	if err != nil {
		return err
	}
	for i, a := range answers {
		reqs[i].Op = &admission.Release{
			Token:   a.Result.(*admission.AcquireResult).Decision.Permit.Token,
			Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent,
		}
	}
	_, err = s.Do(b.Context(), reqs...)
	return err
}

// BenchmarkRefuse measures an Acquire that the state refuses.
func BenchmarkRefuse(b *testing.B) {
	n := startNode(b, Config{Dir: b.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	for range 4 {
		n.mustAcquire("acme")
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := n.Do(b.Context(), Request{Op: acquireOp("acme")}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkDigest measures what it costs to note the results of an entry of 64 Acquires,
// half of them granted.
func BenchmarkDigest(b *testing.B) {
	var results []admission.Result
	for i := range 32 {
		tenant := fmt.Sprintf("tenant-%d", i)
		results = append(results, &admission.AcquireResult{Decision: admission.Decision{Permit: admission.Permit{
			Token: admission.Token{Index: uint64(i)}, Fence: 7, ExpiresIn: time.Minute, Pool: "mail", Tenant: tenant, Lane: "high",
			State: admission.PermitLive,
		}}}, &admission.AcquireResult{Decision: admission.Decision{Shed: &admission.Shed{Reason: admission.PoolCap}}})
	}
	var d digests
	b.ReportAllocs()
	for i := range b.N {
		d.reset(d.after(uint64(i+1), results, nil))
	}
}
