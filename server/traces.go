package server

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

const (
	// traceHeader is where callers tell their place in a trace, as W3C writes it.
	traceHeader = "traceparent"
	// maxTraceparent bounds that in the messages that have a field for it.
	maxTraceparent = 128
	// ours are the calls that are traced: not probes of health.
	ours = "/admit."
)

// traces makes the spans of calls. It is nil where nothing is traced, and costs nothing
// then; a span that nobody records is nil too.
type traces struct{ tracer trace.Tracer }

func newTraces(p trace.TracerProvider) *traces {
	if p == nil {
		return nil
	}
	return &traces{p.Tracer("github.com/admitd/admit/server")}
}

// taken begins the span of a call that a caller made here.
func (t *traces) taken(ctx context.Context, method string, req any) (context.Context, trace.Span) {
	if t == nil || !strings.HasPrefix(method, ours) {
		return ctx, nil
	}
	if told := metadata.ValueFromIncomingContext(ctx, traceHeader); len(told) == 1 {
		ctx = below(ctx, told[0])
	}
	return t.serve(ctx, method, req)
}

// below is a context whose spans are below that which a caller tells. What is no
// traceparent is passed over.
func below(ctx context.Context, traceparent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceHeader: traceparent})
}

// belowNode is below for what another node tells, or nobody.
func (t *traces) belowNode(ctx context.Context, traceparent string) context.Context {
	if t == nil || traceparent == "" {
		return ctx
	}
	return below(ctx, traceparent)
}

// forwarded begins the span of a call that another node took, if that one traces it.
func (t *traces) forwarded(ctx context.Context, method string, req any) (context.Context, trace.Span) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return ctx, nil
	}
	return t.serve(ctx, method, req)
}

// carried begins the span of a call of a session, if its caller traces it.
func (t *traces) carried(ctx context.Context, traceparent, method string, req any) trace.Span {
	if t == nil || traceparent == "" || len(traceparent) > maxTraceparent {
		return nil
	}
	_, span := t.forwarded(below(ctx, traceparent), method, req)
	return span
}

func (t *traces) serve(ctx context.Context, method string, req any) (context.Context, trace.Span) {
	traced, span := t.tracer.Start(ctx, method[1:], trace.WithSpanKind(trace.SpanKindServer))
	if !span.IsRecording() {
		return ctx, nil
	}
	span.SetAttributes(append(ofMethod(method), ofRequest(req)...)...)
	return traced, span
}

// onward begins the span of a call's way to the leader, if the call is traced.
func (t *traces) onward(ctx context.Context, method, leader string) trace.Span {
	if t == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return nil
	}
	_, span := t.tracer.Start(ctx, method[1:], trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(append(ofMethod(method), attribute.String("server.address", leader))...))
	return span
}

// traceparent is a span as those below it are told of it.
func traceparent(span trace.Span) string {
	if span == nil {
		return ""
	}
	out := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), out)
	return out[traceHeader]
}

// endCall ends the span of a call that was answered so. It is an error where the fault is
// not the caller's.
func endCall(span trace.Span, resp any, err error) {
	if span == nil {
		return
	}
	code, fault := spanStatus(err)
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", code))
	switch {
	case fault:
		span.SetStatus(codes.Error, "")
	case err == nil:
		span.SetAttributes(ofAnswer(resp)...)
	}
	span.End()
}

// endOnward ends the span of a call's way to the leader.
func endOnward(span trace.Span, err error) {
	if span == nil {
		return
	}
	code := 0
	if err != nil {
		code, _ = spanStatus(statusError(err, true))
		span.SetStatus(codes.Error, "")
	}
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", code))
	span.End()
}

func ofMethod(method string) []attribute.KeyValue {
	service, name, _ := strings.Cut(method[1:], "/")
	return append(make([]attribute.KeyValue, 0, 8), attribute.String("rpc.system", "grpc"),
		attribute.String("rpc.service", service), attribute.String("rpc.method", name))
}

// ofRequest is what a span tells of a request: nothing that gives a right, as tokens do,
// nor the keys that callers choose.
func ofRequest(req any) (out []attribute.KeyValue) {
	tell := func(key, value string) {
		if value != "" {
			out = append(out, attribute.String(key, value))
		}
	}
	if r, ok := req.(interface{ GetPool() string }); ok {
		tell("admit.pool", r.GetPool())
	}
	if r, ok := req.(interface{ GetTenant() string }); ok {
		tell("admit.tenant", r.GetTenant())
	}
	if r, ok := req.(interface{ GetCategory() string }); ok {
		tell("admit.category", r.GetCategory())
	}
	return out
}

// ofAnswer is what a span tells of an answer. One that comes encoded from the leader is
// told by its span there.
func ofAnswer(resp any) (out []attribute.KeyValue) {
	switch r := resp.(type) {
	case *admitv1.AcquireResponse:
		out = ofDecision(r.GetDecision())
	case *admitv1.ReleaseResponse:
		out = append(out, attribute.String("admit.decision", strings.TrimPrefix(r.GetResult().String(), "LEASE_RESULT_")))
	case *admitv1.NextDueResponse:
		out = append(out, attribute.Int("admit.claims", len(r.GetClaims())))
	}
	if r, ok := resp.(interface{ GetDecided() *admitv1.LogPosition }); ok {
		out = append(out, attribute.Int64("admit.index", int64(r.GetDecided().GetIndex())))
	}
	return out
}

func ofDecision(d *admitv1.Decision) []attribute.KeyValue {
	decision, lane, shed := "GRANTED", d.GetPermit().GetLane(), d.GetWouldShed()
	switch {
	case d.GetShed() != nil:
		decision, shed = "SHED", d.GetShed()
		lane = shed.GetLane()
	case d.GetWouldGrant() != nil:
		decision, lane = "WOULD_GRANT", d.GetWouldGrant().GetLane()
	case shed != nil:
		decision = "WOULD_SHED"
	}
	out := []attribute.KeyValue{attribute.String("admit.decision", decision), attribute.String("admit.lane", lane)}
	if shed != nil {
		out = append(out, attribute.String("admit.reason", strings.TrimPrefix(shed.GetReason().String(), "REASON_")))
	}
	return out
}

// tracedStore tells the store which calls are traced.
type tracedStore struct{ Store }

// Do implements Decider.
func (s tracedStore) Do(ctx context.Context, reqs ...raftstore.Request) ([]raftstore.Answer, error) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		for i := range reqs {
			reqs[i].Span = span
		}
	}
	return s.Store.Do(ctx, reqs...)
}

// NextDue implements Decider.
func (s tracedStore) NextDue(ctx context.Context, req raftstore.Request, maxWait time.Duration) (raftstore.Answer, error) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		req.Span = span
	}
	return s.Store.NextDue(ctx, req, maxWait)
}
