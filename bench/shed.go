package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/admitd/admit/bench/admitd"
	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/echo"
	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/machine"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

// shedCallers is how many callers ask for more than there is.
const shedCallers = 256

func shedGroup(a *admitd.Admit) run.Group {
	e := echo.New(func(ctx context.Context) (echo.Answers, error) {
		shed, err := a.Fill(ctx)
		if err != nil {
			return echo.Answers{}, err
		}
		_, released, err := a.Answers(ctx)
		return echo.Answers{Acquire: shed, Release: released}, err
	})
	ledger := calls.NewLedger()
	return run.Group{
		ID: "shed", Title: "Being told no",
		Text: fmt.Sprintf("%d callers ask a pool that has %d permits and grants %d in a second; the echo answers with a refusal of a node's, as\n"+
			"long. A refusal is decided by the leader and written nowhere.", shedCallers, calls.NarrowActive, calls.NarrowRefill),
		Systems: []system.System{a, e},
		Rows: []run.Row{{
			ID: "shed-256", Title: "256 callers", Callers: shedCallers, Want: 0.8,
			Admit: run.Side{System: a, Does: "Acquire, next to all shed", Open: calls.Contended(a.Target, calls.Narrow, ledger)},
			Peer:  run.Side{System: e, Does: "the same messages", Open: calls.Contended(e.Target, calls.Narrow, calls.NewLedger())},
		}},
		Measure: func(ctx context.Context, p *run.Plan) ([]result.Fact, []result.Check, error) {
			over := result.Check{What: "no more was granted than the bucket gives in the time, nor more held at once than the cap"}
			if err := ledger.Check(calls.NarrowCapacity, calls.NarrowRefill, calls.NarrowActive); err != nil {
				over.Wrong = err.Error()
			}
			part := fact("part of the requests that was shed", "", ledger.ShedPart())
			facts, err := logGrowth(ctx, a, p)
			return append([]result.Fact{part}, facts...), []result.Check{over}, err
		},
		Check: a.Check,
	}
}

// logGrowth measures what of the log comes of requests that are all shed.
func logGrowth(ctx context.Context, a *admitd.Admit, p *run.Plan) ([]result.Fact, error) {
	entries := fact("log entries for 1,000 requests that are all shed", "")
	written := fact("bytes written to the disk for each of them, by all nodes", "")
	entries.Most, written.Most = bound(0.1), bound(1)
	for range p.Rounds {
		op, err := calls.Contended(a.Target, calls.Full, calls.NewLedger())(ctx, shedCallers)
		if err != nil {
			return nil, err
		}
		index, err1 := a.LogIndex(ctx)
		bytes, err2 := machine.Written(a.Processes())
		s, err3 := run.Measure(ctx, a, op, load.Closed{Callers: shedCallers, For: p.For})
		indexAfter, err4 := a.LogIndex(ctx)
		bytesAfter, err5 := machine.Written(a.Processes())
		if err := errors.Join(err1, err2, err3, err4, err5, op.Close()); err != nil {
			return nil, fmt.Errorf("measure the growth of the log: %w", err)
		}
		entries.Rounds = append(entries.Rounds, float64(indexAfter-index)*1e3/float64(s.Requests))
		written.Rounds = append(written.Rounds, float64(bytesAfter-bytes)/float64(s.Requests))
	}
	return []result.Fact{entries, written}, nil
}

func fact(what, unit string, rounds ...float64) result.Fact {
	return result.Fact{What: what, Unit: unit, Rounds: rounds}
}

func bound(v float64) *float64 { return &v }
