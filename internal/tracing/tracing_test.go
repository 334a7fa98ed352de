package tracing

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// exporter does what a test says, and keeps what it was given.
type exporter struct {
	export func(ctx context.Context) error

	mu    sync.Mutex
	spans []sdktrace.ReadOnlySpan
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.export(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spans = append(e.spans, spans...)
	return nil
}

func (e *exporter) Shutdown(context.Context) error { return nil }

func spans(p *Provider, n int) {
	for range n {
		_, span := p.Tracer("test").Start(context.Background(), "span")
		span.End()
	}
}

func counts(t *testing.T, m *Metrics, exported, failed, dropped float64) {
	t.Helper()
	for c, want := range map[prometheus.Counter]float64{m.exported: exported, m.failed: failed, m.dropped: dropped} {
		if got := testutil.ToFloat64(c); got != want {
			t.Errorf("exported, failed, dropped: %v, %v, %v; want %v, %v, %v", testutil.ToFloat64(m.exported),
				testutil.ToFloat64(m.failed), testutil.ToFloat64(m.dropped), exported, failed, dropped)
			return
		}
	}
}

// What a slow collector has not taken is bounded; nobody waits for it.
func TestSpansBeyondTheQueueAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, m := make(chan struct{}), NewMetrics()
		e := &exporter{export: func(context.Context) error { <-goOn; return nil }}
		p := newProvider(Options{Ratio: 1, NodeID: "n1", Version: "v1"}, e, slog.New(slog.DiscardHandler), m)
		spans(p, maxBatch)
		synctest.Wait()
		spans(p, maxWaiting+10-maxBatch)
		counts(t, m, 0, 0, 10)
		close(goOn)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		counts(t, m, maxWaiting, 0, 10)
		if got := e.spans[0].Resource().String(); got != "service.instance.id=n1,service.name=admitd,service.version=v1" {
			t.Errorf("they are of %s", got)
		}
	})
}

func TestOnlySomeCallsAreTraced(t *testing.T) {
	m := NewMetrics()
	p := newProvider(Options{}, &exporter{export: func(context.Context) error { return nil }}, slog.New(slog.DiscardHandler), m)
	spans(p, 100)
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	counts(t, m, 0, 0, 0)
}

// A collector that is away is a line in the log now and then, and no more.
func TestFailuresAreToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := NewMetrics()
		p := newProvider(Options{Ratio: 1}, &exporter{export: func(context.Context) error { return errors.New("nobody there") }},
			slog.New(slog.NewTextHandler(&log, nil)), m)
		for range 70 {
			spans(p, 1)
			time.Sleep(batchEvery)
			synctest.Wait()
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		counts(t, m, 0, 70, 0)
		if got := strings.Count(log.String(), "nobody there"); got != 2 || !strings.Contains(log.String(), "not_told=59") {
			t.Errorf("got %d lines: %s", got, log.String())
		}
	})
}

// A collector that hangs does not hold up the end for long.
func TestCloseWaitsOnlySoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &exporter{export: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		p := newProvider(Options{Ratio: 1}, e, slog.New(slog.DiscardHandler), NewMetrics())
		spans(p, 10*maxBatch)
		began := time.Now()
		if err := p.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != flushWithin {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute) // until what it left behind has given up, too
	})
}
