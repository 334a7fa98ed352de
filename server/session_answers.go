package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// write answers calls until all are answered that there will be, or nobody is there
// any more. While one message is sent further calls are decided, so messages grow with
// the load alone.
func (s *session) write() error {
	draining := s.drain.ctx.Done()
	for {
		calls, over := s.take()
		if len(calls) > 0 {
			if err := s.send(calls); err != nil {
				return err
			}
			continue
		}
		if over {
			return s.outcome()
		}
		select {
		case <-s.wake:
		case <-draining:
			s.stop(raftstore.ErrShuttingDown, false)
			draining = nil
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// take returns the calls of the next message; over says that none will follow.
func (s *session) take() (calls []*sessionCall, over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.decided), maxItems)
	calls, s.decided = s.decided[:n:n], s.decided[n:]
	return calls, n == 0 && len(s.open) == 0 && (s.closed || s.refusing != nil)
}

// outcome is how the session ends once all is answered.
func (s *session) outcome() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		return s.refusing
	}
	return s.why
}

// send answers calls, those aside that the leader is to answer.
func (s *session) send(calls []*sessionCall) error {
	defer clear(calls) // so that what was answered can be freed
	resp, size := &admitv1alpha1.SessionResponse{}, 0
	for _, c := range calls {
		if c.passOn() {
			continue
		}
		a := c.answer()
		s.forget(c)
		resp.Answers = append(resp.Answers, a)
		if c.leader != nil && c.err == nil {
			resp.LeaderAddr = c.leader.LeaderAddr
		}
		if size += proto.Size(a); size < maxAnswerBytes {
			continue
		}
		if err := s.stream.Send(resp); err != nil {
			return err
		}
		resp, size = &admitv1alpha1.SessionResponse{}, 0
	}
	if len(resp.Answers) == 0 {
		return nil
	}
	return s.stream.Send(resp)
}

// forget makes room for another call.
func (s *session) forget(c *sessionCall) {
	s.mu.Lock()
	delete(s.open, c.in.GetId())
	s.mu.Unlock()
	s.counts.calls.Dec()
	notify(s.room)
}
