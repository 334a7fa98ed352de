package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// complainEvery is how often it is said that the collector takes nothing.
const complainEvery = time.Minute

// Metrics count spans by what became of them.
type Metrics struct {
	spans                     *prometheus.CounterVec
	exported, failed, dropped prometheus.Counter
}

// NewMetrics returns the metrics of a node; they stay 0 where it sends no traces.
func NewMetrics() *Metrics {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "admit_trace_spans_total",
		Help: "Spans of traced calls that have ended: exported to the collector, failed to be, or dropped because too many waited for that.",
	}, []string{"outcome"})
	return &Metrics{
		spans: spans, exported: spans.WithLabelValues("exported"),
		failed: spans.WithLabelValues("failed"), dropped: spans.WithLabelValues("dropped"),
	}
}

// Collector is what a registry takes.
func (m *Metrics) Collector() prometheus.Collector { return m.spans }

// queue bounds the spans that wait to be exported, and counts all. The SDK's processor
// behind it has room for as many, so that it drops none unnoticed.
type queue struct {
	sdktrace.SpanProcessor
	metrics *Metrics
	waiting atomic.Int64
}

func newQueue(exporter sdktrace.SpanExporter, log *slog.Logger, m *Metrics) *queue {
	q := &queue{metrics: m}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(&watched{SpanExporter: exporter, queue: q, log: log},
		sdktrace.WithMaxQueueSize(maxWaiting), sdktrace.WithMaxExportBatchSize(maxBatch),
		sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(sendWithin))
	return q
}

// OnEnd takes a span that has ended. It does not block.
func (q *queue) OnEnd(s sdktrace.ReadOnlySpan) {
	if q.waiting.Add(1) > maxWaiting {
		q.waiting.Add(-1)
		q.metrics.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// watched is an exporter whose failures are counted and told to the log, now and then,
// and to no global handler. The SDK calls it from one goroutine at a time.
type watched struct {
	sdktrace.SpanExporter
	queue *queue
	log   *slog.Logger

	// said is when a failure was last told, and unsaid how many were not since.
	said   time.Time
	unsaid int
}

// ExportSpans implements sdktrace.SpanExporter.
func (w *watched) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer w.queue.waiting.Add(-int64(len(spans)))
	err := w.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		w.queue.metrics.exported.Add(float64(len(spans)))
		return nil
	}
	w.queue.metrics.failed.Add(float64(len(spans)))
	if time.Since(w.said) < complainEvery {
		w.unsaid++
		return nil
	}
	w.log.Warn("traces could not be sent", "error", err, "spans", len(spans), "not_told", w.unsaid)
	w.said, w.unsaid = time.Now(), 0
	return nil
}
