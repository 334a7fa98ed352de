package node

import (
	"context"
	"encoding/hex"
	"net"
	"sync"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"

	"github.com/admitd/admit/client"
)

// collected is a span as it came.
type collected struct{ trace, id, parent, name, kind, node string }

// tracesSink is a collector of traces.
type tracesSink struct {
	collector.UnimplementedTraceServiceServer
	addr string

	mu    sync.Mutex
	spans []collected
}

func startSink(t *testing.T) *tracesSink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, g := &tracesSink{addr: l.Addr().String()}, grpc.NewServer()
	collector.RegisterTraceServiceServer(g, s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

// Export implements the collector.
func (s *tracesSink) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rs := range req.GetResourceSpans() {
		node := ""
		for _, a := range rs.GetResource().GetAttributes() {
			if a.GetKey() == "service.instance.id" {
				node = a.GetValue().GetStringValue()
			}
		}
		for _, ss := range rs.GetScopeSpans() {
			for _, span := range ss.GetSpans() {
				s.spans = append(s.spans, collected{
					trace: hex.EncodeToString(span.GetTraceId()), id: hex.EncodeToString(span.GetSpanId()),
					parent: hex.EncodeToString(span.GetParentSpanId()), name: span.GetName(), kind: span.GetKind().String(), node: node,
				})
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// await waits until so many spans of a trace have come, and returns them from the
// outermost inwards.
func (s *tracesSink) await(t *testing.T, id string, root string, n int) (chain []collected) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); len(chain) < n; <-tick.C {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("of the trace %s below %s there are %v", id, root, s.spans)
		}
		chain = s.chain(id, root)
	}
	return chain
}

func (s *tracesSink) chain(id, parent string) (chain []collected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for again := true; again; {
		again = false
		for _, span := range s.spans {
			if span.trace == id && span.parent == parent {
				chain, parent, again = append(chain, span), span.id, true
			}
		}
	}
	return chain
}

// A caller's span, the node that takes the call, its way to the leader, the leader and the
// log are one trace, however the call travels. What the caller does not sample is none.
func TestOneTraceFromTheCallerToTheLog(t *testing.T) {
	sink, c := startSink(t), newTrio(t)
	for i := range c.cfgs {
		c.cfgs[i].TracesEndpoint, c.cfgs[i].TracesRatio = "http://"+sink.addr, 0
	}
	nodes := c.start(t)
	lead := leaderOf(nodes)
	taker := nodes[(lead+1)%len(nodes)]
	acquire := func(p trace.TracerProvider, opts ...client.Option) {
		t.Helper()
		cl := c.client(t, []*Node{taker}, append(opts, client.WithTracing(p))...)
		if d, err := cl.Acquire(soon(t), client.Work{Pool: "email", Tenant: "acme"}); err != nil || d.Permit == nil {
			t.Fatalf("got %v, %v", d, err)
		}
	}
	var known []string
	for way, opts := range ways {
		never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
		acquire(never, opts...)
		roots := tracetest.NewInMemoryExporter()
		always := sdktrace.NewTracerProvider(sdktrace.WithSyncer(roots))
		acquire(always, opts...)
		root := roots.GetSpans()[0]
		if err := always.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		id := root.SpanContext.TraceID().String()
		known = append(known, id)
		const method, server = "admit.v1.AdmissionService/Acquire", "SPAN_KIND_SERVER"
		want := []collected{
			{name: method, kind: server, node: taker.NodeID()},
			{name: method, kind: "SPAN_KIND_CLIENT", node: taker.NodeID()},
			{name: method, kind: server, node: nodes[lead].NodeID()},
			{name: "commit", kind: "SPAN_KIND_INTERNAL", node: nodes[lead].NodeID()},
		}
		if root.Name != method || root.SpanKind != trace.SpanKindClient {
			t.Errorf("%s: the caller's span is %s %s", way, root.SpanKind, root.Name)
		}
		for i, got := range sink.await(t, id, root.SpanContext.SpanID().String(), len(want)) {
			if got.name != want[i].name || got.kind != want[i].kind || got.node != want[i].node {
				t.Errorf("%s: span %d is %+v, want %+v", way, i, got, want[i])
			}
		}
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	for _, span := range sink.spans {
		if span.trace != known[0] && span.trace != known[1] {
			t.Errorf("nobody asked for %+v", span)
		}
	}
}
