// Package load asks a system for something over and over, and counts: by callers
// that each wait for an answer before they ask again, or at a set rate whatever
// the answers take.
package load

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/admitd/admit/bench/system"
)

// Load is a way to ask.
type Load interface {
	// Run asks until its time is over and all answers are there. Errors of the calls
	// are counted; it fails only where it can't go on.
	Run(ctx context.Context, op system.Operation) Outcome
}

// Outcome is what came of it.
type Outcome struct {
	// Requests is how many were answered well, Calls in how many calls; Failed is how
	// many calls were not, and Failure the first such error.
	Requests, Calls, Failed int64
	Failure                 error
	// Elapsed is from the first call until the last answer.
	Elapsed time.Duration
	// Took are the latencies of the answered calls, sorted.
	Took []time.Duration
}

// Rate is the requests answered in a second.
func (o Outcome) Rate() float64 { return float64(o.Requests) / o.Elapsed.Seconds() }

// Sort puts the latencies in order again, after others were added.
func (o *Outcome) Sort() { slices.Sort(o.Took) }

// Quantile is the least latency that the part q of the answered calls kept to.
func (o Outcome) Quantile(q float64) time.Duration {
	if len(o.Took) == 0 {
		return 0
	}
	return o.Took[min(int(q*float64(len(o.Took))), len(o.Took)-1)]
}

// tally is what one caller counted.
type tally struct {
	Outcome
}

// call makes one call and counts it, its latency from the moment since. It returns
// false where there is nothing more to ask for.
func (t *tally) call(ctx context.Context, op system.Operation, caller int, since time.Time) bool {
	n, err := op.Do(ctx, caller)
	if errors.Is(err, system.ErrDrained) {
		return false
	}
	if err != nil {
		t.Failed++
		if t.Failure == nil {
			t.Failure = err
		}
		return true
	}
	t.Calls++
	t.Requests += int64(n)
	t.Took = append(t.Took, time.Since(since))
	return true
}

// crowd runs so many callers and adds up what they counted.
func crowd(callers int, run func(caller int, t *tally)) Outcome {
	tallies := make([]tally, callers)
	start := time.Now()
	var all sync.WaitGroup
	for i := range tallies {
		all.Go(func() { run(i, &tallies[i]) })
	}
	all.Wait()
	sum := Outcome{Elapsed: time.Since(start)}
	for _, t := range tallies {
		sum.Requests += t.Requests
		sum.Calls += t.Calls
		sum.Failed += t.Failed
		sum.Took = append(sum.Took, t.Took...)
		if sum.Failure == nil {
			sum.Failure = t.Failure
		}
	}
	sum.Sort()
	return sum
}
