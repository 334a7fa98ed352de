package server

import (
	"context"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// reads show the state: all that was decided before the call began, or where the
// caller is content with it what this node has. They are answered here, and only
// the question how far the log is goes to the leader: long reads do not keep it from
// deciding.
type reads struct {
	replica Replica
	router  *router
}

// age is how old a stale answer may be; nil for one that misses nothing, and where
// it is not known.
type age = *durationpb.Duration

// reach returns a point that this node has reached: the present, or with stale what
// it has.
func (r reads) reach(ctx context.Context, stale bool) (p raftstore.ReadPoint, old age, err error) {
	if stale {
		return p, given(r.replica.Age()), nil
	}
	p, err = r.replica.ReadPoint(ctx)
	if leader, elsewhere := r.router.elsewhere(ctx, err); elsewhere {
		if p, err = r.router.readPoint(ctx, leader); err == nil {
			err = r.replica.Reach(ctx, p)
		}
	}
	return p, nil, err
}

// view runs fn on the state.
func (r reads) view(ctx context.Context, stale bool, fn func(*admission.State, admission.Instant, admission.Wall)) (age, error) {
	p, old, err := r.reach(ctx, stale)
	if err != nil {
		return nil, err
	}
	r.replica.ViewAt(p, fn)
	return old, nil
}

// image returns the state, to be read for as long as it takes.
func (r reads) image(ctx context.Context, stale bool) (*admission.Image, age, error) {
	_, old, err := r.reach(ctx, stale)
	if err != nil {
		return nil, nil, err
	}
	return r.replica.Image(), old, nil
}

// imageAt is image, and the time at which to look at it.
func (r reads) imageAt(ctx context.Context, stale bool) (im *admission.Image, at admission.Instant, old age, err error) {
	p, old, err := r.reach(ctx, stale)
	if err != nil {
		return nil, 0, nil, err
	}
	r.replica.ViewAt(p, func(_ *admission.State, now admission.Instant, _ admission.Wall) { at = now })
	return r.replica.Image(), at, old, nil
}

// picture returns who is held back in a pool, to be read for as long as it takes.
func (r reads) picture(ctx context.Context, stale bool, pool string) (*admission.Picture, age, error) {
	p, old, err := r.reach(ctx, stale)
	if err != nil {
		return nil, nil, err
	}
	picture, err := r.replica.Picture(p, pool)
	return picture, old, err
}
