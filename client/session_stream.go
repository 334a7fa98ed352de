package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// session is one stream and the calls on it. sessions.mu guards it.
type session struct {
	owner *sessions
	// addr is the node that the stream goes to, once it was picked.
	addr atomic.Pointer[string]
	// wake tells that there is something to send.
	wake chan struct{}

	// heard is when the node last answered anything.
	heard time.Time
	// retired says that further calls go elsewhere.
	retired bool
	// queue are the calls that have not been sent, sent those on their way; abandoned
	// are the ids of those whose callers have gone.
	queue     []*sessionCall
	sent      map[uint64]*sessionCall
	abandoned []uint64
}

// sessionCall is a call without an answer.
type sessionCall struct {
	frame  *admitv1alpha1.SessionCall
	size   int
	sentAt time.Time
	// deadline is zero where there is none.
	deadline time.Time

	// done is closed when there is an outcome.
	done   chan struct{}
	answer *admitv1alpha1.SessionAnswer
	err    error
}

func (p *sessionCall) finish(answer *admitv1alpha1.SessionAnswer, err error) {
	p.answer, p.err = answer, err
	close(p.done)
}

func (s *session) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// leave gives a call up whose context has ended. Where the node had it and has been
// silent since, others may know more.
func (s *session) leave(p *sessionCall, why error) {
	told := status.FromContextError(why).Err()
	if silent := s.drop(p, told); silent && errors.Is(why, context.DeadlineExceeded) {
		s.trouble(told)
	}
}

// drop takes a call out, and says whether nothing has come since it was sent.
func (s *session) drop(p *sessionCall, told error) (silent bool) {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if i := slices.Index(s.queue, p); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		p.finish(nil, told)
		return false
	}
	id := p.frame.GetId()
	if s.sent[id] != p {
		return false // it has just been answered
	}
	delete(s.sent, id)
	s.abandoned = append(s.abandoned, id)
	s.notify()
	p.finish(nil, told)
	return s.heard.Before(p.sentAt)
}

// trouble notes that the node could not answer a call.
func (s *session) trouble(err error) {
	addr, nodes := s.addr.Load(), s.owner.nodes
	if addr == nil || nodes == nil {
		return
	}
	nodes.learn(*addr, balancer.DoneInfo{Err: err})
	s.follow()
}

// follow has further calls go on a session of their own, if that would be with another
// node.
func (s *session) follow() {
	addr := s.addr.Load()
	if next := s.owner.nodes.next(); addr != nil && next != "" && next != *addr {
		s.retire()
	}
}

// retire takes no further calls. Those that the session has it still carries.
func (s *session) retire() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if s.owner.current == s {
		s.owner.current = nil
	}
	s.retired = true
	s.notify()
}

// pickedKey leads to where a picker notes which node it chose.
type pickedKey struct{}

// run carries calls until the stream breaks, or the session is retired and all are
// answered.
func (s *session) run() {
	ctx, cancel := context.WithCancel(context.WithValue(s.owner.ctx, pickedKey{}, &s.addr))
	defer cancel()
	stream, err := s.owner.stub.Session(ctx)
	if err != nil {
		s.end(err)
		return
	}
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		err = s.receive(stream)
	}()
	s.transmit(stream, broken)
	<-broken
	if errors.Is(err, io.EOF) {
		err = errEnded
	}
	s.end(err)
}

// end fails the calls that are left.
func (s *session) end(why error) {
	s.retire()
	if s.owner.ctx.Err() != nil {
		why = errClosed
	}
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	for _, p := range s.queue {
		p.finish(nil, why)
	}
	for _, p := range s.sent {
		p.finish(nil, why)
	}
	s.queue, s.sent = nil, nil
}

// transmit sends what is queued until the stream breaks. While one message is sent the
// next fills: there is no other wait.
func (s *session) transmit(stream admitv1alpha1.SessionService_SessionClient, broken <-chan struct{}) {
	for {
		req, over := s.take(time.Now())
		switch {
		case req != nil:
			if stream.Send(req) != nil {
				return // receive learns why
			}
			continue
		case over:
			_ = stream.CloseSend() // never fails
			return
		}
		select {
		case <-s.wake:
		case <-broken:
			return
		}
	}
}

// take returns the next message, or nil if there is nothing to send; over says that
// there won't be.
func (s *session) take(now time.Time) (req *admitv1alpha1.SessionRequest, over bool) {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	n, gone := s.fitting(), min(len(s.abandoned), maxOpen)
	if n+gone == 0 {
		return nil, s.retired && len(s.sent) == 0
	}
	req = &admitv1alpha1.SessionRequest{Abandoned: s.abandoned[:gone:gone], Calls: make([]*admitv1alpha1.SessionCall, n)}
	for i, p := range s.queue[:n] {
		if !p.deadline.IsZero() {
			p.frame.Timeout = durationpb.New(max(p.deadline.Sub(now), 0))
		}
		p.sentAt = now
		req.Calls[i] = p.frame
		s.sent[p.frame.GetId()] = p
	}
	clear(s.queue[:n]) // so that what was sent can be freed
	s.queue, s.abandoned = s.queue[n:], s.abandoned[gone:]
	return req, false
}

// fitting returns how many of the queued calls the next message takes.
func (s *session) fitting() (n int) {
	for size := 0; n < min(len(s.queue), maxMessageCalls); n++ {
		if size += s.queue[n].size; n > 0 && size > maxMessageBytes {
			break
		}
	}
	return n
}

// receive takes answers until the stream breaks, and returns why.
func (s *session) receive(stream admitv1alpha1.SessionService_SessionClient) error {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		if failure := s.settle(resp.GetAnswers()); failure != nil {
			s.trouble(failure)
		}
		if leader := resp.GetLeaderAddr(); leader != "" && s.owner.nodes != nil {
			s.owner.nodes.prefer(leader)
			s.follow()
		}
	}
}

// settle tells calls their answers. It returns a failure that means that the node could
// not answer, if there is one.
func (s *session) settle(answers []*admitv1alpha1.SessionAnswer) (trouble error) {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	s.heard = time.Now()
	for _, a := range answers {
		p := s.sent[a.GetId()]
		if p == nil {
			continue // its caller has gone
		}
		delete(s.sent, a.GetId())
		err := failureOf(a)
		if status.Code(err) == codes.Unavailable {
			trouble = err
		}
		p.finish(a, err)
	}
	if s.retired && len(s.sent) == 0 {
		s.notify()
	}
	return trouble
}

// failureOf returns the status of a call that failed, or nil.
func failureOf(a *admitv1alpha1.SessionAnswer) error {
	f := a.GetFailure()
	switch {
	case a.GetOutcome() == nil:
		return errNoOutcome
	case f == nil:
		return nil
	}
	return status.FromProto(&spb.Status{Code: f.GetCode(), Message: f.GetMessage(), Details: f.GetDetails()}).Err()
}
