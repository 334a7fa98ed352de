package server

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// limiter refuses calls while more are under way than are answered in crowdedTime, and
// more than alwaysOpen, or leastOpen once they take longer than crowdedTime. It does so
// when a call's headers are there, before anything else of it is looked at: who is asked
// for too much must spend next to nothing on what it can't do, or it does nothing else.
// What frees room is never refused. Nor is the call of a connection that has less than its
// equal part under way: who sends little does not pay for who floods.
//
// A call that waits, for work or in line, is not under way: it costs nothing meanwhile,
// and there are other limits to those.
type limiter struct {
	// kinds are the methods that are counted, by full name; of Serve on read only.
	kinds map[string]callKind
	// open are the calls under way, busy the connections that have any.
	open, busy atomic.Int64
	span       atomic.Pointer[span]
	// takes is for how long, in nanoseconds, a call was under way lately, of those that
	// were answered well: what waits for a leader in vain does not say how busy this node
	// is. Calls are late from when that is over crowdedTime until it is a quarter of it:
	// as many as are answered in crowdedTime take about that. Of updates at the same time
	// some are lost.
	takes   atomic.Int64
	late    atomic.Bool
	refused prometheus.Counter
	refusal error
}

// callKind says what happens to a method's calls where there are too many.
type callKind uint8

const (
	uncounted callKind = iota
	counted
	refusable
)

const (
	// crowdedTime is about how long a call is under way at most.
	crowdedTime = 100 * time.Millisecond
	// alwaysOpen is how many calls may be under way as long as they are answered in time: as
	// many as a connection can have.
	alwaysOpen = maxStreams
	// leastOpen is how many may be once they are not.
	leastOpen = 128
	// lately is how many calls it takes for takes to follow.
	lately = 8
)

// span is a time of at least crowdedTime.
type span struct {
	began    time.Time
	answered atomic.Int64
	// decided counts those that were answered well.
	decided atomic.Int64
	// most is how many calls may be under way, alwaysOpen or leastOpen aside.
	most int64
}

func newLimiter() *limiter {
	l := &limiter{
		kinds: make(map[string]callKind),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_calls_refused_total", Help: "Calls refused because too many were under way.",
		}),
		refusal: statusError(&raftstore.OverloadedError{Queue: "calls", RetryAfter: crowdedTime}, true),
	}
	l.span.Store(&span{began: time.Now()})
	return l
}

func (l *limiter) collectors() []prometheus.Collector {
	return []prometheus.Collector{l.refused, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "admit_calls_open", Help: "Calls under way, those aside that wait for work or in line.",
	}, func() float64 { return float64(l.open.Load()) })}
}

// kindOf says what happens to a method's calls. What operators need is not counted.
func kindOf(service, method string) callKind {
	switch service {
	case admitv1.AdmissionService_ServiceDesc.ServiceName:
		switch method {
		case "Renew", "Release", "BatchRelease":
			return counted
		}
		return refusable
	case admitv1.StatusService_ServiceDesc.ServiceName:
		if method == "DebugPool" {
			return uncounted
		}
		return refusable
	case admitv1.DueWorkService_ServiceDesc.ServiceName, admitv1alpha1.ShareService_ServiceDesc.ServiceName,
		ratelimitv3.RateLimitService_ServiceDesc.ServiceName:
		return refusable
	}
	return uncounted
}

// around returns the service with its calls leaving the limiter when they end.
func (l *limiter) around(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	out := *desc
	out.Methods = slices.Clone(desc.Methods)
	for i := range out.Methods {
		m := &out.Methods[i]
		kind, handler := kindOf(desc.ServiceName, m.MethodName), m.Handler
		if kind == uncounted {
			continue
		}
		l.kinds["/"+desc.ServiceName+"/"+m.MethodName] = kind
		m.Handler = func(srv any, ctx context.Context, dec func(any) error, around grpc.UnaryServerInterceptor) (any, error) {
			begin(ctx)
			defer leave(ctx, false)
			resp, err := handler(srv, ctx, dec, around)
			leave(ctx, err == nil)
			return resp, err
		}
	}
	return &out
}

// enter lets a call in whose headers have come, or refuses it.
func (l *limiter) enter(ctx context.Context, call *tap.Info) (context.Context, error) {
	kind := l.kinds[call.FullMethodName]
	if kind == uncounted || ctx.Err() != nil { // what has ended already gets no handler
		return ctx, nil
	}
	p, _ := peer.FromContext(ctx)
	from, ok := p.Addr.(*origin)
	if !ok {
		return ctx, nil
	}
	if most := l.most(time.Now()); kind == refusable && l.open.Load() >= most && from.open.Load()*max(l.busy.Load(), 1) >= most {
		l.refused.Inc()
		return nil, l.refusal
	}
	l.open.Add(1)
	if from.open.Add(1) == 1 {
		l.busy.Add(1)
	}
	t := &ticket{limiter: l, from: from, since: time.Now()}
	t.begin = context.AfterFunc(ctx, func() { t.leave(false) })
	return context.WithValue(ctx, ticketKey{}, t), nil
}

// most is how many calls may be under way now.
func (l *limiter) most(now time.Time) int64 {
	s := l.span.Load()
	if long := now.Sub(s.began); long >= crowdedTime {
		if s.decided.Load() == 0 {
			l.takes.Store(0)
			l.late.Store(false)
		}
		next := &span{began: now, most: int64(float64(s.answered.Load()) * float64(crowdedTime) / float64(long))}
		l.span.CompareAndSwap(s, next)
		s = l.span.Load()
	}
	if l.late.Load() {
		return max(s.most, leastOpen)
	}
	return max(s.most, alwaysOpen)
}

// took notes for how long a call was under way that was answered well.
func (l *limiter) took(long time.Duration) {
	l.span.Load().decided.Add(1)
	mean := l.takes.Load()
	mean += (int64(long) - mean) / lately
	l.takes.Store(mean)
	switch {
	case mean > int64(crowdedTime):
		l.late.Store(true)
	case mean <= int64(crowdedTime/4):
		l.late.Store(false)
	}
}

// ticket is a call that was let in.
type ticket struct {
	limiter *limiter
	from    *origin
	since   time.Time
	left    atomic.Bool
	// begin says that the call has a handler. One that gRPC ends before leaves with that.
	begin func() bool
}

type ticketKey struct{}

// begin says that a call's handler begins.
func begin(ctx context.Context) {
	if t, ok := ctx.Value(ticketKey{}).(*ticket); ok {
		t.begin()
	}
}

// leave says that a call is over, or begins to wait, and whether something was decided
// for it. It may be said again.
func leave(ctx context.Context, decided bool) {
	if t, ok := ctx.Value(ticketKey{}).(*ticket); ok {
		t.leave(decided)
	}
}

func (t *ticket) leave(decided bool) {
	if t.left.Swap(true) {
		return
	}
	t.limiter.open.Add(-1)
	t.limiter.span.Load().answered.Add(1)
	if decided {
		t.limiter.took(time.Since(t.since))
	}
	if t.from.open.Add(-1) == 0 {
		t.limiter.busy.Add(-1)
	}
}

// origin is the other side of a connection, with the calls that it has under way.
type origin struct {
	net.Addr
	open atomic.Int64
}

// countedListener has connections come from origins.
type countedListener struct{ net.Listener }

func (l countedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &countedConn{conn, &origin{Addr: conn.RemoteAddr()}}, nil
}

type countedConn struct {
	net.Conn
	from *origin
}

func (c *countedConn) RemoteAddr() net.Addr { return c.from }
