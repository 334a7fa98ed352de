// Package overload asks a system for three times what it can do, and looks at what is
// still done: how much, whether what frees room comes through, how a tenant fares that
// asks for little, and how long all takes to be as before.
package overload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/admitd/admit/bench/calls"
	"github.com/admitd/admit/bench/load"
	"github.com/admitd/admit/bench/machine"
	"github.com/admitd/admit/bench/result"
	"github.com/admitd/admit/bench/run"
	"github.com/admitd/admit/bench/system"
)

const (
	// ServerCore is where the system has to be kept, LoadCore where the load keeps
	// itself.
	ServerCore, LoadCore = 0, 1
	// times is how much more is offered than the system can do.
	times = 3
	// callers find out what that is.
	callers = 64
	// size is how many permits a caller takes at once: so many that to ask for them costs
	// a core far less than to decide on them, or nobody could ask for three times as much
	// and still tell how long the answers took.
	size = 64
	// within is how long a caller waits for a permit.
	within = 500 * time.Millisecond
	// mostCallers bounds the calls under way.
	mostCallers = 30_000
	// quietRate is how often the quiet tenant asks in a second.
	quietRate = 50
	quiet     = "quiet"
	// recoveryLimit is how long it is waited for the system to recover.
	recoveryLimit = 20 * time.Second
)

// round is what one of them came to.
type round struct {
	peak, offered, goodput           float64 // requests a second
	quietPeak, quietOver             time.Duration
	recovery                         time.Duration
	releasesRefused, acquiresRefused int64
}

// Measure runs the plan's rounds on a system that is kept to ServerCore.
func Measure(ctx context.Context, p *run.Plan, s system.System, at calls.Target) (facts []result.Fact, checks []result.Check, err error) {
	undo, err := machine.Pin(LoadCore)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, undo()) }()
	var rounds []round
	for range p.Rounds {
		r, err := measure(ctx, p, s, at)
		if err != nil {
			return nil, nil, err
		}
		p.Say("overload: peak %.0f, offered %.0f, done %.0f a second; quiet tenant %v and %v; recovered after %v",
			r.peak, r.offered, r.goodput, r.quietPeak, r.quietOver, r.recovery)
		rounds = append(rounds, r)
	}
	return report(rounds), []result.Check{releases(rounds)}, nil
}

func measure(ctx context.Context, p *run.Plan, s system.System, at calls.Target) (round, error) {
	var r round
	counts := &calls.Releases{}
	busy := calls.Work(at, "", size, within, counts)
	peak, quietPeak, err := beside(ctx, p, s, at, busy, callers, load.Closed{Callers: callers, For: p.For})
	if err != nil {
		return r, fmt.Errorf("find out how much it can do: %w", err)
	}
	r.peak, r.quietPeak = peak.Rate(), quietPeak
	rate := times * r.peak / size
	many := min(int(rate*within.Seconds()), mostCallers)
	over, quietOver, err := beside(ctx, p, s, at, busy, many, load.Open{Rate: rate, Callers: many, For: p.For})
	if err != nil {
		return r, fmt.Errorf("offer too much: %w", err)
	}
	ended := time.Now().Add(p.For - time.Duration(over.Seconds*float64(time.Second))) // the rest was waiting for answers
	r.offered = float64(size*(over.Calls+over.Failed)) / over.Seconds
	r.goodput, r.quietOver = over.Rate(), quietOver
	r.releasesRefused, r.acquiresRefused = counts.Refused()
	r.recovery, err = recovered(ctx, at, r.quietPeak, ended)
	return r, err
}

// beside puts the load on, with the quiet tenant beside it, and returns its 99th
// percentile too.
func beside(ctx context.Context, p *run.Plan, s system.System, at calls.Target, open system.Open, callers int, l load.Load) (result.Sample, time.Duration, error) {
	op, err := open(ctx, callers)
	if err != nil {
		return result.Sample{}, 0, err
	}
	alone, err := calls.Work(at, quiet, 1, recoveryLimit, &calls.Releases{})(ctx, callers)
	if err != nil {
		return result.Sample{}, 0, errors.Join(err, op.Close())
	}
	told := make(chan load.Outcome, 1)
	go func() { told <- load.Open{Rate: quietRate, Callers: quietRate, For: p.For}.Run(ctx, alone) }()
	sample, err := run.Measure(ctx, s, op, l)
	outcome := <-told
	if outcome.Failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls of the quiet tenant failed: %w", outcome.Failed, outcome.Failure))
	}
	return sample, outcome.Quantile(0.99), errors.Join(err, op.Close(), alone.Close())
}

// inTime is how many calls in a row have to be fast for the system to be as before.
const inTime = 20

// recovered returns how long after ended the calls of one caller begin to be as fast
// as they were at the peak.
func recovered(ctx context.Context, at calls.Target, usual time.Duration, ended time.Time) (time.Duration, error) {
	op, err := calls.Work(at, quiet, 1, recoveryLimit, &calls.Releases{})(ctx, 1)
	if err != nil {
		return 0, err
	}
	defer op.Close()
	since, fast := time.Now(), 0
	for time.Since(ended) < recoveryLimit {
		start := time.Now()
		_, err := op.Do(ctx, 0)
		switch {
		case err != nil || time.Since(start) > usual:
			since, fast = time.Now(), 0
		case fast == inTime:
			return since.Sub(ended), ctx.Err()
		default:
			fast++
		}
	}
	return recoveryLimit, ctx.Err()
}
