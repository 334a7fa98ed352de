package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
)

const (
	// rate is how often in a second a permit is asked for and given back.
	rate = 200
	// patience is how long that may take.
	patience = 20 * time.Second
	// mostStall is the most that is wanted of a latency while something large happens,
	// by what it is else.
	mostStall = 2
)

// stalls measures what callers wait for while large things happen, by turns with what
// they wait for else.
func stalls(ctx context.Context, p *run.Plan, n Node) ([]result.Fact, error) {
	large := calls.NewLarge(n.Target)
	what := []struct {
		name string
		does func(context.Context) error
	}{
		{"10,000 requests get in line", func(ctx context.Context) error { return large.Wait(ctx, 10_000, p.For/2) }},
		{"10,000 permits expire at one instant", func(ctx context.Context) error { return large.Expire(ctx, 10_000) }},
		{"100,000 tenants are put in calls of 1,000", func(ctx context.Context) error { return large.PutTenants(ctx, 100_000) }},
	}
	alone := result.Fact{What: "p99 of Acquire with Release, 200 in a second", Unit: "ms"}
	during := make([]result.Fact, len(what))
	for i, w := range what {
		during[i] = most(mostStall, result.Fact{What: "the same while " + w.name + ", by that"})
	}
	for range p.Rounds {
		usual, err := beside(ctx, p, n, func(context.Context) error { return nil })
		if err != nil {
			return nil, err
		}
		alone.Rounds = append(alone.Rounds, usual.Seconds()*1e3)
		for i, w := range what {
			took, err := beside(ctx, p, n, w.does)
			if err != nil {
				return nil, fmt.Errorf("while %s: %w", w.name, err)
			}
			p.Say("scale: p99 %v, and %v while %s", usual, took, w.name)
			during[i].Rounds = append(during[i].Rounds, took.Seconds()/usual.Seconds())
		}
	}
	return append([]result.Fact{alone}, during...), nil
}

// beside returns the 99th percentile of calls while something happens.
func beside(ctx context.Context, p *run.Plan, n Node, does func(context.Context) error) (time.Duration, error) {
	op, err := calls.Work(n.Target, "", 1, patience, &calls.Releases{})(ctx, rate)
	if err != nil {
		return 0, err
	}
	happened := make(chan error, 1)
	go func() { happened <- does(ctx) }()
	o := load.Open{Rate: rate, Callers: rate, For: p.For}.Run(ctx, op)
	return o.Quantile(0.99), errors.Join(o.Failure, <-happened, op.Close())
}
