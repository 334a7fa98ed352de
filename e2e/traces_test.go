package e2e

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// traced is a span as the collector got it.
type traced struct {
	*tracev1.Span
	node string
}

// collector keeps the spans that nodes send, by their traces.
type collector struct {
	collectorv1.UnimplementedTraceServiceServer
	addr string

	mu    sync.Mutex
	spans map[string][]traced
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{addr: l.Addr().String(), spans: map[string][]traced{}}
	s := grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(s, c)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // until Stop
	}()
	t.Cleanup(func() { s.Stop(); <-served })
	return c
}

// Export implements OTLP's TraceService.
func (c *collector) Export(_ context.Context, in *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, from := range in.GetResourceSpans() {
		node := ""
		for _, attr := range from.GetResource().GetAttributes() {
			if attr.GetKey() == "service.instance.id" {
				node = attr.GetValue().GetStringValue()
			}
		}
		for _, scope := range from.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				id := hex.EncodeToString(s.GetTraceId())
				c.spans[id] = append(c.spans[id], traced{s, node})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// below waits for the span of a name and kind that is right below another of its trace.
func (c *collector) below(t *testing.T, trace, parent, name string, kind tracev1.Span_SpanKind) (found traced) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, fmt.Sprintf("%s %s below %s", kind, name, parent), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans[trace] {
			if s.GetName() == name && s.GetKind() == kind && hex.EncodeToString(s.GetParentSpanId()) == parent {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// A call of a follower is one trace, from the caller's place in it by way of the leader to
// the log entry, through real processes; a sidecar before them, which goes to the leader
// itself as soon as it knows who leads, is no break in it.
func TestACallIsOneTrace(t *testing.T) {
	t.Parallel() // with the others that bound no time
	dir, spans := harness.Folder(t), startCollector(t)
	cluster := harness.StartCluster(t, dir, members, harness.With("--traces-endpoint", "http://"+spans.addr))
	operator := cluster.Dial()
	if _, err := operator.Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: &admitv1.Policy{
		Pools: []*admitv1.Pool{{Name: pool, MaxActive: ptr(int64(1))}},
	}}); err != nil {
		t.Fatalf("apply the policy: %v", err)
	}
	follower := cluster.Nodes[cluster.Follower()].Addr()
	sidecar := harness.StartSidecar(t, filepath.Join(dir, "sidecar"), []string{follower})
	for i, addr := range []string{follower, sidecar.Addr()} {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials())) // it follows nobody
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		api := admitv1.NewAdmissionServiceClient(conn)
		trace, caller := fmt.Sprintf("%032x", i+1), fmt.Sprintf("%016x", i+1)
		ctx := metadata.AppendToOutgoingContext(background, "traceparent", "00-"+trace+"-"+caller+"-01")
		first, err := api.Acquire(background, &admitv1.AcquireRequest{Pool: pool, Tenant: shop})
		if err != nil || first.GetDecision().GetPermit() == nil {
			t.Fatalf("take the only slot: %v, %v", first, err)
		}
		waited := make(chan error, 1)
		go func() {
			resp, err := api.Acquire(ctx, &admitv1.AcquireRequest{Pool: pool, Tenant: shop, MaxWait: durationpb.New(20 * time.Second)})
			if err == nil {
				_, err = api.Release(background, &admitv1.ReleaseRequest{Token: resp.GetDecision().GetPermit().GetToken()})
			}
			waited <- err
		}()
		harness.WaitFor(t, 20*time.Second, "the second to stand in line", func() bool {
			resp, err := operator.Status().QueueHealth(background, &admitv1.QueueHealthRequest{Pool: pool})
			return err == nil && resp.GetPools()[0].GetWaiting() == 1
		})
		if _, err := api.Release(background, &admitv1.ReleaseRequest{Token: first.GetDecision().GetPermit().GetToken()}); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; err != nil {
			t.Fatal(err)
		}
		spans.wantChain(t, trace, caller, addr == follower)
	}
	sidecar.Stop()
}

// wantChain wants the spans of an Acquire that waited, which a follower took or, unless it
// was to be sent on, maybe the leader.
func (c *collector) wantChain(t *testing.T, trace, caller string, sentOn bool) {
	t.Helper()
	const acquire = "admit.v1.AdmissionService/Acquire"
	id := func(s traced) string { return hex.EncodeToString(s.GetSpanId()) }
	taken := c.below(t, trace, caller, acquire, tracev1.Span_SPAN_KIND_SERVER)
	led, calls := taken, 1
	if taken.node == "" {
		t.Error("the first span has no node")
	}
	if sentOn || !c.committed(t, trace, id(taken)) {
		onward := c.below(t, trace, id(taken), acquire, tracev1.Span_SPAN_KIND_CLIENT)
		led = c.below(t, trace, id(onward), acquire, tracev1.Span_SPAN_KIND_SERVER)
		calls = 3
		if onward.node != taken.node || led.node == "" || led.node == taken.node {
			t.Errorf("taken at %q, sent on by %q, led at %q", taken.node, onward.node, led.node)
		}
	}
	commit := c.below(t, trace, id(led), "commit", tracev1.Span_SPAN_KIND_INTERNAL)
	wait := c.below(t, trace, id(led), "wait", tracev1.Span_SPAN_KIND_INTERNAL)
	if commit.node != led.node || wait.node != led.node {
		t.Errorf("led at %q, committed at %q, waited at %q", led.node, commit.node, wait.node)
	}
	var names []string
	c.mu.Lock()
	for _, s := range c.spans[trace] {
		names = append(names, s.GetName())
	}
	c.mu.Unlock()
	if strings.Count(strings.Join(names, " "), acquire) != calls {
		t.Errorf("the trace has %q, want %d calls", names, calls)
	}
}

// committed waits for the commit of a trace, and says whether it is right below a span.
func (c *collector) committed(t *testing.T, trace, parent string) (below bool) {
	t.Helper()
	harness.WaitFor(t, 20*time.Second, "a commit in the trace", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.spans[trace] {
			if s.GetName() == "commit" {
				below = hex.EncodeToString(s.GetParentSpanId()) == parent
				return true
			}
		}
		return false
	})
	return below
}
