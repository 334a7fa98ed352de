package client_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// fakeSessions answers the calls of sessions as a fake answers those that come by
// themselves.
type fakeSessions struct {
	admitv1alpha1.UnimplementedSessionServiceServer
	f *fake

	mu sync.Mutex
	// messages are the numbers of calls in those that came, timeouts those of the calls.
	messages []int
	timeouts []time.Duration
	// places are where in traces the calls said that they are.
	places []string
	// streams are how many began.
	streams int
}

func (fs *fakeSessions) Session(stream admitv1alpha1.SessionService_SessionServer) error {
	fs.mu.Lock()
	fs.streams++
	fs.mu.Unlock()
	s := &fakeSession{f: fs.f, stream: stream, open: make(map[uint64]context.CancelFunc)}
	defer s.running.Wait()
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fs.note(req)
		s.begin(req)
	}
}

func (fs *fakeSessions) note(req *admitv1alpha1.SessionRequest) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if n := len(req.GetCalls()); n > 0 {
		fs.messages = append(fs.messages, n)
	}
	for _, c := range req.GetCalls() {
		fs.timeouts = append(fs.timeouts, c.GetTimeout().AsDuration())
		fs.places = append(fs.places, c.GetTraceparent())
	}
}

// fakeSession is one session.
type fakeSession struct {
	f       *fake
	stream  admitv1alpha1.SessionService_SessionServer
	running sync.WaitGroup

	mu   sync.Mutex
	open map[uint64]context.CancelFunc
}

func (s *fakeSession) begin(req *admitv1alpha1.SessionRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range req.GetAbandoned() {
		if cancel := s.open[id]; cancel != nil {
			cancel()
		}
	}
	for _, c := range req.GetCalls() {
		ctx, cancel := context.WithCancel(s.stream.Context())
		if t := c.GetTimeout(); t != nil {
			ctx, cancel = context.WithTimeout(s.stream.Context(), t.AsDuration())
		}
		s.open[c.GetId()] = cancel
		s.running.Go(func() { s.answer(ctx, cancel, c) })
	}
}

func (s *fakeSession) answer(ctx context.Context, cancel context.CancelFunc, c *admitv1alpha1.SessionCall) {
	defer cancel()
	resp := &admitv1alpha1.SessionResponse{Answers: []*admitv1alpha1.SessionAnswer{{Id: c.GetId()}}}
	trailer := &trailers{}
	ctx = grpc.NewContextWithServerTransportStream(ctx, trailer)
	err := s.call(ctx, c, resp.Answers[0])
	if err != nil {
		p := status.Convert(err).Proto()
		resp.Answers[0].Outcome = &admitv1alpha1.SessionAnswer_Failure{Failure: &admitv1alpha1.CallStatus{
			Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails(),
		}}
	}
	resp.LeaderAddr = trailer.leader
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c.GetId())
	_ = s.stream.Send(resp) // fails where the client has gone
}

func (s *fakeSession) call(ctx context.Context, c *admitv1alpha1.SessionCall, out *admitv1alpha1.SessionAnswer) error {
	switch in := c.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		a, err := s.f.Acquire(ctx, in.Acquire)
		out.Outcome = &admitv1alpha1.SessionAnswer_Acquire{Acquire: a}
		return err
	case *admitv1alpha1.SessionCall_Renew:
		a, err := s.f.Renew(ctx, in.Renew)
		out.Outcome = &admitv1alpha1.SessionAnswer_Renew{Renew: a}
		return err
	default:
		a, err := s.f.Release(ctx, c.GetRelease())
		out.Outcome = &admitv1alpha1.SessionAnswer_Release{Release: a}
		return err
	}
}

// trailers is where a handler's trailers go.
type trailers struct{ leader string }

func (t *trailers) Method() string                  { return admitv1.AdmissionService_Acquire_FullMethodName }
func (t *trailers) SetHeader(metadata.MD) error     { return nil }
func (t *trailers) SendHeader(metadata.MD) error    { return nil }
func (t *trailers) SetTrailer(md metadata.MD) error { t.leader = md.Get("admit-leader")[0]; return nil }
