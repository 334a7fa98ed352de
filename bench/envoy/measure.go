package envoy

import (
	"context"
	"errors"
	"fmt"

	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

const (
	// callers find out what a system can do, for half of it to be asked then.
	callers = 256
	// timeout is how long Envoy waits for an answer by default, in milliseconds.
	timeout = 20
)

// Side is a system that is measured, admit or its peer.
type Side struct {
	System system.System
	At     Targets
	Store  Store
	// Barred says that its figures have bars.
	Barred bool
}

// Measure finds out what callers wait for at half of what a system can do, and then how
// much passes while its store dies.
func Measure(ctx context.Context, p *run.Plan, sides []Side, led func(context.Context) result.Check) ([]result.Fact, []result.Check, error) {
	var facts []result.Fact
	for _, s := range sides {
		f := result.Fact{What: "p99 at half of what it can do: " + s.System.Name(), Unit: "ms"}
		for range p.Rounds {
			p99, err := s.wait(ctx, p)
			if err != nil {
				return facts, nil, err
			}
			f.Rounds = append(f.Rounds, p99)
		}
		facts = append(facts, s.most(timeout, f))
	}
	checks := []result.Check{led(ctx)} // until here none was killed
	for _, s := range sides {
		var rounds []killed
		for round := range p.Rounds {
			k, err := s.Store.kill(ctx, round)
			if err != nil {
				return facts, checks, err
			}
			for i, l := range limits {
				p.Say("envoy: %s, %s killed: %d of %.0f at %.0f %s passed, %d calls failed, one with %v",
					s.System.Name(), s.Store.Killed, k[i].Requests, l.allows(k[i].Elapsed), l.tokens, l.per, k[i].Failed, k[i].Failure)
			}
			rounds = append(rounds, k)
		}
		facts = append(facts, s.report(rounds)...)
	}
	return facts, checks, nil
}

// wait returns the 99th percentile at half the rate, in milliseconds.
func (s Side) wait(ctx context.Context, p *run.Plan) (float64, error) {
	op, err := Requests(s.At)(ctx, callers)
	if err != nil {
		return 0, err
	}
	most, err := run.Measure(ctx, s.System, op, load.Closed{Callers: callers, For: p.For})
	if err != nil {
		return 0, errors.Join(err, op.Close())
	}
	half, err := run.Measure(ctx, s.System, op, load.Open{Rate: most.Rate() / 2, Callers: callers, For: p.For})
	return half.P99 / 1e3, errors.Join(err, op.Close())
}

// report tells for each limit how much of what it allows has passed, and of both how
// many calls had no answer.
func (s Side) report(rounds []killed) []result.Fact {
	var facts []result.Fact
	about := fmt.Sprintf("%s, %s killed: ", s.System.Name(), s.Store.Killed)
	for i, l := range limits {
		f := result.Fact{What: about + fmt.Sprintf("admitted by allowed, %.0f %s", l.tokens, l.per)}
		for _, k := range rounds {
			f.Rounds = append(f.Rounds, float64(k[i].Requests)/l.allows(k[i].Elapsed))
		}
		facts = append(facts, s.most(1, f))
	}
	failed := result.Fact{What: about + "calls without an answer", Unit: "%"}
	for _, k := range rounds {
		var without, all int64
		for _, o := range k {
			without, all = without+o.Failed, all+o.Failed+o.Calls
		}
		failed.Rounds = append(failed.Rounds, 100*float64(without)/float64(all))
	}
	return append(facts, failed)
}

// most sets a bar where the side has them.
func (s Side) most(v float64, f result.Fact) result.Fact {
	if s.Barred {
		f.Most = &v
	}
	return f
}
