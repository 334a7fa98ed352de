package load

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/admitd/admit/bench/system"
)

// Open is calls at a set rate, evenly spaced: it finds out what a caller waits for.
// A call's latency counts from when it was to be sent, so that a system that stalls
// is charged for all who would have asked meanwhile.
type Open struct {
	// Rate is in calls a second.
	Rate float64
	// Callers is how many calls can be under way at once. One that finds none free
	// is late, and counts from when it was to be sent.
	Callers int
	For     time.Duration
}

// Run asks until the time is over.
func (l Open) Run(ctx context.Context, op system.Operation) Outcome {
	var next atomic.Int64
	start := time.Now()
	return crowd(l.Callers, func(caller int, o *Outcome) {
		for ctx.Err() == nil {
			due := time.Duration(float64(next.Add(1)-1) / l.Rate * float64(time.Second))
			if due >= l.For {
				return
			}
			intended := start.Add(due)
			time.Sleep(time.Until(intended))
			if !o.call(ctx, op, caller, intended) {
				return
			}
		}
	})
}
