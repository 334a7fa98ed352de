package main

import (
	"time"

	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/postgres"
	"github.com/admitd/admit/bench/run"
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
	due, p := calls.NewBacklog(a.Target, dueTenants), &postgres.Postgres{}
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
