package admission

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An explanation says what a decision would, tells each limit once whether it blocks
// or not, counts who stands ahead as a recount does, and changes nothing.
func TestExplanationsAgreeWithDecisions(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawAcquire(t)
		op.MaxWait, op.IssuedAt, op.RequestID, op.Backlog = 0, 0, "", 0
		before := h.Snapshot().Digest()
		e, err := h.Explain(h.t, h.w, &ExplainQuery{Request: *op})
		decided := h.Decide(h.t, op)
		if !reflect.DeepEqual(err, decided.Err) {
			t.Fatalf("explained %v, decided %v", err, decided.Err)
		}
		if err != nil {
			return
		}
		if !h.pools.byName(op.Pool).shadow && !reflect.DeepEqual(e.Shed, decided.Decision.Shed) {
			t.Fatalf("explained %+v, decided %+v", e.Shed, decided.Decision.Shed)
		}
		blocking := []Limit(nil)
		for _, l := range e.Limits {
			if l.Reason != ReasonNone {
				blocking = append(blocking, l.Limit)
			}
		}
		if e.Shed != nil && !slices.Equal(blocking, e.Shed.Blocking) {
			t.Fatalf("limits that block: %+v, of the refusal: %+v", blocking, e.Shed.Blocking)
		}
		h.checkAhead(t, e)
		want(t, "digest after explaining", h.Snapshot().Digest(), before)
	})
}

// checkAhead counts again who stands before a request that is not in line.
func (h *history) checkAhead(t tester, e *Explanation) {
	p := h.pools.byName(e.Pool)
	own := p.tenant(e.Tenant).demand(p.lane(e.Lane))
	var due, waiting int64
	for _, other := range p.tenants.rows {
		d := other.demand(own.lane)
		if d == own || d.row == nil {
			continue
		}
		for src := range orderedSources {
			at := d.row.seats[src].seat
			if !at.ordered() || at.class() > own.kind() {
				continue
			}
			tag := d.row.seats[src].key
			if src == fromEntries {
				tag += d.lane.classes[at.class()].shift
			}
			if at.class() == own.kind() && tag > e.Line.Tag {
				continue
			}
			if src == fromEntries {
				due++
			} else {
				waiting++
			}
		}
	}
	want(t, "due ahead", e.Line.Due, due)
	want(t, "waiting ahead", e.Line.Waiting, waiting)
	want(t, "shown", len(e.Line.First), int(min(due+waiting, aheadShown)))
	want(t, "own waiters", e.Line.Own, own.queued[0]+own.queued[1])
}
