package node

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/config"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// ways are how a client's calls travel.
var ways = map[string][]client.Option{"by themselves": nil, "in a session": {client.WithSession()}}

// wide is a pool with so many slots and nothing else that limits.
func wide(slots int) string {
	return "pools:\n- {name: wide, max_active: " + strconv.Itoa(slots) + "}\n"
}

// withPolicy is the settings of a node that starts with a policy.
func withPolicy(t testing.TB, policy string) config.Config {
	t.Helper()
	cfg := config.DefaultConfig()
	dir := t.TempDir()
	cfg.Data, cfg.PolicyFile = filepath.Join(dir, "data"), filepath.Join(dir, "policy.yaml")
	cfg.GRPCAddr, cfg.HTTPAddr = "127.0.0.1:0", "127.0.0.1:0"
	if err := os.WriteFile(cfg.PolicyFile, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Each way many callers share few slots: nobody is left out, no slot is given twice, and
// all are free in the end.
func TestManyCallersEachWay(t *testing.T) {
	const slots, callers = 4, 300
	n := startNode(t, withPolicy(t, wide(slots)))
	for way, opts := range ways {
		t.Run(way, func(t *testing.T) {
			cl, err := client.Dial(n.GRPCAddr(), opts...)
			if err != nil {
				t.Fatal(err)
			}
			var at, most, done atomic.Int32
			var running sync.WaitGroup
			for i := range callers {
				running.Go(func() {
					w := client.Work{Pool: "wide", Tenant: fmt.Sprintf("t%d", i%10), MaxWait: 30 * time.Second}
					err := cl.Do(soon(t), w, func(context.Context, *client.Permit) error {
						now := at.Add(1)
						defer at.Add(-1)
						for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
						}
						done.Add(1)
						return nil
					})
					if err != nil {
						t.Errorf("caller %d: %v", i, err)
					}
				})
			}
			running.Wait()
			if most.Load() > slots || done.Load() != callers {
				t.Errorf("%d were done, %d at once", done.Load(), most.Load())
			}
			health, err := cl.Status().QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
			if err != nil || health.GetPools()[0].GetActive() != 0 || health.GetPools()[0].GetWaiting() != 0 {
				t.Errorf("in the end: %v, %v", health, err)
			}
			if err := cl.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Any node takes a session, and says where the leader is.
func TestEachNodeTakesSessions(t *testing.T) {
	c := newTrio(t)
	nodes := c.start(t)
	leader := nodes[leaderOf(nodes)]
	for i, n := range nodes {
		conn := dialWith(t, n, credentials.NewTLS(c.caller(t, "")))
		stream, err := admitv1alpha1.NewSessionServiceClient(conn).Session(bearing(soon(t), c.token))
		if err != nil {
			t.Fatal(err)
		}
		acquire := &admitv1alpha1.SessionCall_Acquire{Acquire: &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"}}
		if err := stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{{Id: 7, Request: acquire}}}); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil || len(resp.GetAnswers()) != 1 || resp.GetAnswers()[0].GetAcquire().GetDecision().GetPermit() == nil {
			t.Fatalf("node %d answers %v, %v", i, resp, err)
		}
		if want := leader.GRPCAddr(); n != leader && resp.GetLeaderAddr() != want || n == leader && resp.GetLeaderAddr() != "" {
			t.Errorf("node %d says that %q leads, want %q", i, resp.GetLeaderAddr(), want)
		}
	}
}

// BenchmarkCalls measures an Acquire and its Release, durable, with many callers of one
// client over loopback: by themselves and in a session.
func BenchmarkCalls(b *testing.B) {
	n, err := Start(b.Context(), withPolicy(b, wide(1<<20)), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(n.Stop)
	for _, callers := range []int{1, 64, 256, 1024} {
		for way, opts := range ways {
			b.Run(fmt.Sprintf("callers=%d/way=%s", callers, way), func(b *testing.B) {
				cl, err := client.Dial(n.GRPCAddr(), opts...)
				if err != nil {
					b.Fatal(err)
				}
				benchCalls(b, cl, callers)
				if err := cl.Close(); err != nil {
					b.Error(err)
				}
			})
		}
	}
}

func benchCalls(b *testing.B, cl *client.Client, callers int) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	var running sync.WaitGroup
	for i := range callers {
		w := client.Work{Pool: "wide", Tenant: fmt.Sprintf("t%d", i%100)}
		running.Go(func() {
			for left.Add(-1) >= 0 {
				if err := callOnce(b.Context(), cl, w); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
