package client

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// WithTracing makes a span of each call, tries again each of their own, below the span in
// the call's context, and tells the node where it is: what nodes do for a call that is
// sampled is then in the same trace. Calls on a session are spans as others are. The
// spans say which call it was and how it ended.
func WithTracing(p trace.TracerProvider) Option {
	return func(c *config) { c.traces = &traces{p.Tracer("github.com/admitd/admit/client")} }
}

// traceHeader is where a place in a trace is told, as W3C writes it.
const traceHeader = "traceparent"

// traces makes the spans of calls; nil makes none.
type traces struct{ tracer trace.Tracer }

// unary goes round calls that go by themselves.
func (t *traces) unary(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
) error {
	if !strings.HasPrefix(method, "/admit.") {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	span, place := t.begin(ctx, method)
	if place != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, traceHeader, place)
	}
	err := invoke(ctx, method, req, reply, conn, opts...)
	endSpan(span, err)
	return err
}

// carry begins the span of a call on a session, and has the call tell where that is if
// it is sampled, be it here or by who calls: a provider that makes no spans passes the
// caller's place on.
func (t *traces) carry(ctx context.Context, call *admitv1alpha1.SessionCall) trace.Span {
	if t == nil {
		return nil
	}
	span, place := t.begin(ctx, methodOf(call))
	if span.SpanContext().IsSampled() {
		call.Traceparent = place
	}
	return span
}

// begin begins the span of a call, and returns its place as others are told of it.
func (t *traces) begin(ctx context.Context, method string) (trace.Span, string) {
	service, name, _ := strings.Cut(method[1:], "/")
	ctx, span := t.tracer.Start(ctx, method[1:], trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("rpc.system", "grpc"), attribute.String("rpc.service", service), attribute.String("rpc.method", name)))
	place := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, place)
	return span, place[traceHeader]
}

// endSpan ends the span of a call, if there is one.
func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	span.SetAttributes(attribute.Int("rpc.grpc.status_code", int(status.Code(err))))
	if err != nil {
		span.SetStatus(otelcodes.Error, "")
	}
	span.End()
}

// methodOf is what a call on a session is elsewhere.
func methodOf(call *admitv1alpha1.SessionCall) string {
	switch call.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Renew:
		return admitv1.AdmissionService_Renew_FullMethodName
	case *admitv1alpha1.SessionCall_Release:
		return admitv1.AdmissionService_Release_FullMethodName
	default:
		return admitv1.AdmissionService_Acquire_FullMethodName
	}
}
