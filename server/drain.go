package server

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// drain ends the calls that wait and the streams that are held open when the
// server is to stop: a call waits up to a minute and a watch for ever, far longer
// than a stop may take.
type drain struct {
	ctx   context.Context
	begin context.CancelFunc
}

func newDrain() *drain {
	ctx, cancel := context.WithCancel(context.Background())
	return &drain{ctx: ctx, begin: cancel}
}

// wait derives the context of a call that may wait, if it does, so that it ends
// with the drain. The caller calls end.
func (d *drain) wait(ctx context.Context, waits bool) (waiting context.Context, end func()) {
	if !waits {
		return ctx, func() {}
	}
	leave(ctx, true)
	waiting, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(d.ctx, cancel)
	return waiting, func() { stop(); cancel() }
}

// explain tells the caller of a poll that the drain ended, not its own context.
func (d *drain) explain(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && ctx.Err() == nil && d.ctx.Err() != nil {
		return raftstore.ErrShuttingDown
	}
	return err
}

// contextStream is a stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *contextStream) Context() context.Context { return s.ctx }

// stream runs a handler, and ends it with the drain. Streams that carry calls end by
// themselves when these have.
func (d *drain) stream(stream grpc.ServerStream, method string, handler func(grpc.ServerStream) error) error {
	switch method {
	case forwardv1.ForwardService_Forward_FullMethodName, admitv1alpha1.SessionService_Session_FullMethodName:
		return handler(stream)
	}
	ctx, end := d.wait(stream.Context(), true)
	defer end()
	err := handler(&contextStream{stream, ctx})
	if err != nil && stream.Context().Err() == nil && d.ctx.Err() != nil {
		return raftstore.ErrShuttingDown
	}
	return err
}
