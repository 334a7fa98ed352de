package raftstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/admitd/admit/admission"
)

func acquireOp(tenant string) admission.Op {
	return &admission.Acquire{Pool: "mail", Tenant: tenant, Cost: 1}
}

func releaseOp() admission.Op { return &admission.Release{Outcome: admission.OutcomeDone} }

func callFor(t testing.TB, ctx context.Context, ops ...admission.Op) *call {
	t.Helper()
	reqs := make([]Request, len(ops))
	for i, op := range ops {
		reqs[i].Op = op
	}
	c, err := newCall(ctx, reqs, make([]Answer, len(reqs)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustPush(t testing.TB, q *queue, ops ...admission.Op) *call {
	t.Helper()
	c := callFor(t, t.Context(), ops...)
	if err := q.push(c); err != nil {
		t.Fatal(err)
	}
	return c
}

// order returns the classes and tenants of an entry's items.
func order(items []*item) string {
	var b strings.Builder
	for _, it := range items {
		fmt.Fprintf(&b, "%s:%s ", classNames[it.class], it.flow.tenant)
	}
	return strings.TrimSpace(b.String())
}

func TestEntriesTakeTheUrgentFirst(t *testing.T) {
	var q queue
	mustPush(t, &q, &admission.Schedule{Pool: "mail", Entries: []admission.EntrySpec{{Tenant: "a", Key: "k"}}})
	mustPush(t, &q, acquireOp("a"))
	mustPush(t, &q, releaseOp())
	mustPush(t, &q, admission.Pause{Pool: "mail", Kind: admission.TargetTenant, Name: "a"})
	items, _ := q.fill(noon)
	if got, want := order(items), "control: leases: grants:a schedules:a"; got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

func TestTenantsTakeTurns(t *testing.T) {
	var q queue
	for range 3 {
		mustPush(t, &q, acquireOp("noisy"))
	}
	mustPush(t, &q, acquireOp("quiet"))
	mustPush(t, &q, acquireOp("calm"), acquireOp("calm"))
	items, _ := q.fill(noon)
	want := "grants:noisy grants:quiet grants:calm grants:noisy grants:calm grants:noisy"
	if got := order(items); got != want {
		t.Errorf("order %q, want %q", got, want)
	}
	mustPush(t, &q, acquireOp("quiet"), acquireOp("quiet"))
	if items, _ = q.fill(noon); order(items) != "grants:quiet grants:quiet" {
		t.Errorf("after all had left: %q", order(items))
	}
}

func TestEntriesAreBounded(t *testing.T) {
	var q queue
	const ops = 3*maxEntryRows + 1
	for range ops {
		mustPush(t, &q, acquireOp("a"))
	}
	taken := 0
	for taken < ops {
		items, bytes := q.fill(noon)
		if len(items) == 0 || len(items) > maxEntryRows || bytes > maxEntryBytes {
			t.Fatalf("an entry of %d operations and %d bytes", len(items), bytes)
		}
		taken += len(items)
	}
}

func TestAnOperationLargerThanAnEntryGetsItsOwn(t *testing.T) {
	var q queue
	huge := admission.ApplyPolicy{Policy: admission.Policy{Pools: []admission.PoolPolicy{{
		Name: strings.Repeat("x", maxEntryBytes+1),
	}}}}
	mustPush(t, &q, huge)
	mustPush(t, &q, acquireOp("a"))
	first, _ := q.fill(noon)
	second, _ := q.fill(noon)
	if order(first) != "control:" || order(second) != "grants:a" {
		t.Errorf("entries %q and %q", order(first), order(second))
	}
}

func TestFullQueuesRefuseWholeCallsOfTheirClassOnly(t *testing.T) {
	var q queue
	for range classLoads[grants] - 1 {
		mustPush(t, &q, acquireOp("a"))
	}
	full := (*OverloadedError)(nil)
	err := q.push(callFor(t, t.Context(), acquireOp("a"), acquireOp("b")))
	if !errors.As(err, &full) || full.Queue != "grants" || full.RetryAfter <= 0 {
		t.Fatalf("a call over the limit: %v", err)
	}
	mustPush(t, &q, acquireOp("b"))
	mustPush(t, &q, releaseOp())
}

func TestCallersThatHaveGoneAreDroppedBeforeTheLog(t *testing.T) {
	var q queue
	ctx, cancel := context.WithCancel(t.Context())
	late := callFor(t, ctx, acquireOp("a"), acquireOp("a"))
	if err := q.push(late); err != nil {
		t.Fatal(err)
	}
	mustPush(t, &q, acquireOp("b"))
	cancel()
	if items, _ := q.fill(noon); order(items) != "grants:b" {
		t.Errorf("the entry has %q", order(items))
	}
	if _, err := late.wait(); err != context.Canceled {
		t.Errorf("the caller was told %v", err)
	}
}

func TestACallThatIsPartlyInTheLogHasNoKnownOutcome(t *testing.T) {
	c := callFor(t, t.Context(), acquireOp("a"), acquireOp("a"))
	c.seal(noon)
	c.finish()
	c.fail(ErrNoQuorum, false)
	if _, err := c.wait(); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("told %v", err)
	}
}

func TestACallThatRaftRefusedIsKnownNotToBeDone(t *testing.T) {
	c := callFor(t, t.Context(), acquireOp("a"))
	c.seal(noon)
	c.fail(ErrNoQuorum, true)
	if _, err := c.wait(); !errors.Is(err, ErrNoQuorum) || errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("told %v", err)
	}
}

func TestSchedulesAreSplitInOrder(t *testing.T) {
	s := &admission.Schedule{Pool: "mail"}
	for i := range 1000 {
		s.Entries = append(s.Entries, admission.EntrySpec{Tenant: fmt.Sprintf("t%d", i%7), Key: fmt.Sprint(i)})
	}
	var q queue
	c := mustPush(t, &q, s)
	items, _ := q.fill(noon)
	if len(items) < 1000/partEntries {
		t.Fatalf("%d parts", len(items))
	}
	next := 0
	var result admission.Result
	for _, it := range items {
		if it.offset != next || it.rows > partEntries {
			t.Fatalf("a part of %d begins at %d, want %d", it.rows, it.offset, next)
		}
		next += it.rows
		part := &admission.ScheduleResult{Entries: make([]admission.ScheduledEntry, it.rows)}
		for i := range part.Entries {
			part.Entries[i] = admission.ScheduledEntry{Status: admission.Scheduled, Reason: admission.Reason(it.offset / partEntries)}
		}
		result = it.whole.add(it.offset, part, Place{Index: 9, Position: it.offset / partEntries})
	}
	entries := result.(*admission.ScheduleResult).Entries
	for i, e := range entries {
		if e.Status != admission.Scheduled || int(e.Reason) != i/partEntries {
			t.Fatalf("entry %d has the result of part %d", i, e.Reason)
		}
	}
	for i, p := range items[0].whole.places {
		if p != (Place{Index: 9, Position: i}) {
			t.Errorf("part %d was decided at %v", i, p)
		}
	}
	if len(entries) != 1000 || len(c.answers) != 1 {
		t.Errorf("%d results in %d answers", len(entries), len(c.answers))
	}
}

func TestErrorsOfScheduleParts(t *testing.T) {
	gone := &admission.Error{Reason: admission.PoolNotFound}
	whole := func(parts ...*admission.ScheduleResult) *admission.ScheduleResult {
		w := &wholeSchedule{parts: len(parts), left: len(parts)}
		w.result.Entries = make([]admission.ScheduledEntry, len(parts))
		var r admission.Result
		for i, p := range parts {
			r = w.add(i, p, Place{})
		}
		return r.(*admission.ScheduleResult)
	}
	fine := &admission.ScheduleResult{Entries: []admission.ScheduledEntry{{Status: admission.Scheduled}}}
	bad := &admission.ScheduleResult{Err: gone}
	if r := whole(bad, bad); r.Err != gone || r.Entries != nil {
		t.Errorf("all parts failed: %+v", r)
	}
	r := whole(fine, bad)
	if r.Err != nil || r.Entries[0].Status != admission.Scheduled || r.Entries[1].Err != gone {
		t.Errorf("one part failed: %+v", r)
	}
}
