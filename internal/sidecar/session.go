package sidecar

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// The limits of a session that its proto states, and how much one message of answers
// holds.
const (
	maxSessionCalls = 4096
	maxAnswerBytes  = 256 << 10
)

// sessions answers SessionService: each call as if it had come by itself.
type sessions struct {
	admitv1alpha1.UnsafeSessionServiceServer
	gate      *gate
	admission *admission
}

// session is one stream of a worker, with the calls on it that have no answer yet.
type session struct {
	*sessions
	stream admitv1alpha1.SessionService_SessionServer
	ctx    context.Context
	// places has a token for each open call, answers room for all of them.
	places  chan struct{}
	answers chan *admitv1alpha1.SessionAnswer
	calls   sync.WaitGroup

	// mu guards what follows.
	mu   sync.Mutex
	open map[uint64]context.CancelFunc
	// over says that no further call is begun.
	over bool
}

// Session implements SessionServiceServer.
func (srv *sessions) Session(stream admitv1alpha1.SessionService_SessionServer) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	s := &session{
		sessions: srv, stream: stream, ctx: ctx, open: make(map[uint64]context.CancelFunc),
		places: make(chan struct{}, maxSessionCalls), answers: make(chan *admitv1alpha1.SessionAnswer, maxSessionCalls),
	}
	ended := make(chan error, 1)
	go func() { ended <- s.read() }() // until the stream ends, which is when this returns
	written := make(chan struct{})
	go func() {
		defer close(written)
		if s.write() != nil {
			cancel() // nobody is told any more
		}
	}()
	var why error
	select {
	case why = <-ended:
	case <-srv.gate.closing.Done():
		why = errStopping
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.calls.Wait()
	close(s.answers)
	<-written
	return why
}

// read begins and gives up calls as it is told, and returns why no more come; nil if the
// worker has closed its side.
func (s *session) read() error {
	for {
		req, err := s.stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		s.mu.Lock()
		for _, id := range req.GetAbandoned() {
			if giveUp := s.open[id]; giveUp != nil {
				giveUp()
			}
		}
		err = s.check(req)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		for _, c := range req.GetCalls() {
			if !s.begin(c) {
				return s.ctx.Err()
			}
		}
	}
}

// check refuses a message that breaks a limit.
func (s *session) check(req *admitv1alpha1.SessionRequest) error {
	in := req.GetCalls()
	if n := len(in) + len(req.GetAbandoned()); n == 0 || len(in) > maxItems || len(req.GetAbandoned()) > maxSessionCalls {
		return status.Errorf(codes.InvalidArgument, "a message has %d calls and gives up %d; from 1 to %d and %d are allowed",
			len(in), len(req.GetAbandoned()), maxItems, maxSessionCalls)
	}
	seen := make(map[uint64]bool, len(in))
	for i, c := range in {
		if id := c.GetId(); id == 0 || seen[id] || s.open[id] != nil {
			return status.Errorf(codes.InvalidArgument, "calls[%d].id is %d, must not be 0 nor that of a call that is open", i, id)
		}
		seen[c.GetId()] = true
	}
	return nil
}

// begin begins a call once there is room for it, and returns false where the session ends
// before.
func (s *session) begin(c *admitv1alpha1.SessionCall) bool {
	select {
	case s.places <- struct{}{}:
	case <-s.ctx.Done():
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	ctx, giveUp := s.context(c)
	s.open[c.GetId()] = giveUp
	s.calls.Go(func() {
		defer giveUp()
		s.answers <- s.answer(ctx, c)
	})
	return true
}

// context is that of a call: it ends with its timeout, and is at its own place in a trace.
// What is told in a header is not told of it.
func (s *session) context(c *admitv1alpha1.SessionCall) (ctx context.Context, giveUp context.CancelFunc) {
	place := metadata.MD{}
	if c.GetTraceparent() != "" {
		place.Set(traceHeader, c.GetTraceparent())
	}
	ctx = grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(s.ctx, place), nil)
	if t := c.GetTimeout(); t != nil {
		return context.WithTimeout(ctx, t.AsDuration())
	}
	return context.WithCancel(ctx)
}

// answer has a call answered.
func (s *session) answer(ctx context.Context, c *admitv1alpha1.SessionCall) *admitv1alpha1.SessionAnswer {
	out := &admitv1alpha1.SessionAnswer{Id: c.GetId()}
	var err error
	switch in := c.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		a := &admitv1alpha1.SessionAnswer_Acquire{}
		a.Acquire, err = through(ctx, s.gate, admitv1.AdmissionService_Acquire_FullMethodName, in.Acquire, s.admission.Acquire)
		out.Outcome = a
	case *admitv1alpha1.SessionCall_Renew:
		a := &admitv1alpha1.SessionAnswer_Renew{}
		a.Renew, err = through(ctx, s.gate, admitv1.AdmissionService_Renew_FullMethodName, in.Renew, s.admission.Renew)
		out.Outcome = a
	case *admitv1alpha1.SessionCall_Release:
		a := &admitv1alpha1.SessionAnswer_Release{}
		a.Release, err = through(ctx, s.gate, admitv1.AdmissionService_Release_FullMethodName, in.Release, s.admission.Release)
		out.Outcome = a
	default:
		err = status.Error(codes.InvalidArgument, "a call asks for nothing that is known here")
	}
	if err != nil {
		p := status.Convert(err).Proto()
		out.Outcome = &admitv1alpha1.SessionAnswer_Failure{Failure: &admitv1alpha1.CallStatus{
			Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails(),
		}}
	}
	return out
}

// through has a call answered as one that comes by itself.
func through[Req, Resp any](
	ctx context.Context, g *gate, method string, in Req, handler func(context.Context, Req) (Resp, error),
) (resp Resp, err error) {
	_, err = g.unary(ctx, in, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
		resp, err = handler(ctx, in)
		return resp, err
	})
	return resp, err
}

// write sends answers, as many as there are at a time, until there won't be any more.
func (s *session) write() error {
	for a := range s.answers {
		resp := &admitv1alpha1.SessionResponse{}
		for size := 0; a != nil; a = s.next(len(resp.Answers), size) {
			resp.Answers = append(resp.Answers, a)
			size += proto.Size(a)
			s.forget(a.GetId())
		}
		if err := s.stream.Send(resp); err != nil {
			return err
		}
		for range resp.GetAnswers() {
			<-s.places
		}
	}
	return nil
}

// next is a further answer for a message that has so many, if there is one and room.
func (s *session) next(have, size int) *admitv1alpha1.SessionAnswer {
	if have >= maxItems || size >= maxAnswerBytes {
		return nil
	}
	select {
	case a := <-s.answers: // nil when there won't be any more
		return a
	default:
		return nil
	}
}

// forget makes an id free again.
func (s *session) forget(id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}
