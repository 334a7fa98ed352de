package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
	spb "google.golang.org/genproto/googleapis/rpc/status"
)

const (
	// A message takes no further calls once it holds this much.
	batchBytes = 64 << 10
	batchCalls = 256
	// partingTime is how long a call that is to end waits for its answer. The leader
	// may take a second to learn what became of it.
	partingTime = 3 * time.Second
)

// link is the stream to one node, opened when there is something to send, and the
// calls on it.
type link struct {
	addr    string
	conn    *grpc.ClientConn
	log     *slog.Logger
	metrics *Metrics
	// ctx ends with cut.
	ctx context.Context
	cut context.CancelFunc
	// wake tells that there is something to send.
	wake chan struct{}

	mu sync.Mutex
	// gone is set when nothing is sent any more.
	gone   bool
	lastID uint64
	// queue are the calls that have not been sent, in order; they take bytes.
	queue []*pending
	bytes int
	// sent are those on their way, abandoned the ids of those to end.
	sent      map[uint64]*pending
	abandoned []uint64
}

// pending is a call without an answer.
type pending struct {
	frame *forwardv1.Call
	// deadline is zero where there is none.
	deadline time.Time

	// done is told when there is an outcome, under the link's lock.
	done     func()
	response []byte
	err      error
}

func newPending(c Call) *pending {
	return &pending{frame: &forwardv1.Call{Method: c.Method, Request: c.Request, Principal: c.Principal, Traceparent: c.Traceparent}}
}

// do is Forwarder.Do.
func (l *link) do(ctx context.Context, c Call, stop <-chan struct{}) ([]byte, error) {
	p, done := newPending(c), make(chan struct{})
	p.done = func() { close(done) }
	p.deadline, _ = ctx.Deadline()
	if err := l.enter(p); err != nil {
		return nil, err
	}
	select {
	case <-done:
		return p.response, p.err
	case <-ctx.Done():
		return l.leave(p, ctx.Err())
	case <-stop:
	}
	l.part(p)
	select {
	case <-done:
		return p.response, p.err
	case <-ctx.Done():
		return l.leave(p, ctx.Err())
	}
}

// enter queues a call.
func (l *link) enter(p *pending) error {
	size := len(p.frame.Request)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case size > MaxRequest:
		return fmt.Errorf("%w: it has %d bytes", ErrTooLarge, size)
	case l.gone:
		return fmt.Errorf("%w: %s leads no longer", ErrNotSent, l.addr)
	case len(l.queue)+len(l.sent) >= maxCalls, l.bytes+size > maxQueuedBytes:
		return ErrBusy
	}
	l.lastID++
	p.frame.Id = l.lastID
	l.queue = append(l.queue, p)
	l.bytes += size
	l.metrics.open.Inc()
	l.notify()
	return nil
}

// part has a call end, and gives it up where no answer comes to that.
func (l *link) part(p *pending) {
	l.abandon(p)
	time.AfterFunc(partingTime, func() { _, _ = l.leave(p, context.Canceled) })
}

// abandon has a call end, and its answer come.
func (l *link) abandon(p *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unqueueLocked(p) {
		l.finishLocked(p, nil, fmt.Errorf("%w: this node is stopping", ErrNotSent))
	} else if l.sent[p.frame.Id] == p {
		l.abandoned = append(l.abandoned, p.frame.Id)
		l.notify()
	}
}

// leave gives a call up.
func (l *link) leave(p *pending, why error) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unqueueLocked(p):
		l.finishLocked(p, nil, why)
	case l.sent[p.frame.Id] == p:
		delete(l.sent, p.frame.Id)
		l.abandoned = append(l.abandoned, p.frame.Id)
		l.notify()
		l.finishLocked(p, nil, fmt.Errorf("%w: %w", ErrLost, why))
	}
	return p.response, p.err
}

func (l *link) unqueueLocked(p *pending) bool {
	i := slices.Index(l.queue, p)
	if i < 0 {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	l.bytes -= len(p.frame.Request)
	return true
}

func (l *link) finishLocked(p *pending, response []byte, err error) {
	l.metrics.open.Dec()
	p.response, p.err = response, err
	p.done()
}

func (l *link) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run carries calls until the link is cut: over one stream after the other, each
// opened when there is something to send.
func (l *link) run() {
	defer l.end()
	reached := true
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		err := l.session()
		if err != nil && reached && l.ctx.Err() == nil {
			l.log.Warn("the leader takes no forwarded calls", "addr", l.addr, "error", err)
		}
		reached = err == nil
	}
}

// end refuses what is left.
func (l *link) end() {
	l.mu.Lock()
	l.gone = true
	l.mu.Unlock()
	l.refuse(fmt.Errorf("%w: %s leads no longer", ErrNotSent, l.addr))
	if err := l.conn.Close(); err != nil {
		l.log.Warn("closing a connection failed", "addr", l.addr, "error", err)
	}
}

// session opens a stream and carries calls over it until it ends. It returns why no
// stream could be opened.
func (l *link) session() error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	stream, err := l.open(ctx, cancel)
	if err != nil {
		l.refuse(fmt.Errorf("%w: %v", ErrNotSent, err))
		return err
	}
	broken := make(chan struct{})
	var why error
	go func() {
		defer close(broken)
		why = l.receive(stream)
	}()
	l.transmit(stream, broken)
	cancel()
	<-broken
	if errors.Is(why, io.EOF) {
		// The node has answered all that it began.
		l.settle(fmt.Errorf("%w: %s is stopping", ErrNotSent, l.addr))
	} else {
		// Not wrapped, like the reasons above: what the transport says is no answer.
		l.settle(fmt.Errorf("%w: %v", ErrLost, why))
	}
	return nil
}

// open returns a stream that the leader has taken.
func (l *link) open(ctx context.Context, cancel context.CancelFunc) (forwardv1.ForwardService_ForwardClient, error) {
	late := time.AfterFunc(openWithin, cancel)
	stream, err := forwardv1.NewForwardServiceClient(l.conn).Forward(ctx)
	if err != nil {
		return nil, err
	}
	header, err := stream.Header()
	if err == nil && header == nil {
		_, err = stream.Recv() // says why it was not taken
	}
	if !late.Stop() && err == nil {
		err = context.DeadlineExceeded
	}
	return stream, err
}

// transmit sends what is queued until the stream breaks.
func (l *link) transmit(stream forwardv1.ForwardService_ForwardClient, broken <-chan struct{}) {
	for {
		for req := l.take(time.Now()); req != nil; req = l.take(time.Now()) {
			if stream.Send(req) != nil {
				return // receive learns why
			}
		}
		select {
		case <-l.wake:
		case <-broken:
			return
		}
	}
}

// take returns the next message, or nil if there is nothing to send. What is to end
// has messages of its own: a request may leave no room for it.
func (l *link) take(now time.Time) *forwardv1.ForwardRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := min(len(l.abandoned), batchCalls); n > 0 {
		req := &forwardv1.ForwardRequest{Abandoned: l.abandoned[:n:n]}
		l.abandoned = l.abandoned[n:]
		return req
	}
	if len(l.queue) == 0 {
		return nil
	}
	req := &forwardv1.ForwardRequest{}
	size, n := 0, 0
	for ; n < len(l.queue) && n < batchCalls; n++ {
		p := l.queue[n]
		own := len(p.frame.Request)
		if n > 0 && size+own > batchBytes {
			break
		}
		size += own
		if !p.deadline.IsZero() {
			p.frame.Timeout = durationpb.New(max(p.deadline.Sub(now), 0))
		}
		req.Calls = append(req.Calls, p.frame)
		l.sent[p.frame.Id] = p
	}
	clear(l.queue[:n]) // so that what was sent can be freed
	l.queue = l.queue[n:]
	l.bytes -= size
	return req
}

// receive takes answers until the stream breaks, and returns why.
func (l *link) receive(stream forwardv1.ForwardService_ForwardClient) error {
	for {
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		l.mu.Lock()
		for _, a := range resp.GetAnswers() {
			if p := l.sent[a.GetId()]; p != nil {
				delete(l.sent, a.GetId())
				l.finishLocked(p, a.GetResponse(), failureOf(a))
			}
		}
		l.mu.Unlock()
	}
}

// failureOf returns the error that an answer tells, or nil.
func failureOf(a *forwardv1.Answer) error {
	f := a.GetFailure()
	if f == nil {
		return nil
	}
	told := status.FromProto(&spb.Status{Code: f.GetCode(), Message: f.GetMessage(), Details: f.GetDetails()}).Err()
	if told == nil {
		return fmt.Errorf("%w: the leader's makes no sense", ErrLost)
	}
	return told
}

// settle fails what was sent on a stream that has ended.
func (l *link) settle(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.sent {
		delete(l.sent, id)
		l.finishLocked(p, nil, why)
	}
	l.abandoned = nil
	if len(l.queue) > 0 {
		l.notify()
	}
}

// refuse fails what is queued.
func (l *link) refuse(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.queue {
		l.finishLocked(p, nil, why)
	}
	l.queue, l.bytes = nil, 0
}
