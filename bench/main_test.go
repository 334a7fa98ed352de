package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/echo"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// TestMain lets the tests' program be the servers, as the real one is.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "serve" {
		if err := servers[os.Args[2]](os.Args[3:]); err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func grant(context.Context) (echo.Answers, error) {
	return echo.Answers{
		Acquire: &admitv1.AcquireResponse{Decision: &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: &admitv1.Permit{Token: "t"}}}},
		Release: &admitv1.ReleaseResponse{Result: admitv1.LeaseResult_LEASE_RESULT_RELEASED},
	}, nil
}

// TestEchoesTakeTurns runs all that is asked of an echo for a moment.
func TestEchoesTakeTurns(t *testing.T) {
	a, b := echo.New(grant), echo.New(grant)
	row := func(id string, open func(calls.Target) system.Open) run.Row {
		return run.Row{ID: id, Callers: 4, Admit: run.Side{System: a, Open: open(a.Target)}, Peer: run.Side{System: b, Open: open(b.Target)}}
	}
	plan := &run.Plan{Rounds: 3, For: 30 * time.Millisecond, Dir: t.TempDir(), Log: t.Output()}
	res, err := plan.Run(t.Context(), run.Group{ID: "echo", Systems: []system.System{a, b}, Rows: []run.Row{
		row("permits", calls.Permits),
		row("session", calls.SessionPermits),
		row("tokens", calls.Tokens),
		row("token batches", func(at calls.Target) system.Open { return calls.TokenBatches(at, 5) }),
		row("permit batches", func(at calls.Target) system.Open { return calls.PermitBatches(at, 5) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range res.Rows {
		for _, s := range []struct {
			name    string
			samples int
			failed  int64
			each    int64
		}{
			{"admit", len(r.Admit.Closed) + len(r.Admit.Open), r.Admit.Closed[0].Failed, r.Admit.Closed[0].Requests / r.Admit.Closed[0].Calls},
			{"peer", len(r.Peer.Closed) + len(r.Peer.Open), r.Peer.Closed[0].Failed, r.Peer.Closed[0].Requests / r.Peer.Closed[0].Calls},
		} {
			want := int64(1)
			if strings.HasSuffix(r.ID, "batches") {
				want = 5
			}
			if s.samples != 6 || s.failed != 0 || s.each != want {
				t.Errorf("%s, %s: %d samples, %d calls failed, %d requests a call; want 6, 0, %d", r.ID, s.name, s.samples, s.failed, s.each, want)
			}
		}
	}
}

func TestPick(t *testing.T) {
	all := []run.Group{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	if got, err := pick(all, "c,a"); err != nil || len(got) != 2 || got[0].ID != "c" || got[1].ID != "a" {
		t.Errorf("picked %v (%v), want c and a", got, err)
	}
	if got, err := pick(all, ""); err != nil || len(got) != 3 {
		t.Errorf("picked %v (%v), want all", got, err)
	}
	all[1].Rows = []run.Row{{ID: "x"}, {ID: "y"}}
	if got, err := pick(all, "b/y"); err != nil || len(got) != 1 || len(got[0].Rows) != 1 || got[0].Rows[0].ID != "y" || len(all[1].Rows) != 2 {
		t.Errorf("picked %v (%v), want the row y of b alone", got, err)
	}
	if got, err := pick(all, "b/z"); err == nil {
		t.Errorf("picked %v for a row that is not there", got)
	}
	if got, err := pick(all, "a,x"); err == nil {
		t.Errorf("picked %v for a name that is not there", got)
	}
}

func TestEvenRoundsAreRefused(t *testing.T) {
	if err := (options{rounds: 4}).run(t.Context()); err == nil {
		t.Error("4 rounds were taken")
	}
}

func TestResultsKeepTheOrderOfTheGroups(t *testing.T) {
	f := &result.File{Groups: []result.Group{{ID: "gone"}, {ID: "c"}, {ID: "a"}}}
	order(f, []run.Group{{ID: "a"}, {ID: "b"}, {ID: "c"}})
	if len(f.Groups) != 2 || f.Groups[0].ID != "a" || f.Groups[1].ID != "c" {
		t.Errorf("the groups are %v, want a and c", f.Groups)
	}
}
