package load

import (
	"context"
	"time"

	"github.com/admitd/admit/bench/system"
)

// Count is one caller that makes so many calls, one after the other.
type Count struct{ Calls int }

// Run asks until all are made.
func (l Count) Run(ctx context.Context, op system.Operation) Outcome {
	return crowd(1, func(caller int, t *tally) {
		for range l.Calls {
			if ctx.Err() != nil || !t.call(ctx, op, caller, time.Now()) {
				return
			}
		}
	})
}
