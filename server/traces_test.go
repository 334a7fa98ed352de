package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
	sampled      = "00-" + callersTrace + "-" + callersSpan + "-01"
	unsampled    = "00-" + callersTrace + "-" + callersSpan + "-00"
)

// recorder has the spans of servers, in the order in which they ended.
type recorder struct{ *tracetest.InMemoryExporter }

// record returns options with which a server's spans are kept; of the calls whose caller
// does not decide it traces that part.
func record(t *testing.T, opts Options, ratio float64) (Options, recorder) {
	t.Helper()
	r := recorder{tracetest.NewInMemoryExporter()}
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(r), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))))
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	opts.Traces = p
	return opts, r
}

// chain returns the spans from the outermost inwards: each is the parent of the next.
func (r recorder) chain(t *testing.T, want int) []tracetest.SpanStub {
	t.Helper()
	left := r.GetSpans()
	if len(left) != want {
		t.Fatalf("there are %d spans, want %d: %v", len(left), want, names(left))
	}
	var chain []tracetest.SpanStub
	parent := callersSpan
	for range want {
		found := false
		for _, s := range left {
			if s.Parent.SpanID().String() == parent && s.SpanContext.TraceID().String() == callersTrace {
				chain, parent, found = append(chain, s), s.SpanContext.SpanID().String(), true
				break
			}
		}
		if !found {
			t.Fatalf("no span is below %s in %v", parent, names(left))
		}
	}
	return chain
}

func names(spans tracetest.SpanStubs) (out []string) {
	for _, s := range spans {
		out = append(out, s.SpanKind.String()+" "+s.Name)
	}
	return out
}

// says checks attributes of a span: what is given, and of the rest nothing.
func says(t *testing.T, s tracetest.SpanStub, want map[string]any) {
	t.Helper()
	got := map[string]any{}
	for _, a := range s.Attributes {
		got[string(a.Key)] = a.Value.AsInterface()
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s says %s is %v, want %v", s.Name, k, got[k], v)
		}
	}
	for k := range got {
		if _, told := want[k]; !told {
			t.Errorf("%s says %s too", s.Name, k)
		}
	}
}

func tracedBy(ctx context.Context, traceparent string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", traceparent)
}

// The call is seen where it was taken, on its way, and at the leader, and the store is
// told of it there.
func TestACallIsTracedToTheLeader(t *testing.T) {
	opts, r := record(t, inPlain, 0)
	p := startPair(t, opts)
	granted, err := p.Acquire(tracedBy(soon(t), sampled), otp("acme"))
	if err != nil {
		t.Fatal(err)
	}
	c := r.chain(t, 3)
	if c[0].SpanKind != trace.SpanKindServer || c[1].SpanKind != trace.SpanKindClient || c[2].SpanKind != trace.SpanKindServer {
		t.Errorf("got %v", names(c))
	}
	method := map[string]any{"rpc.system": "grpc", "rpc.service": "admit.v1.AdmissionService", "rpc.method": "Acquire", "rpc.grpc.status_code": int64(0)}
	plus := func(more map[string]any) map[string]any {
		for k, v := range method {
			more[k] = v
		}
		return more
	}
	says(t, c[0], plus(map[string]any{"admit.pool": "email", "admit.tenant": "acme", "admit.category": "otp"}))
	says(t, c[1], plus(map[string]any{"server.address": p.addr}))
	says(t, c[2], plus(map[string]any{
		"admit.pool": "email", "admit.tenant": "acme", "admit.category": "otp", "admit.decision": "GRANTED",
		"admit.lane": granted.GetDecision().GetPermit().GetLane(), "admit.index": int64(granted.GetDecided().GetIndex()),
	}))
	last := p.lead.seen[len(p.lead.seen)-1]
	if last.Span == nil || last.Span.SpanContext().SpanID() != c[2].SpanContext.SpanID() {
		t.Errorf("the store was told of %v", last.Span)
	}
}

func TestACallOfASessionIsTracedToTheLeader(t *testing.T) {
	opts, r := record(t, inPlain, 1)
	p := startPair(t, opts)
	s := p.session(t, soon(t))
	traced := call(otp("acme"))
	traced.Id, traced.Traceparent = 1, sampled
	beside := call(otp("acme"))
	beside.Id = 2
	garbage := call(otp("acme"))
	garbage.Id, garbage.Traceparent = 3, sampled+strings.Repeat("-00", 40)
	if err := s.stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{traced, beside, garbage}}); err != nil {
		t.Fatal(err)
	}
	for id := range uint64(3) {
		s.answer(id + 1)
	}
	c := r.chain(t, 3)
	if c[0].SpanKind != trace.SpanKindServer || c[1].SpanKind != trace.SpanKindClient || c[2].SpanKind != trace.SpanKindServer {
		t.Errorf("got %v", names(c))
	}
}

// A caller that does not sample is followed; one that says nothing leaves it to the node.
func TestWhoDecidesWhatIsTraced(t *testing.T) {
	for name, c := range map[string]struct {
		told  []string
		ratio float64
		want  int
	}{
		"the caller samples":       {[]string{sampled}, 0, 1},
		"the caller does not":      {[]string{unsampled}, 1, 0},
		"nobody":                   {nil, 0, 0},
		"the node":                 {nil, 1, 1},
		"what is no traceparent":   {[]string{"00-0-0-01"}, 0, 0},
		"who says two things":      {[]string{sampled, sampled}, 0, 0},
		"the node, after nonsense": {[]string{"?"}, 1, 1},
	} {
		opts, r := record(t, Options{}, c.ratio)
		store := newFakeStore()
		h := startWith(t, store, opts, insecure.NewCredentials())
		ctx := soon(t)
		for _, told := range c.told {
			ctx = tracedBy(ctx, told)
		}
		_, err := h.Acquire(ctx, otp("acme"))
		if got := tell(t, err); got.reason != "POOL_NOT_FOUND" {
			t.Fatalf("%s: got %+v", name, got)
		}
		if got := r.GetSpans(); len(got) != c.want {
			t.Errorf("%s: there are %d spans, want %d", name, len(got), c.want)
		}
		if traced := store.seen[0].Span != nil; traced != (c.want == 1) {
			t.Errorf("%s: the store is told of a span: %v", name, traced)
		}
	}
}

// A span is at fault where the node is, and tells no more than the code.
func TestSpansOfCallsThatFail(t *testing.T) {
	opts, r := record(t, Options{}, 1)
	store := newFakeStore()
	h := startWith(t, store, opts, insecure.NewCredentials())
	for _, c := range []struct {
		fail  error
		code  int64
		fault bool
	}{
		{nil, 5, false}, // there is no such pool
		{raftstore.ErrNoQuorum, 14, true},
	} {
		store.fail = c.fail
		r.Reset()
		_, _ = h.Acquire(soon(t), otp("acme"))
		s := r.GetSpans()[0]
		if fault := s.Status.Code == otelcodes.Error; fault != c.fault || s.Status.Description != "" {
			t.Errorf("%v: got %+v", c.fail, s.Status)
		}
		set := attribute.NewSet(s.Attributes...)
		if got, _ := set.Value("rpc.grpc.status_code"); got.AsInt64() != c.code {
			t.Errorf("%v: the code is %d", c.fail, got.AsInt64())
		}
	}
}

// Probes of health are no calls that anybody traces, and who is not known makes no spans.
func TestWhatIsNotTraced(t *testing.T) {
	opts, r := record(t, Options{Guard: fakeGuard("secret")}, 1)
	h := startWith(t, newFakeStore(), opts, insecure.NewCredentials())
	if _, err := grpc_health_v1.NewHealthClient(h.conn).Check(tracedBy(soon(t), sampled), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err := h.Acquire(tracedBy(soon(t), sampled), otp("acme"))
	if got := tell(t, err); got.reason != "UNAUTHENTICATED" {
		t.Fatalf("got %+v", got)
	}
	if got := r.GetSpans(); len(got) > 0 {
		t.Errorf("there are %v", names(got))
	}
}

func TestCallsOverHTTPAreTraced(t *testing.T) {
	opts, r := record(t, Options{}, 0)
	h := startWith(t, newFakeStore(), opts, insecure.NewCredentials())
	req := httptest.NewRequest(http.MethodPost, admitv1.StatusService_QueueHealth_FullMethodName, strings.NewReader(`{"pool":"email"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("traceparent", sampled)
	h.server.HTTP(nil).ServeHTTP(httptest.NewRecorder(), req)
	if c := r.chain(t, 1); c[0].Name != "admit.v1.StatusService/QueueHealth" {
		t.Errorf("got %v", names(c))
	}
}

// A session that is lost takes the spans of its calls along, in good order.
func TestCallsOfALostSessionEnd(t *testing.T) {
	opts, r := record(t, Options{}, 0)
	store := newFakeStore()
	store.hold = holdWaits
	h := startWith(t, store, opts, insecure.NewCredentials())
	ctx, cancel := context.WithCancel(t.Context())
	s := h.session(t, ctx)
	lost := call(waiting("acme"))
	lost.Id, lost.Traceparent = 1, sampled
	if err := s.stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{lost}}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is in line", func() bool { return store.inLine() == 1 })
	cancel()
	until(t, "its span has ended", func() bool { return len(r.GetSpans()) == 1 })
	set := attribute.NewSet(r.GetSpans()[0].Attributes...)
	if code, _ := set.Value("rpc.grpc.status_code"); code.AsInt64() != 1 {
		t.Errorf("it ended with %d", code.AsInt64())
	}
}

// Where nothing is traced a call pays nothing for it, whatever its caller says.
func TestNoTracesCostNothing(t *testing.T) {
	off := newTraces(nil)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("traceparent", sampled))
	n := testing.AllocsPerRun(100, func() {
		ctx, span := off.taken(ctx, admitv1.AdmissionService_Acquire_FullMethodName, nil)
		way := off.onward(ctx, admitv1.AdmissionService_Acquire_FullMethodName, "n1")
		endOnward(way, nil)
		endCall(span, nil, nil)
	})
	if n != 0 || off.carried(ctx, sampled, admitv1.AdmissionService_Acquire_FullMethodName, nil) != nil {
		t.Errorf("it allocates %v times", n)
	}
}

// The line of a call that is traced says where to look.
func TestTheLogNamesTheTrace(t *testing.T) {
	opts, _ := record(t, Options{}, 0)
	h := startWith(t, newFakeStore(), opts, insecure.NewCredentials())
	_, _ = h.Acquire(tracedBy(soon(t), sampled), otp("acme"))
	if line := strings.Join(h.log.lines(), "\n"); !strings.Contains(line, "trace_id="+callersTrace) {
		t.Errorf("got %s", line)
	}
}
