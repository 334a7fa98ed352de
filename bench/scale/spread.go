package scale

import (
	"context"
	"fmt"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
)

// spreads are over how many tenants a backlog is dealt.
var spreads = []int{10, 100, 1_000, 10_000, 100_000}

// MeasureSpread has the same backlog dealt out to more and more tenants, each in a pool
// of its own, and measures claims by turns.
func MeasureSpread(ctx context.Context, p *run.Plan, n Node) ([]result.Fact, error) {
	const entries = 100_000
	var pools []*calls.Backlog
	for _, tenants := range spreads {
		b := calls.NewBacklog(n.Target, fmt.Sprintf("spread-%d", tenants), tenants)
		if _, err := schedule(ctx, b, entries); err != nil {
			return nil, err
		}
		pools = append(pools, b)
	}
	took, once := make([][]float64, len(pools)), *p
	once.Rounds = 1
	for range p.Rounds {
		for i, b := range pools {
			t, err := claims(ctx, &once, b, entries)
			if err != nil {
				return nil, err
			}
			took[i] = append(took[i], t...)
		}
	}
	var facts []result.Fact
	var first float64
	for i, tenants := range spreads {
		facts = append(facts, growth(fmt.Sprintf("NextDue of 10 with %d entries of %d tenants", entries, tenants), took[i], &first)...)
	}
	return facts, nil
}
