package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/run"
)

const (
	// claimSize is how many entries a call claims.
	claimSize = 10
	// claimsInARow is how many calls are made before what they claimed is put back:
	// few, that the backlog stays about as large.
	claimsInARow = 20
)

// schedule has the backlog grow to so many, and returns how many were scheduled in a
// second.
func schedule(ctx context.Context, due *calls.Backlog, entries int) (float64, error) {
	start, before := time.Now(), due.Queued()
	if err := due.Fill(entries)(ctx); err != nil {
		return 0, fmt.Errorf("schedule %d entries: %w", entries, err)
	}
	return float64(due.Queued()-before) / time.Since(start).Seconds(), nil
}

// claims returns each round's median latency of one caller, in microseconds, after a
// short one that does not count.
func claims(ctx context.Context, p *run.Plan, due *calls.Backlog, entries int) ([]float64, error) {
	if _, err := claimFor(ctx, min(p.For, time.Second), due, entries); err != nil {
		return nil, err
	}
	var medians []float64
	for range p.Rounds {
		o, err := claimFor(ctx, p.For, due, entries)
		if err != nil {
			return nil, err
		}
		medians = append(medians, float64(o.Quantile(0.5))/float64(time.Microsecond))
	}
	return medians, nil
}

// claimFor claims until the calls have taken so long together, and puts back what is
// claimed in between.
func claimFor(ctx context.Context, long time.Duration, due *calls.Backlog, entries int) (load.Outcome, error) {
	var all load.Outcome
	for all.Elapsed < long {
		o, err := someClaims(ctx, due)
		if err != nil {
			return all, err
		}
		all.Elapsed += o.Elapsed
		all.Took = append(all.Took, o.Took...)
		if err := due.Fill(entries)(ctx); err != nil {
			return all, err
		}
	}
	all.Sort()
	return all, nil
}

func someClaims(ctx context.Context, due *calls.Backlog) (load.Outcome, error) {
	op, err := due.Claims(claimSize)(ctx, 1)
	if err != nil {
		return load.Outcome{}, err
	}
	o := load.Count{Calls: claimsInARow}.Run(ctx, op)
	return o, errors.Join(o.Failure, op.Close())
}
