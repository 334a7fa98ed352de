package sidecar

import (
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// BenchmarkCalls measures an Acquire and its Release, durable, of 256 workers over one
// connection: to a node, and to a sidecar beside it. All run in this process, so that it
// tells what the sidecar costs, not what it spares the node.
func BenchmarkCalls(b *testing.B) {
	const workers = 256
	n := realNode(b)
	p := &Process{cfg: Config{
		Options: Options{MaxPermits: 1000}, Listen: "unix:" + filepath.Join(b.TempDir(), "sock"), SocketMode: 0o600,
		Upstream: []string{n.GRPCAddr()}, ShutdownTimeout: 10 * time.Second,
	}, log: slog.New(slog.DiscardHandler), failures: make(chan error, 2)}
	if err := p.start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.stop() })
	for name, addr := range map[string]string{"to=node": n.GRPCAddr(), "to=sidecar": p.Addr()} {
		b.Run(name, func(b *testing.B) {
			c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			api := admitv1.NewAdmissionServiceClient(c)
			var left atomic.Int64
			left.Store(int64(b.N))
			var running sync.WaitGroup
			for range workers {
				running.Go(func() {
					for left.Add(-1) >= 0 {
						got, err := api.Acquire(b.Context(), &admitv1.AcquireRequest{Pool: "mail", Tenant: "acme"})
						if err == nil {
							_, err = api.Release(b.Context(), &admitv1.ReleaseRequest{Token: got.GetDecision().GetPermit().GetToken()})
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			running.Wait()
		})
	}
}

// BenchmarkTokens measures a request for a token of 256 workers over one connection: that
// a node decides, and that a sidecar beside it grants from a share.
func BenchmarkTokens(b *testing.B) {
	const workers = 256
	n := realNode(b)
	p := &Process{cfg: Config{
		Options: Options{MaxPermits: 1000, MaxShares: 100}, Listen: "unix:" + filepath.Join(b.TempDir(), "sock"), SocketMode: 0o600,
		Upstream: []string{n.GRPCAddr()}, ShutdownTimeout: 10 * time.Second,
	}, log: slog.New(slog.DiscardHandler), failures: make(chan error, 2)}
	if err := p.start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.stop() })
	for name, addr := range map[string]string{"to=node": n.GRPCAddr(), "to=sidecar": p.Addr()} {
		b.Run(name, func(b *testing.B) {
			c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			api := admitv1.NewAdmissionServiceClient(c)
			var left, fromShare atomic.Int64
			left.Store(int64(b.N))
			var running sync.WaitGroup
			for range workers {
				running.Go(func() {
					for left.Add(-1) >= 0 {
						got, err := api.Acquire(b.Context(), &admitv1.AcquireRequest{Pool: "lent", Tenant: "acme", RateOnly: true})
						if err != nil || got.GetDecision().GetPermit() == nil {
							b.Error(got, err)
							return
						}
						if got.GetSource() == admitv1.DecisionSource_DECISION_SOURCE_SHARE {
							fromShare.Add(1)
						}
					}
				})
			}
			running.Wait()
			b.ReportMetric(float64(fromShare.Load())/float64(b.N), "from-share/op")
		})
	}
}

// BenchmarkTake measures a grant from a share by itself.
func BenchmarkTake(b *testing.B) {
	book := newShareBook(10, time.Now, jittered, newMetrics())
	key := shareKey{"lent", "acme", ""}
	book.take(key, 1)
	book.leased(<-book.toLease, time.Now(), lease("s", maxShareTokens, time.Hour, 1), nil)
	b.ReportAllocs()
	for b.Loop() {
		if !book.take(key, 1).granted {
			b.Fatal("nothing is left")
		}
	}
}
