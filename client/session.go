package client

import (
	"context"
	"sync"
	"unicode/utf8"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

const (
	// maxOpen is how many calls of a client may have no answer, as many as a node
	// takes on a session. Some places are kept from calls that may wait in line, for
	// the Releases that these wait for.
	maxOpen   = 4096
	maxInLine = 3072
	// A message takes no further calls once it holds this much, and no call above a
	// size that makes no sense.
	maxMessageCalls = 1000
	maxMessageBytes = 256 << 10
	maxCallBytes    = 128 << 10
)

// WithSession has the client carry Acquire, Renew and Release, those of Do and of a
// Worker too, on one stream instead of a call of gRPC for each: calls that are made
// while others are sent share the next message. It is for many callers at once, and
// none of them notices: calls are retried, follow the leader, and end with their
// contexts as they do otherwise. A session goes by admit.v1alpha1, which all nodes have
// to know. Interceptors of gRPC see one stream and no calls.
//
// At most 4096 calls of the client are under way on it, 3072 of them with MaxWait; a
// further one waits until one ends.
func WithSession() Option {
	return func(c *config) { c.session = true }
}

// sessions carry a client's calls: one that is current takes those that come, and those
// that it took the place of go on until theirs are answered.
type sessions struct {
	stub admitv1alpha1.SessionServiceClient
	// alone is for calls that would spoil a message.
	alone PermitCalls
	// nodes is nil where gRPC alone knows them.
	nodes  *cluster
	traces *traces
	// open and inLine have a token for each call under way.
	open, inLine chan struct{}

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	// mu guards what follows and all of each session.
	mu      sync.Mutex
	current *session
	lastID  uint64
}

func newSessions(conn grpc.ClientConnInterface, alone PermitCalls, nodes *cluster, traces *traces) *sessions {
	ctx, cancel := context.WithCancel(context.Background())
	return &sessions{
		stub: admitv1alpha1.NewSessionServiceClient(conn), alone: alone, nodes: nodes, traces: traces,
		open: make(chan struct{}, maxOpen), inLine: make(chan struct{}, maxInLine), ctx: ctx, cancel: cancel,
	}
}

// close ends all calls and waits until nothing runs any more.
func (ss *sessions) close() {
	ss.mu.Lock()
	ss.cancel()
	ss.mu.Unlock()
	ss.running.Wait()
}

// Acquire implements PermitCalls.
func (ss *sessions) Acquire(ctx context.Context, in *admitv1.AcquireRequest, opts ...grpc.CallOption) (*admitv1.AcquireResponse, error) {
	size, fits := weigh(in.GetPool(), in.GetTenant(), in.GetCategory(), in.GetLockKey(), in.GetDedupeKey(), in.GetRequestId(), in.GetWorkerId())
	if !fits {
		return ss.alone.Acquire(ctx, in, opts...)
	}
	call := &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Acquire{Acquire: in}}
	a, err := ss.do(ctx, call, size, in.GetMaxWait() != nil)
	return a.GetAcquire(), err
}

// Renew implements PermitCalls.
func (ss *sessions) Renew(ctx context.Context, in *admitv1.RenewRequest, opts ...grpc.CallOption) (*admitv1.RenewResponse, error) {
	size, fits := weigh(in.GetTokens()...)
	if !fits {
		return ss.alone.Renew(ctx, in, opts...)
	}
	call := &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Renew{Renew: in}}
	a, err := ss.do(ctx, call, size, false)
	return a.GetRenew(), err
}

// Release implements PermitCalls.
func (ss *sessions) Release(ctx context.Context, in *admitv1.ReleaseRequest, opts ...grpc.CallOption) (*admitv1.ReleaseResponse, error) {
	size, fits := weigh(in.GetToken(), in.GetBucket())
	if !fits {
		return ss.alone.Release(ctx, in, opts...)
	}
	call := &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Release{Release: in}}
	a, err := ss.do(ctx, call, size, false)
	return a.GetRelease(), err
}

// weigh returns what a request takes of a message, about, and whether it fits in one:
// what can't be encoded, or is larger than any that makes sense, fails by itself and not
// those beside it.
func weigh(texts ...string) (size int, fits bool) {
	const fixed = 64
	size = fixed
	for _, text := range texts {
		if size += len(text) + 2; !utf8.ValidString(text) {
			return 0, false
		}
	}
	return size, size <= maxCallBytes
}

// do has one call answered. Errors are those of a call by itself.
func (ss *sessions) do(ctx context.Context, call *admitv1alpha1.SessionCall, size int, waits bool) (a *admitv1alpha1.SessionAnswer, err error) {
	if span := ss.traces.carry(ctx, call); span != nil {
		defer func() { endSpan(span, err) }()
	}
	if waits {
		if err := enter(ctx, ss.inLine); err != nil {
			return nil, err
		}
		defer func() { <-ss.inLine }()
	}
	if err := enter(ctx, ss.open); err != nil {
		return nil, err
	}
	defer func() { <-ss.open }()
	p := &sessionCall{frame: call, size: size, done: make(chan struct{})}
	p.deadline, _ = ctx.Deadline()
	s := ss.enter(p)
	select {
	case <-p.done:
	case <-ctx.Done():
		s.leave(p, ctx.Err())
	}
	return p.answer, p.err
}

// enter takes a place.
func enter(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// enter queues a call on the current session, and begins one if there is none.
func (ss *sessions) enter(p *sessionCall) *session {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s := ss.current
	if s == nil {
		s = &session{owner: ss, wake: make(chan struct{}, 1), sent: make(map[uint64]*sessionCall)}
		if ss.ctx.Err() != nil {
			p.finish(nil, errClosed)
			return s
		}
		ss.current = s
		ss.running.Go(s.run)
	}
	ss.lastID++
	p.frame.Id = ss.lastID
	s.queue = append(s.queue, p)
	s.notify()
	return s
}

var (
	errClosed = status.Error(codes.Canceled, "the client is closed")
	errEnded  = status.Error(codes.Unavailable, "the session ended before the call was begun")
	// errNoOutcome is for an answer that a later version knows of.
	errNoOutcome = status.Error(codes.Internal, "the call was answered with nothing that is known here")
)
