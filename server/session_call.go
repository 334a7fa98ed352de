package server

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/repeat"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// sessionCall is one call of a session. What the interceptors see to for calls that
// come by themselves it does itself: a line in the log, a status, and that a panic is
// its own failure alone.
type sessionCall struct {
	raftstore.Submission
	session *session
	in      *admitv1alpha1.SessionCall
	timer   timer
	// span is nil where the call is not traced.
	span trace.Span

	// decided and err are the store's, or response and err the leader's.
	decided  raftstore.Answer
	response []byte
	err      error
	// leader is who it was passed on to, if it was.
	leader *raftstore.NotLeaderError

	// abandon ends it at the leader; session.mu guards it, and withdrawn, which is set
	// when it is to end.
	abandon   func()
	withdrawn bool
}

// prepare reads the request.
func (c *sessionCall) prepare() (err error) {
	defer recovered(&err)
	c.Done = c.told
	if t := c.in.GetTimeout(); t != nil {
		c.Deadline = c.timer.began.Add(t.AsDuration())
	}
	switch in := c.in.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		c.Request, err = readAcquire(in.Acquire)
	case *admitv1alpha1.SessionCall_Renew:
		c.Op, err = readRenew(in.Renew)
	case *admitv1alpha1.SessionCall_Release:
		c.Op, err = readRelease(in.Release)
	default:
		check := newChecker()
		check.fail("request", "is required")
		return check.err()
	}
	if told := c.in.GetTraceparent(); told != "" {
		method, req := c.request()
		c.span = c.session.router.traces.carried(c.session.ctx, told, method, req)
		c.Span = c.span
	}
	return err
}

// told takes the store's answer. It is called while the state is locked.
func (c *sessionCall) told(a raftstore.Answer, err error) {
	c.decided, c.err = a, err
	c.session.settled(c)
}

// waits says whether the call may be in line.
func (c *sessionCall) waits() bool { return waits(c.in.GetAcquire()) }

// passOn has the leader answer the call, if this node can't. It is asked once.
func (c *sessionCall) passOn() bool {
	s := c.session
	leader, elsewhere := s.router.elsewhere(s.ctx, c.err)
	if !elsewhere || c.leader != nil {
		return false
	}
	method, req := c.request()
	shorten(req, time.Since(c.timer.began))
	out, err := outgoing(s.ctx, method, req)
	if err != nil {
		c.err = err
		return false
	}
	s.mu.Lock()
	withdrawn := c.withdrawn
	s.mu.Unlock()
	if withdrawn {
		c.err = context.Canceled
		return false
	}
	c.leader = leader
	span := s.router.traces.onward(c.traced(), method, leader.LeaderAddr)
	out.Traceparent = traceparent(span)
	abandon := s.router.forwarder.Start(leader.LeaderAddr, out, c.Deadline, func(response []byte, err error) {
		c.response, c.err = response, s.router.explain(s.ctx, leader, err, c.waits())
		endOnward(span, c.err)
		s.settled(c)
	})
	s.mu.Lock()
	c.abandon = abandon
	withdrawn = c.withdrawn
	s.mu.Unlock()
	if withdrawn {
		abandon() // meanwhile
	}
	return true
}

// traced is the call's context, as far as traces go.
func (c *sessionCall) traced() context.Context {
	if c.span == nil {
		return c.session.ctx
	}
	return trace.ContextWithSpan(c.session.ctx, c.span)
}

// request is the call as one that comes by itself.
func (c *sessionCall) request() (method string, req proto.Message) {
	switch in := c.in.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		return admitv1.AdmissionService_Acquire_FullMethodName, in.Acquire
	case *admitv1alpha1.SessionCall_Renew:
		return admitv1.AdmissionService_Renew_FullMethodName, in.Renew
	case *admitv1alpha1.SessionCall_Release:
		return admitv1.AdmissionService_Release_FullMethodName, in.Release
	}
	return "", nil
}

// answer is what the caller is told.
func (c *sessionCall) answer() *admitv1alpha1.SessionAnswer {
	out := &admitv1alpha1.SessionAnswer{Id: c.in.GetId()}
	err := c.err
	if c.leader == nil && c.session.debug.pools.Load() != nil {
		c.session.debug.decided(c.session.ctx, []raftstore.Request{c.Request}, []raftstore.Answer{c.decided}, err)
	}
	switch {
	case err != nil:
		err = c.session.drain.explain(c.session.ctx, err)
	case c.leader != nil:
		err = c.forwarded(out)
	default:
		err = c.result(out)
	}
	method, req := c.request()
	if err != nil {
		err = statusError(err, repeat.Safe(req))
		out.Outcome = &admitv1alpha1.SessionAnswer_Failure{Failure: writeStatus(err)}
	}
	endCall(c.span, payload(out), err)
	c.session.counts.ended(method, callLog{c.session.log}.ended(c.traced(), method, c.timer.began, err))
	return out
}

// payload is what a call was answered, or nil.
func payload(out *admitv1alpha1.SessionAnswer) any {
	switch o := out.GetOutcome().(type) {
	case *admitv1alpha1.SessionAnswer_Acquire:
		return o.Acquire
	case *admitv1alpha1.SessionAnswer_Renew:
		return o.Renew
	case *admitv1alpha1.SessionAnswer_Release:
		return o.Release
	}
	return nil
}

// result writes what the store decided.
func (c *sessionCall) result(out *admitv1alpha1.SessionAnswer) (err error) {
	defer recovered(&err)
	switch c.Op.(type) {
	case *admission.Acquire:
		a := &admitv1alpha1.SessionAnswer_Acquire{}
		out.Outcome = a
		a.Acquire, err = answerAcquire(c.timer, c.in.GetAcquire().GetPool(), c.decided)
	case *admission.Renew:
		a := &admitv1alpha1.SessionAnswer_Renew{}
		out.Outcome = a
		a.Renew, err = answerRenew(c.decided)
	case *admission.Release:
		a := &admitv1alpha1.SessionAnswer_Release{}
		out.Outcome = a
		a.Release, err = answerRelease(c.decided)
	}
	return err
}

// forwarded writes what the leader answered.
func (c *sessionCall) forwarded(out *admitv1alpha1.SessionAnswer) error {
	var response proto.Message
	switch c.in.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		a := &admitv1.AcquireResponse{}
		response, out.Outcome = a, &admitv1alpha1.SessionAnswer_Acquire{Acquire: a}
	case *admitv1alpha1.SessionCall_Renew:
		a := &admitv1.RenewResponse{}
		response, out.Outcome = a, &admitv1alpha1.SessionAnswer_Renew{Renew: a}
	case *admitv1alpha1.SessionCall_Release:
		a := &admitv1.ReleaseResponse{}
		response, out.Outcome = a, &admitv1alpha1.SessionAnswer_Release{Release: a}
	}
	if err := proto.Unmarshal(c.response, response); err != nil {
		return fmt.Errorf("decode the leader's answer: %w", err)
	}
	return nil
}
