package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/admitd/admit/internal/localaddr"
)

var (
	// ErrNotSent says that the leader was not told of the call. Nothing was done.
	ErrNotSent = errors.New("the call was not forwarded")
	// ErrLost says that the call was on its way and no answer came: it may have had
	// effect.
	ErrLost = errors.New("no answer came to a forwarded call")
	// ErrBusy says that as many calls as may be are on their way. Nothing was done.
	ErrBusy = errors.New("too many forwarded calls have no answer yet")
	// ErrTooLarge says that a request is larger than any that is forwarded. Nothing
	// was done.
	ErrTooLarge = errors.New("the request is too large to be forwarded")
)

const (
	// maxCalls bounds the calls without an answer, and maxQueuedBytes what those
	// that have not been sent take.
	maxCalls       = 16384
	maxQueuedBytes = 64 << 20
	// MaxRequest bounds a request, in bytes. The rest of a message of 4 MiB, the
	// most that a node takes from anybody, is for what stands beside it.
	MaxRequest = 4<<20 - 4<<10
	// maxResponse bounds a message of answers. Nodes trust each other that far: a
	// thousand claims with all that is held take a small part of it.
	maxResponse = 64 << 20

	// openWithin bounds the time until a leader takes a stream; calls that wait for
	// that are then refused.
	openWithin = 2 * time.Second
	// cutAfter is how long the calls that a node which leads no longer was sent may
	// take to be answered by it.
	cutAfter = time.Second

	// pingEvery is above what a node allows, with room for pings that are held up on
	// the way and come too close to the next.
	pingEvery  = 12 * time.Second
	pingWithin = 3 * time.Second
)

// Call is a call of the API on its way.
type Call struct {
	// Method is the full name of the method.
	Method string
	// Request is the request, encoded, at most MaxRequest bytes.
	Request []byte
	// Principal is who calls.
	Principal string
	// Traceparent is the call's place in a trace, or "".
	Traceparent string
}

// Forwarder sends calls to whoever leads. Its methods may be called concurrently.
type Forwarder struct {
	creds   credentials.TransportCredentials
	at      net.Addr
	log     *slog.Logger
	metrics *Metrics
	running sync.WaitGroup

	mu     sync.Mutex
	closed bool
	leader string
	links  map[string]*link
	prune  *time.Timer
}

// New returns a forwarder that shows leaders creds, the node's own certificate, and
// dials them from where the node serves.
func New(creds credentials.TransportCredentials, at net.Addr, log *slog.Logger, m *Metrics) *Forwarder {
	f := &Forwarder{creds: creds, at: at, log: log, metrics: m, links: make(map[string]*link)}
	f.prune = time.AfterFunc(time.Hour, f.cutOthers)
	f.prune.Stop()
	return f
}

// Do has the node at addr, which was said to lead, answer a call. It blocks until
// there is an answer or ctx ends. When stop is closed the call is to end as if its
// caller had gone, but Do goes on waiting for what the leader says to that.
//
// Errors: the status that the leader answered, ErrNotSent, ErrBusy, ErrTooLarge,
// ErrLost, or ctx's own where the call had not been sent.
func (f *Forwarder) Do(ctx context.Context, addr string, c Call, stop <-chan struct{}) ([]byte, error) {
	l, err := f.link(addr)
	if err != nil {
		return nil, err
	}
	response, err := l.do(ctx, c, stop)
	f.metrics.count(err)
	return response, err
}

// Start is Do for who does not wait: done is told the outcome, once. It must not block,
// nor call the forwarder. A deadline that is not zero is passed on; the call goes on
// behind it. abandon, which is called once, ends the call as stop does, and done is told
// what the leader says to that.
func (f *Forwarder) Start(addr string, c Call, deadline time.Time, done func(response []byte, err error)) (abandon func()) {
	p := newPending(c)
	p.deadline = deadline
	p.done = func() {
		f.metrics.count(p.err)
		done(p.response, p.err)
	}
	l, err := f.link(addr)
	if err == nil {
		err = l.enter(p)
	}
	if err != nil {
		p.err = err
		p.done()
		return func() {}
	}
	return func() { l.part(p) }
}

// Lead says that the node at addr leads, or with "" that nobody is known to. What
// another one was sent has a second to be answered.
func (f *Forwarder) Lead(addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.leader != addr && !f.closed {
		f.leader = addr
		f.prune.Reset(cutAfter)
	}
}

// cutOthers ends the links to nodes that don't lead.
func (f *Forwarder) cutOthers() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for addr, l := range f.links {
		if addr != f.leader {
			l.cut()
			delete(f.links, addr)
		}
	}
}

// Close ends all calls and waits until nothing runs any more.
func (f *Forwarder) Close() {
	f.mu.Lock()
	f.closed = true
	f.prune.Stop()
	for _, l := range f.links {
		l.cut()
	}
	f.mu.Unlock()
	f.running.Wait()
}

// link returns the link to a node.
func (f *Forwarder) link(addr string) (*link, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, fmt.Errorf("%w: this node is stopping", ErrNotSent)
	}
	if l := f.links[addr]; l != nil {
		return l, nil
	}
	conn, err := f.dial(addr)
	if err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNotSent, err)
	}
	ctx, cut := context.WithCancel(context.Background())
	l := &link{
		addr: addr, conn: conn, log: f.log, metrics: f.metrics, ctx: ctx, cut: cut,
		wake: make(chan struct{}, 1), sent: make(map[uint64]*pending),
	}
	f.links[addr] = l
	if addr != f.leader {
		f.prune.Reset(cutAfter)
	}
	f.running.Go(l.run)
	return l, nil
}

func (f *Forwarder) dial(addr string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(f.creds),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			d := net.Dialer{LocalAddr: localaddr.For(f.at, addr)}
			return d.DialContext(ctx, "tcp", addr)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxResponse)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: openWithin,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingEvery, Timeout: pingWithin}))
}
