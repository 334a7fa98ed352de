package client

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// tryFor is what one try may take beyond the time that the call may wait: a node
	// that is silent for longer has lost its place, and another knows who has it.
	tryFor = 3 * time.Second
)

// retry sends a call until it is answered, fails for good, ctx ends or the
// client's retry time is over; then it returns the call's last error. The call
// must be one whose repetition has the effect of one.
func (c *Client) retry(ctx context.Context, call func(ctx context.Context) error) error {
	return c.retryFrom(ctx, time.Now(), call)
}

// retryFrom is retry for a call that may take until then without anything being
// wrong.
func (c *Client) retryFrom(ctx context.Context, then time.Time, call func(ctx context.Context) error) error {
	giveUp := then.Add(c.retryFor)
	for try := 0; ; try++ {
		silent, err := c.try(ctx, then, call)
		atLeast, again := retriable(err)
		if !again && !silent {
			return err
		}
		wait := atLeast + pause(try)
		if time.Now().Add(wait).After(giveUp) || sleep(ctx, wait) != nil {
			return err
		}
	}
}

// try sends a call once. It is silent if there was no answer in time, though ctx
// would allow for more.
func (c *Client) try(ctx context.Context, then time.Time, call func(ctx context.Context) error) (silent bool, err error) {
	trying, cancel := context.WithTimeout(ctx, max(time.Until(then), 0)+tryFor)
	defer cancel()
	err = call(trying)
	return err != nil && trying.Err() != nil && ctx.Err() == nil, err
}

// retriable says whether a call that failed with err may succeed when it is sent
// again as it is, and how long the server asks to wait before that.
//
// UNAVAILABLE is retried whatever its reason: either nothing was decided, or the
// outcome is unknown and the repetition finds out. RESOURCE_EXHAUSTED is only
// where the server says so; a message that is too large has the same code.
func retriable(err error) (atLeast time.Duration, again bool) {
	st, isStatus := status.FromError(err)
	if err == nil || !isStatus {
		return 0, false
	}
	var reason string
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			reason = d.GetReason()
		case *errdetails.RetryInfo:
			atLeast = d.GetRetryDelay().AsDuration()
		}
	}
	again = st.Code() == codes.Unavailable ||
		st.Code() == codes.ResourceExhausted && reason == "OVERLOADED"
	return atLeast, again
}

// lossBearable has a call be sent again of which it is not known whether it had effect.
func lossBearable(err error) error {
	st := status.Convert(err).Proto()
	if codes.Code(st.GetCode()) != codes.Aborted {
		return err
	}
	st.Code = int32(codes.Unavailable)
	return status.ErrorProto(st)
}

// pause is the wait before try+1: anything up to a limit that doubles, so that
// callers who failed together don't come back together.
func pause(try int) time.Duration {
	limit := min(firstBackoff<<min(try, 16), maxBackoff)
	return rand.N(limit) + 1
}

// withJitter adds up to a tenth to a wait. It never takes anything away: before
// its time a retry can't succeed.
func withJitter(d time.Duration) time.Duration { return d + rand.N(d/10+time.Millisecond) }

// sleep waits for d, or returns the cause for which ctx ended before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
