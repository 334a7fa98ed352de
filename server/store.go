package server

import (
	"context"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// Store decides durably. All methods may be called concurrently.
type Store interface {
	// Do decides each request on its own, in order, and blocks until all are
	// durable. It returns one Answer for each, or an error if any outcome is not
	// known.
	Do(ctx context.Context, reqs ...raftstore.Request) ([]raftstore.Answer, error)
	// NextDue is Do for one *admission.NextDue; it blocks up to maxWait while
	// nothing can be claimed.
	NextDue(ctx context.Context, req raftstore.Request, maxWait time.Duration) (raftstore.Answer, error)
	// View runs fn on the applied state and the present time, under a read lock:
	// fn must be short and must not keep the state.
	View(fn func(st *admission.State, at admission.Instant, w admission.Wall))
	// Image returns an immutable picture of the state, without copying it.
	Image(ctx context.Context) (*admission.Image, error)
	// Picture returns who is held back in a pool now, to be read for as long as it
	// takes.
	Picture(pool string) (*admission.Picture, error)
	// Ready says whether the store can decide now. It does not block.
	Ready() bool
	// ReadyChanged is closed when Ready next changes.
	ReadyChanged() <-chan struct{}

	Membership
}
