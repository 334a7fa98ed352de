package load

import (
	"context"
	"time"

	"github.com/admitd/admit/bench/system"
)

// Closed is callers that each ask again as soon as they are answered: it finds out
// how much a system can do.
type Closed struct {
	Callers int
	For     time.Duration
}

// Run asks until the time is over.
func (l Closed) Run(ctx context.Context, op system.Operation) Outcome {
	end := time.Now().Add(l.For)
	return crowd(l.Callers, func(caller int, o *Outcome) {
		for now := time.Now(); now.Before(end) && ctx.Err() == nil; now = time.Now() {
			if !o.call(ctx, op, caller, now) {
				return
			}
		}
	})
}
