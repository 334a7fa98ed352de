package raftstore

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

// spans keeps the spans of calls.
type spans struct {
	*tracetest.InMemoryExporter
	tracer trace.Tracer
}

func newSpans(t *testing.T) spans {
	out := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(out))
	t.Cleanup(func() {
		if err := p.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return spans{out, p.Tracer("test")}
}

func (s spans) call(name string) trace.Span {
	_, span := s.tracer.Start(context.Background(), name)
	return span
}

// below returns what ended below a span, by name.
func (s spans) below(parent trace.Span) map[string][]tracetest.SpanStub {
	out := map[string][]tracetest.SpanStub{}
	for _, span := range s.GetSpans() {
		if span.Parent.SpanID() == parent.SpanContext().SpanID() {
			out[span.Name] = append(out[span.Name], span)
		}
	}
	return out
}

func ofSpan(s tracetest.SpanStub, key attribute.Key) int64 {
	set := attribute.NewSet(s.Attributes...)
	v, _ := set.Value(key)
	return v.AsInt64()
}

// A call's way through the log is one span for each entry that has a part of it.
func TestCommitsAreTraced(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	s := newSpans(t)
	call := s.call("two at once")
	acquire := func() Request {
		return Request{Op: &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}, Span: call}
	}
	answers, err := n.Do(t.Context(), acquire(), acquire())
	if err != nil {
		t.Fatal(err)
	}
	commits := s.below(call)["commit"]
	if len(commits) != 1 {
		t.Fatalf("there are %d", len(commits))
	}
	c := commits[0]
	if ofSpan(c, "admit.index") != int64(answers[0].Index) || ofSpan(c, "admit.term") != int64(n.term.Load().number) || ofSpan(c, "admit.batch_size") < 2 {
		t.Errorf("got %v", c.Attributes)
	}
	// A refusal comes from memory, and a call without a span has none.
	refused, plain := s.call("refused"), len(s.GetSpans())
	for range 4 {
		if _, err := n.Do(t.Context(), Request{Op: &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Do(t.Context(), Request{Op: &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}, Span: refused}); err != nil {
		t.Fatal(err)
	}
	if got := len(s.GetSpans()); got != plain {
		t.Errorf("%d spans ended", got-plain)
	}
}

// Time in line is a span of its own, and so is that of a poll that is held open.
func TestWaitsAreTraced(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	p := testPolicy()
	p.Pools[0].MaxActive = 1
	n.applyPolicy(p)
	s := newSpans(t)
	holder := told(t, n.ask(t.Context(), &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}))
	call, done := s.call("waits"), make(chan error, 1)
	op := waitOp("acme", "", time.Minute)
	go func() {
		_, err := n.Do(t.Context(), Request{Op: op, Span: call})
		done <- err
	}()
	n.waitWaiting(1, 1)
	if got := s.below(call); len(got["commit"]) != 1 || len(got["wait"]) != 0 {
		t.Errorf("in line there are %v", got)
	}
	release := &admission.Release{
		Token: holder.Decision.Permit.Token, Outcome: admission.OutcomeDone, ActualCost: admission.Absent, RetryAfter: admission.Absent,
	}
	if _, err := n.Do(t.Context(), Request{Op: release}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := s.below(call); len(got["wait"]) != 1 {
		t.Errorf("there are %v", got)
	}
	poll := s.call("polls")
	if _, err := n.NextDue(t.Context(), Request{Op: &admission.NextDue{Pool: "mail", MaxItems: 1}, Span: poll}, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if got := s.below(poll); len(got["wait"]) != 1 || len(got["commit"]) != 0 {
		t.Errorf("a poll in vain has %v", got)
	}
}

// What leaves the line has waited, and an entry that no quorum takes is one that failed.
func TestSpansOfWhatFails(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	p := testPolicy()
	p.Pools[0].MaxActive = 1
	n.applyPolicy(p)
	s := newSpans(t)
	told(t, n.ask(t.Context(), &admission.Acquire{Pool: "mail", Tenant: "acme", Cost: 1}))
	leaves, done := s.call("gives up"), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := n.Do(ctx, Request{Op: waitOp("acme", "", time.Minute), Span: leaves})
		done <- err
	}()
	n.waitWaiting(1, 1)
	cancel()
	if err := <-done; err == nil {
		t.Error("it was not told")
	}
	if got := s.below(leaves); len(got["wait"]) != 1 {
		t.Errorf("there are %v", got)
	}
	lost := s.call("lost")
	entry := &proposal{id: 7, items: []*item{{call: &call{traced: &traced{span: lost}}}}}
	entry.beginSpans(3)
	entry.endSpans(0, ErrOutcomeUnknown)
	if got := s.below(lost)["commit"]; len(got) != 1 || got[0].Status.Code != codes.Error {
		t.Errorf("there are %v", got)
	}
}
