package server

import (
	"context"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// Store is the node's state, durable, and what decides on it. All methods may be
// called concurrently.
type Store interface {
	Decider

	// Ready says whether the store can answer now. It does not block.
	Ready() bool
	// ReadyChanged is closed when Ready or Leader next changes.
	ReadyChanged() <-chan struct{}
	// Leader says who leads. It does not block.
	Leader() raftstore.Leader

	Replica
	Membership
}

// Decider decides durably, where this node leads.
type Decider interface {
	// Do decides each request on its own, in order, and blocks until all are
	// durable. It returns one Answer for each, or an error if any outcome is not
	// known.
	Do(ctx context.Context, reqs ...raftstore.Request) ([]raftstore.Answer, error)
	// NextDue is Do for one *admission.NextDue; it blocks up to maxWait while
	// nothing can be claimed.
	NextDue(ctx context.Context, req raftstore.Request, maxWait time.Duration) (raftstore.Answer, error)
	// Submit is Do for each request by itself; it does not block, and tells each the
	// outcome.
	Submit(ctx context.Context, subs ...*raftstore.Submission)
	// Withdraw ends submissions that may be in line. It does not block; they are told.
	Withdraw(subs ...*raftstore.Submission)
}

// Replica shows the state as this node has it.
type Replica interface {
	// ReadPoint returns the present, if this node leads. It blocks until a quorum
	// has confirmed that.
	ReadPoint(ctx context.Context) (raftstore.ReadPoint, error)
	// Reach blocks until the state has all up to a point.
	Reach(ctx context.Context, p raftstore.ReadPoint) error
	// Age is how long ago this node last heard how far the log is, or Absent.
	Age() time.Duration
	// ViewAt runs fn on the applied state, under a read lock: fn must be short and
	// must not keep the state. The time is the present, or where this node does not
	// lead that of the point.
	ViewAt(p raftstore.ReadPoint, fn func(st *admission.State, at admission.Instant, w admission.Wall))
	// Image returns an immutable picture of the state, without copying it.
	Image() *admission.Image
	// Picture returns who is held back in a pool, at the time of ViewAt, to be read
	// for as long as it takes.
	Picture(p raftstore.ReadPoint, pool string) (*admission.Picture, error)
}
