// Package tracing sends the spans of a node to a collector that speaks OTLP over gRPC.
//
// It is the one place that knows OpenTelemetry's SDK: all others make spans by its API,
// with the provider that they are given. Nothing here is global: no provider, no
// propagator, no error handler.
//
// A collector that is slow or gone costs calls nothing. Spans that have ended wait in a
// bounded queue; what comes beyond is dropped and counted, and so is what could not be
// sent within a few seconds.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const (
	// maxWaiting bounds the spans that have not been sent, some 10 MiB of them.
	maxWaiting = 8192
	// A message has at most so many spans, and leaves at the latest after batchEvery.
	maxBatch   = 512
	batchEvery = time.Second
	// sendWithin bounds how long one is tried to be sent, tries after the first included.
	sendWithin = 5 * time.Second
	// flushWithin bounds how long a node that stops waits for a collector.
	flushWithin = 3 * time.Second
	// maxText bounds the text of an attribute, in bytes; callers choose some.
	maxText = 256
)

// Options are where spans go, and what they say of the node.
type Options struct {
	// Endpoint is the collector: http://host:port, or https:// for TLS.
	Endpoint string
	// Ratio is how many of the calls are traced whose callers did not decide, 0 to 1.
	Ratio float64
	// NodeID and Version tell the node.
	NodeID, Version string
}

// Provider makes the spans of a node, and sends them.
type Provider struct {
	trace.TracerProvider
	sdk *sdktrace.TracerProvider
}

// New returns a provider. It does not wait for the collector, nor does anybody else.
func New(opts Options, log *slog.Logger, m *Metrics) (*Provider, error) {
	exporter, err := otlptracegrpc.New(context.Background(),
		otlptracegrpc.WithEndpointURL(opts.Endpoint), otlptracegrpc.WithTimeout(sendWithin))
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", opts.Endpoint, err)
	}
	return newProvider(opts, exporter, log, m), nil
}

func newProvider(opts Options, exporter sdktrace.SpanExporter, log *slog.Logger, m *Metrics) *Provider {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	sdk := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(opts.Ratio))),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "admitd"),
			attribute.String("service.instance.id", opts.NodeID),
			attribute.String("service.version", opts.Version),
		)),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSpanProcessor(newQueue(exporter, log, m)),
	)
	return &Provider{TracerProvider: sdk, sdk: sdk}
}

// Close sends what waits, for a few seconds at most and no longer than ctx, and ends
// the connection. What is left is lost.
func (p *Provider) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := p.sdk.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}
