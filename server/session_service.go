package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// The limits of a session that its proto states, and how much one message of answers
// holds: clients take messages of 4 MiB.
const (
	maxSessionCalls = 4096
	maxAnswerBytes  = 256 << 10
)

type sessionService struct {
	admitv1alpha1.UnsafeSessionServiceServer
	store   Decider
	router  *router
	metrics *metrics
	counts  *sessionMetrics
	drain   *drain
	log     *slog.Logger
	debug   *debugger
}

// Session runs one goroutine that reads and, here, one that writes; none waits for a
// call.
func (srv *sessionService) Session(stream admitv1alpha1.SessionService_SessionServer) error {
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	s := &session{
		sessionService: srv, stream: stream, ctx: ctx,
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1), open: make(map[uint64]*sessionCall),
	}
	srv.counts.open.Inc()
	defer srv.counts.open.Dec()
	defer s.end()
	go func() { // until the stream ends, which is when this returns
		defer func() {
			if p := recover(); p != nil {
				cancel(panicError(p))
			}
		}()
		s.read()
	}()
	return s.write()
}

// session is one stream, with the calls on it that have no answer yet.
type session struct {
	*sessionService
	stream admitv1alpha1.SessionService_SessionServer
	ctx    context.Context
	// wake tells the writer that there is something to do, room the reader that there
	// is room again.
	wake, room chan struct{}

	// beginning is held while the calls of a message are begun, and while it is said
	// that none are any more.
	beginning sync.Mutex

	mu sync.Mutex
	// open are the calls without an answer, decided those of them that the writer is
	// to look at.
	open    map[uint64]*sessionCall
	decided []*sessionCall
	// refusing is why no call is begun any more, or nil.
	refusing error
	// closed says that no message is read any more, why what is wrong with the last.
	closed bool
	why    error
}

// read begins and ends calls as it is told.
func (s *session) read() {
	for {
		req, err := s.stream.Recv()
		if err != nil {
			s.close(err)
			return
		}
		calls, err := s.admit(req)
		if err != nil {
			s.close(err)
			return
		}
		s.abandon(req.GetAbandoned())
		if !s.awaitRoom() {
			return
		}
		s.begin(calls)
	}
}

// close says that no further message is read.
func (s *session) close(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if !errors.Is(why, io.EOF) {
		s.why = why
	}
	notify(s.wake)
}

// admit opens the calls of a message, or refuses one that breaks a limit.
func (s *session) admit(req *admitv1alpha1.SessionRequest) ([]*sessionCall, error) {
	check := newChecker()
	in, abandoned := req.GetCalls(), req.GetAbandoned()
	switch {
	case len(in) > maxItems, len(in)+len(abandoned) == 0:
		check.count("calls", len(in), maxItems)
	case len(abandoned) > maxSessionCalls:
		check.count("abandoned", len(abandoned), maxSessionCalls)
	}
	if err := check.err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return nil, context.Canceled // it has ended
	}
	calls, timer := make([]*sessionCall, 0, len(in)), s.metrics.start()
	for i, m := range in {
		if id := m.GetId(); id == 0 || s.open[id] != nil {
			check.in("calls", i).fail("id", "is %d, must not be 0 nor that of a call that is open", id)
			continue
		}
		c := &sessionCall{session: s, in: m, timer: timer}
		s.open[m.GetId()] = c
		calls = append(calls, c)
	}
	if err := check.err(); err != nil {
		for _, c := range calls {
			delete(s.open, c.in.GetId())
		}
		return nil, err
	}
	s.counts.calls.Add(float64(len(calls)))
	return calls, nil
}

// awaitRoom waits until no more calls are open than may be. It returns false if the
// session ends before.
func (s *session) awaitRoom() bool {
	for {
		s.mu.Lock()
		fits := len(s.open) <= maxSessionCalls
		s.mu.Unlock()
		if fits {
			return true
		}
		select {
		case <-s.room:
		case <-s.ctx.Done():
			return false
		}
	}
}

// begin has the calls of one message decided, together.
func (s *session) begin(calls []*sessionCall) {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	subs := make([]*raftstore.Submission, 0, len(calls))
	for _, c := range calls {
		err := s.refusal(c)
		if err == nil {
			err = c.prepare()
		}
		if err != nil {
			c.told(raftstore.Answer{}, err)
			continue
		}
		subs = append(subs, &c.Submission)
	}
	if len(subs) > 0 {
		s.store.Submit(s.ctx, subs...)
	}
}

// refusal says why a call is not to begin any more, or nil.
func (s *session) refusal(c *sessionCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.withdrawn {
		return context.Canceled
	}
	return s.refusing
}

// settled hands a call to the writer.
func (s *session) settled(c *sessionCall) {
	s.mu.Lock()
	s.decided = append(s.decided, c)
	s.mu.Unlock()
	notify(s.wake)
}

// abandon ends the calls with these ids, if they are open.
func (s *session) abandon(ids []uint64) {
	s.mu.Lock()
	calls := make([]*sessionCall, 0, len(ids))
	for _, id := range ids {
		if c := s.open[id]; c != nil {
			calls = append(calls, c)
		}
	}
	s.mu.Unlock()
	s.withdraw(calls)
}

// stop begins no further call, and ends those that may wait, or all.
func (s *session) stop(refusing error, all bool) {
	s.beginning.Lock()
	defer s.beginning.Unlock()
	s.mu.Lock()
	s.refusing = refusing
	var calls []*sessionCall
	for _, c := range s.open {
		if all || c.waits() {
			calls = append(calls, c)
		}
	}
	s.mu.Unlock()
	s.withdraw(calls)
}

// withdraw ends calls: here, or where they were forwarded to.
func (s *session) withdraw(calls []*sessionCall) {
	subs := make([]*raftstore.Submission, 0, len(calls))
	for _, c := range calls {
		s.mu.Lock()
		before, abandon := c.withdrawn, c.abandon
		c.withdrawn = true
		s.mu.Unlock()
		switch {
		case before: // it knows
		case abandon != nil:
			abandon()
		default:
			subs = append(subs, &c.Submission)
		}
	}
	s.store.Withdraw(subs...)
}

// end gives up what is open, when nobody is told any more. What is read meanwhile is
// refused.
func (s *session) end() {
	s.stop(context.Canceled, true)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts.calls.Sub(float64(len(s.open)))
	for _, c := range s.open {
		endCall(c.span, nil, statusError(context.Canceled, true))
	}
	s.open = nil
}

// notify wakes whoever waits on a channel of one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
