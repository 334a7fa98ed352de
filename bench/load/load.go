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
	// are counted.
	Run(ctx context.Context, op system.Operation) Outcome
}

// Outcome is what came of it.
type Outcome struct {
	// Requests is how many were answered well, Calls in how many calls; Failed is how
	// many calls were not, and Failure one of their errors.
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

// call makes one call and counts it, its latency from the moment since. It returns
// false where there is nothing more to ask for.
func (o *Outcome) call(ctx context.Context, op system.Operation, caller int, since time.Time) bool {
	n, err := op.Do(ctx, caller)
	if errors.Is(err, system.ErrDrained) {
		return false
	}
	if err != nil {
		o.Failed++
		if o.Failure == nil {
			o.Failure = err
		}
		return true
	}
	o.Calls++
	o.Requests += int64(n)
	o.Took = append(o.Took, time.Since(since))
	return true
}

// crowd runs so many callers and adds up what they counted.
func crowd(callers int, run func(caller int, o *Outcome)) Outcome {
	each := make([]Outcome, callers)
	start := time.Now()
	var all sync.WaitGroup
	for i := range each {
		all.Go(func() { run(i, &each[i]) })
	}
	all.Wait()
	sum := Outcome{Elapsed: time.Since(start)}
	for _, o := range each {
		sum.Requests += o.Requests
		sum.Calls += o.Calls
		sum.Failed += o.Failed
		sum.Took = append(sum.Took, o.Took...)
		if sum.Failure == nil {
			sum.Failure = o.Failure
		}
	}
	sum.Sort()
	return sum
}
