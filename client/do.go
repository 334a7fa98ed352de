package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// releaseWithin bounds a release after the work, whose own context may have
// ended. A slot that can't be given back by then is free when it expires.
const releaseWithin = 20 * time.Second

// errPanicked stands for the error of a function that did not return.
var errPanicked = errors.New("panicked")

// Do runs fn under a permit.
//
// It asks until it is admitted, each time waiting in line for up to w.MaxWait, and
// coming back no earlier than it was told to. It gives up when waiting can't help (a ShedError), on an error that a retry can't
// help, and when ctx ends (the context's cause; if it was being shed, a
// ShedError too).
//
// While fn runs the permit is renewed. fn's context is cancelled when the permit
// is lost, with ErrPermitLost as its cause: fn must stop. Afterwards the permit is
// released with the outcome that fn's error means. Do returns fn's error, joined
// with ErrPermitLost if the permit was gone before the work had ended, or with
// the error of a release that failed. Work that is RateOnly without Settle has no
// permit to renew or release: fn is just run.
func (c *Client) Do(ctx context.Context, w Work, fn func(ctx context.Context, p *Permit) error) (err error) {
	p, err := c.admit(ctx, w)
	if err != nil {
		return err
	}
	if p.State == admitv1.PermitState_PERMIT_STATE_SPENT {
		return fn(ctx, p)
	}
	held, letGo := c.keeper.hold(ctx, p)
	err = errPanicked
	defer func() {
		letGo()
		err = errors.Join(err, c.finish(ctx, p, err))
	}()
	return fn(held, p)
}

// admit asks for a permit until there is one.
func (c *Client) admit(ctx context.Context, w Work) (*Permit, error) {
	for {
		asked := time.Now()
		d, err := c.Acquire(ctx, w)
		switch {
		case err != nil:
			return nil, err
		case d.Permit != nil && mayWork(d.Permit.State):
			return d.Permit, nil
		case d.Permit != nil && w.RequestID != "":
			return nil, fmt.Errorf("the permit of request %q has ended: %w", w.RequestID, ErrPermitLost)
		case d.Permit != nil:
			continue // granted to a try whose answer came too late
		}
		shed := &ShedError{Shed: d.Shed}
		wait, later := comeBack(d.Shed)
		if !later {
			return nil, shed
		}
		if w.MaxWait > 0 && time.Since(asked) >= w.MaxWait/2 && ctx.Err() == nil {
			continue // it was in line, which is where to wait on
		}
		if err := sleep(ctx, withJitter(wait)); err != nil {
			return nil, fmt.Errorf("waiting to be admitted: %w: %w", err, shed)
		}
	}
}

func mayWork(s admitv1.PermitState) bool {
	return s == admitv1.PermitState_PERMIT_STATE_LIVE || s == admitv1.PermitState_PERMIT_STATE_SPENT
}

// comeBack is when to ask again after a refusal, if ever.
func comeBack(s *admitv1.Shed) (wait time.Duration, later bool) {
	switch {
	case s.GetRetryAfter() != nil:
		return s.GetRetryAfter().AsDuration(), true
	case s.GetPollAfter() != nil:
		return s.GetPollAfter().AsDuration(), true
	default:
		return 0, false
	}
}

// finish gives a permit back with the outcome that err means.
func (c *Client) finish(ctx context.Context, p *Permit, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	r := releaseOf(err)
	r.ActualCost = p.actualCost.Load()
	result, err := c.Release(ctx, p.Token, r)
	if err == nil && result == admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST {
		return ErrPermitLost
	}
	return err
}
