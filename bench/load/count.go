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
	return crowd(1, func(caller int, o *Outcome) {
		for range l.Calls {
			if ctx.Err() != nil || !o.call(ctx, op, caller, time.Now()) {
				return
			}
		}
	})
}
