package server

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func debugOf(pool string, span time.Duration) *admitv1.DebugPoolRequest {
	return &admitv1.DebugPoolRequest{Pool: pool, Duration: durationpb.New(span)}
}

// with returns the lines of a log that have all of these.
func (b *lockedBuffer) with(parts ...string) (found []string) {
	for _, line := range b.lines() {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			found = append(found, line)
		}
	}
	return found
}

// Each decision about the pool is a line, whichever way it was asked for; others are not,
// and nothing is before that is wanted, nor after.
func TestADebuggedPoolIsLogged(t *testing.T) {
	h, _ := startWithPolicy(t)
	acquire := func(in *admitv1.AcquireRequest) *admitv1.Decision {
		t.Helper()
		resp, err := h.Acquire(soon(t), in)
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetDecision()
	}
	acquire(otp("before"))
	got, err := h.status.DebugPool(soon(t), debugOf("email", time.Minute))
	if err != nil || got.GetNodeId() != "n1" || got.GetDuration().AsDuration() != time.Minute {
		t.Fatalf("got %v, %v", got, err)
	}
	token := acquire(otp("acme")).GetPermit().GetToken()
	for range 2 {
		acquire(&admitv1.AcquireRequest{Pool: "email", Tenant: "trial", Category: "otp"})
	}
	if _, err := h.Renew(soon(t), &admitv1.RenewRequest{Tokens: []string{token}}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: token}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.due.Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{{Tenant: "acme", Key: "very-private", Category: "otp"}}}); err != nil {
		t.Fatal(err)
	}
	h.session(t, soon(t)).ask(otp("streaming"))
	for _, want := range [][]string{
		{"op=Acquire", "pool=email", "tenant=acme", "category=otp", "decision=GRANTED", "lane=", "cost=1", "index="},
		{"op=Acquire", "tenant=trial", "decision=SHED", "reason=TENANT_CAP", "limit=", "used=", "capacity="},
		{"op=Renew", "tenant=acme", "permits=1", "not_renewed=0"},
		{"op=Release", "tenant=acme", "decision=RELEASED"},
		{"op=NextDue", "claims="},
		{"op=Schedule", "entries=1"},
		{"op=Acquire", "tenant=streaming", "decision=GRANTED"},
	} {
		if found := h.log.with(append(want, "msg=decided", "level=INFO")...); len(found) != 1 {
			t.Errorf("%v: got %d in %v", want, len(found), h.log.with("msg=decided"))
		}
	}
	if found := append(h.log.with("tenant=before"), append(h.log.with(token), h.log.with("very-private")...)...); len(found) > 0 {
		t.Errorf("got %v", found)
	}
	if _, err := h.status.DebugPool(soon(t), debugOf("email", 0)); err != nil {
		t.Fatal(err)
	}
	acquire(otp("after"))
	if len(h.log.with("tenant=after")) > 0 || len(h.log.with("no longer logging", "pool=email", "it was ended")) != 1 {
		t.Errorf("got %v", h.log.lines())
	}
}

func TestWhatCannotBeDebugged(t *testing.T) {
	h, store := startWithPolicy(t)
	for name, c := range map[string]struct {
		in   *admitv1.DebugPoolRequest
		want told
	}{
		"no pool":         {&admitv1.DebugPoolRequest{}, told{code: codes.InvalidArgument, fields: "pool"}},
		"too long":        {debugOf("email", time.Hour+1), told{code: codes.InvalidArgument, fields: "duration"}},
		"before now":      {debugOf("email", -1), told{code: codes.InvalidArgument, fields: "duration"}},
		"an unknown pool": {debugOf("nowhere", time.Minute), told{code: codes.NotFound, reason: "POOL_NOT_FOUND"}},
	} {
		_, err := h.status.DebugPool(soon(t), c.in)
		if got := tell(t, err); got.code != c.want.code || got.fields != c.want.fields || c.want.reason != "" && got.reason != c.want.reason {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	store.mu.Lock()
	store.fail = raftstore.ErrNoQuorum
	store.mu.Unlock()
	_, err := h.status.DebugPool(soon(t), debugOf("email", time.Minute))
	if got := tell(t, err); got.reason != "NO_QUORUM" {
		t.Errorf("got %+v", got)
	}
}

// It is the leader that logs, whoever is asked, and it stops with its lead.
func TestTheLeaderIsDebugged(t *testing.T) {
	p := startPair(t, inPlain)
	if _, err := p.status.DebugPool(soon(t), debugOf("email", time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(soon(t), otp("acme")); err != nil {
		t.Fatal(err)
	}
	if there, here := p.leader.log.with("msg=decided"), p.log.with("msg=decided"); len(there) != 1 || len(here) != 0 {
		t.Errorf("the leader logs %v, the other %v", there, here)
	}
	p.lead.mu.Lock()
	p.lead.leader = raftstore.Leader{NodeID: "n2"}
	p.lead.mu.Unlock()
	p.lead.setReady(true)
	until(t, "the leader says that it stops", func() bool { return len(p.leader.log.with("no longer logging", "does not lead")) == 1 })
	if p.leader.server.router.debug.pools.Load() != nil {
		t.Error("it goes on")
	}
}

// debugging runs a test of a debugger on virtual time.
func debugging(t *testing.T, test func(t *testing.T, d *debugger, decide func(pool string, n int), log *lockedBuffer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &lockedBuffer{}
		d := &debugger{log: slog.New(slog.NewTextHandler(log, nil))}
		decide := func(pool string, n int) {
			op := &admission.ReportDemand{Pool: pool, Tenant: "acme"}
			for range n {
				d.decided(t.Context(), []raftstore.Request{{Op: op}}, []raftstore.Answer{{Result: &admission.ReportResult{}}}, nil)
			}
		}
		test(t, d, decide, log)
		d.close()
	})
}

func TestDebuggingIsBounded(t *testing.T) {
	debugging(t, func(t *testing.T, d *debugger, decide func(string, int), log *lockedBuffer) {
		for i := range maxDebugged {
			if err := d.watch(t.Context(), fmt.Sprintf("p%d", i), time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.watch(t.Context(), "one more", time.Minute); err == nil || !strings.Contains(err.Error(), "16 other pools") {
			t.Errorf("got %v", err)
		}
		if err := d.watch(t.Context(), "p3", time.Minute); err != nil {
			t.Errorf("one that is logged already: %v", err)
		}
		decide("p1", 70)
		decide("p2", 90)
		if got := len(log.with("msg=decided")); got != maxDebugLines {
			t.Errorf("%d lines in a second", got)
		}
		time.Sleep(time.Second)
		decide("p1", 1)
		if got := log.with("left_out=60"); len(got) != 1 || len(log.with("msg=decided")) != maxDebugLines+1 {
			t.Errorf("got %v", log.with("left_out"))
		}
		decide("p1", maxDebugLines)
		d.endAll("enough")
		if len(log.with("left_out=1")) != 1 || len(log.with("no longer", "enough")) != maxDebugged {
			t.Errorf("got %v", log.with("left_out"))
		}
	})
}

func TestDebuggingEndsInTime(t *testing.T) {
	debugging(t, func(t *testing.T, d *debugger, decide func(string, int), log *lockedBuffer) {
		for _, span := range []time.Duration{time.Minute, 2 * time.Minute} { // the second time anew
			if err := d.watch(t.Context(), "mail", span); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2*time.Minute - 1)
		decide("mail", 1)
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		decide("mail", 1)
		if len(log.with("msg=decided")) != 1 || len(log.with("no longer", "its time is up")) != 1 || d.pools.Load() != nil {
			t.Errorf("got %v", log.lines())
		}
		d.close()
		if err := d.watch(t.Context(), "mail", time.Minute); err == nil {
			t.Error("it begins though the node stops")
		}
	})
}

// Failures are told too, but not that another node is to decide.
func TestFailuresOfDebuggedPools(t *testing.T) {
	debugging(t, func(t *testing.T, d *debugger, _ func(string, int), log *lockedBuffer) {
		if err := d.watch(t.Context(), "mail", time.Minute); err != nil {
			t.Fatal(err)
		}
		reqs := []raftstore.Request{{Op: &admission.Acquire{Pool: "mail", Tenant: "acme"}}, {Op: &admission.Acquire{Pool: "other"}}}
		for _, err := range []error{raftstore.ErrOutcomeUnknown, context.Canceled, &raftstore.NotLeaderError{}} {
			d.decided(t.Context(), reqs, nil, err)
		}
		if got := log.with("msg=decided", "error="); len(got) != 2 {
			t.Errorf("got %v", got)
		}
	})
}

// A call costs nothing more where no pool is logged.
func TestNoPoolIsDebuggedForNothing(t *testing.T) {
	d := &debugger{log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil))}
	reqs := []raftstore.Request{{Op: &admission.Acquire{Pool: "mail", Tenant: "acme"}}}
	answers := []raftstore.Answer{{}}
	if n := testing.AllocsPerRun(100, func() { d.decided(t.Context(), reqs, answers, nil) }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
