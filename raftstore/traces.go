package raftstore

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// traced is a call's part in a trace.
type traced struct {
	span trace.Span
	// proposal is the last that has a span of the call's; of the proposer.
	proposal uint64
	// wait is the span of its time in line, once it is; call.mu guards it.
	wait trace.Span
}

// below begins a span below another, by whoever made that one.
func below(parent trace.Span, name string, attrs ...attribute.KeyValue) trace.Span {
	_, span := parent.TracerProvider().Tracer("github.com/admitd/admit/raftstore").
		Start(trace.ContextWithSpan(context.Background(), parent), name, trace.WithAttributes(attrs...))
	return span
}

// endSpan ends a span, if there is one. What failed is told elsewhere.
func endSpan(span trace.Span, err error) {
	if span == nil {
		return
	}
	if err != nil {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// beginSpans begins a span for each traced call that has a part in the entry.
func (p *proposal) beginSpans(term uint64) {
	for _, it := range p.items {
		t := it.call.traced
		if t == nil || t.proposal == p.id {
			continue
		}
		t.proposal = p.id
		p.spans = append(p.spans, below(t.span, "commit",
			attribute.Int64("admit.term", int64(term)), attribute.Int("admit.batch_size", len(p.items))))
	}
}

// endSpans ends those spans: the entry was applied, or it failed.
func (p *proposal) endSpans(index uint64, err error) {
	for _, span := range p.spans {
		if err == nil {
			span.SetAttributes(attribute.Int64("admit.index", int64(index)))
		}
		endSpan(span, err)
	}
}

// beginWait begins the span of a call's wait in line: one, of however many items.
func (c *call) beginWait() {
	if c.traced == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.traced.wait == nil && !c.gone {
		c.traced.wait = below(c.traced.span, "wait")
	}
}

// endWaitLocked ends it with the call. That twice is as good as once.
func (c *call) endWaitLocked() {
	if c.traced != nil {
		endSpan(c.traced.wait, nil)
	}
}

// beginWait begins the span of a poll's wait for its turn, if it is traced and waits.
func (p *parkedPoll) beginWait() trace.Span {
	if p.req.Span == nil {
		return nil
	}
	select {
	case <-p.turn:
		return nil
	default:
		return below(p.req.Span, "wait")
	}
}
