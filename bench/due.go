package main

import (
	"context"
	"time"

	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/postgres"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/scale"
	"github.com/admitd/admit/bench/system"
)

const (
	// claimSize is how many entries a call asks for.
	claimSize = 10
	// claimers is how many callers do.
	claimers = 16
	// dueTenants share the backlog.
	dueTenants = 100
	// backlogPerSecond is how much is due before a round of a second: more than anybody
	// claims in it.
	backlogPerSecond = 80_000
)

func postgresGroup(a *admitd.Admit, round time.Duration) run.Group {
	backlog := max(int(round.Seconds()*backlogPerSecond), backlogPerSecond)
	due, p := calls.NewBacklog(a.Target, calls.Due, dueTenants), &postgres.Postgres{}
	row := func(id, does string, want float64, open system.Open) run.Row {
		return run.Row{
			ID: id, Title: "16 workers", Callers: claimers, OpenCallers: claimers, Want: want,
			Admit: run.Side{System: a, Does: "NextDue of 10", Open: due.Claims(claimSize), Before: due.Fill(backlog)},
			Peer:  run.Side{System: p, Does: does, Open: open, Before: p.Fill(backlog)},
		}
	}
	return run.Group{
		ID: "postgres", Title: "Due work in PostgreSQL",
		Text: "Workers claim ten entries at a time from a backlog of 100 tenants, each with a cap that does not bind. admit deals\n" +
			"them out in fair order, on three nodes. In PostgreSQL a statement claims with `SKIP LOCKED`, in one transaction with\n" +
			"the count of what each tenant has: one entry of each of the ten tenants that have the fewest, which is the same job\n" +
			"without weights, lanes and buckets; or ten of one tenant, with workers that go from tenant to tenant by themselves.\n" +
			"It is one server, whose every commit is flushed. A request is an entry.",
		Systems: []system.System{a, p},
		Rows: []run.Row{
			row("deals", "10 of the tenants with the fewest", 10, p.Deals(claimSize)),
			row("claims", "10 of the next tenant", 0, p.Claims(claimSize)),
		},
		Check: a.Check,
	}
}

func scaleGroup(a *admitd.Admit, entries int) run.Group {
	return run.Group{
		ID: "scale", Title: "With a great deal of due work",
		Text: "One node, asked over gRPC by one caller: what a claim of ten takes while there is more and more, dealt out to 100\n" +
			"tenants, and what other callers wait for with all of it there.",
		Systems: []system.System{a},
		Measure: func(ctx context.Context, p *run.Plan) ([]result.Fact, []result.Check, error) {
			facts, err := scale.Measure(ctx, p, a, entries)
			return facts, nil, err
		},
		Check: a.Check,
	}
}

func spreadGroup(a *admitd.Admit) run.Group {
	return run.Group{
		ID: "spread", Title: "With many tenants",
		Text: "One node, asked over gRPC by one caller for ten entries at a time, by turns from pools whose backlog is the same but\n" +
			"dealt out to more and more tenants.",
		Systems: []system.System{a},
		Measure: func(ctx context.Context, p *run.Plan) ([]result.Fact, []result.Check, error) {
			facts, err := scale.MeasureSpread(ctx, p, a)
			return facts, nil, err
		},
		Check: a.Check,
	}
}
