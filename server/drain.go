package server

import (
	"context"
	"errors"

	"github.com/admitd/admit/raftstore"
)

// drain ends the polls that are held open when the server is to stop. They wait
// up to a minute, far longer than a stop may take.
type drain struct {
	ctx   context.Context
	begin context.CancelFunc
}

func newDrain() *drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &drain{ctx: ctx, begin: cancel}
}

// poll derives a call's context that ends with the drain. The caller calls end.
func (d *drain) poll(ctx context.Context) (poll context.Context, end func()) {
	poll, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	return poll, func() { stop(); cancel() }
}

// explain tells the caller of a poll that the drain ended, not its own context.
func (d *drain) explain(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && d.ctx.Err() != nil {
		return raftstore.ErrShuttingDown
	}
	return err
}
