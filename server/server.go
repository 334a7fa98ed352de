package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/admitd/admit/internal/hangup"
	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/server/forward"
)

// Limits of the transport. A caller that sends or asks for more is refused
// before its request takes memory.
const (
	maxReceiveBytes = 4 << 20
	maxHeaderBytes  = 16 << 10
	// maxStreams is for one connection. A poll that is held open takes one, so
	// it allows many workers behind one connection.
	maxStreams = 1024
	// streamWorkers are goroutines that take calls one after the other: each call would
	// else begin with a stack that is too small for it. Calls beyond them, as of polls that
	// are held open, get a goroutine each.
	streamWorkers     = 256
	connectTimeout    = 10 * time.Second
	keepaliveInterval = time.Minute
	keepaliveTimeout  = 20 * time.Second
	// minPing is how often a client may ping.
	minPing = 10 * time.Second
)

// Server serves the API. It is made by New and used once: Serve, then Drain,
// then Stop.
type Server struct {
	grpc        *grpc.Server
	health      *healthReporter
	drain       *drain
	router      *router
	past        *laneHistory
	connections hangup.Connections

	// For calls over HTTP.
	api       *dispatcher
	around    *around
	httpCalls *prometheus.CounterVec
}

// Options are what depends on where a server runs.
type Options struct {
	// TLS is how connections are encrypted; nil for plain text.
	TLS *tls.Config
	// Guard says who calls; with nil everybody may.
	Guard Guard
	// Peers is what the node shows the API of the cluster's other nodes, to have the
	// leader decide: its own certificate. With nil it is alone.
	Peers credentials.TransportCredentials
	// Addr is where the node serves, and calls those nodes from.
	Addr net.Addr
	// Traces makes the spans of calls; with nil none is traced.
	Traces trace.TracerProvider
}

// New returns a server over a store. Its metrics go to reg; it is an error if
// reg has them already.
func New(store Store, opts Options, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	drain, gate, limiter := newDrain(), checkpoint{opts.Guard}, newLimiter()
	calls, decisions, sessions := newCallMetrics(), newMetrics(), newSessionMetrics()
	forwards, overHTTP := forward.NewMetrics(), newHTTPCounter()
	past, envoy, shares := newLaneHistory(store), newEnvoyMetrics(), newShareMetrics()
	collectors := slices.Concat(calls.collectors(), decisions.collectors(), sessions.collectors(), forwards.Collectors(), limiter.collectors(),
		past.collectors(), envoy.collectors(), shares.collectors(), []prometheus.Collector{overHTTP, newStateCollector(store)})
	if err := register(reg, collectors...); err != nil {
		return nil, err
	}
	debug := &debugger{log: log, nodeID: store.NodeID()}
	store = debuggedStore{store, debug}
	traces := newTraces(opts.Traces)
	if traces != nil {
		store = tracedStore{store}
	}
	router := &router{store: store, drain: drain, traces: traces, debug: debug}
	around := &around{log: callLog{log}, calls: calls, drain: drain, gate: gate, router: router, traces: traces}
	g := grpc.NewServer(slices.Concat(transportLimits(), encryption(opts.TLS), around.options(),
		[]grpc.ServerOption{grpc.InTapHandle(limiter.enter)})...)
	api, reads := newDispatcher(g, limiter, log, traces), reads{store, router}
	s := &Server{grpc: g, drain: drain, router: router, past: past, api: api, around: around, httpCalls: overHTTP}
	admitv1.RegisterAdmissionServiceServer(api, &admissionService{store: store, metrics: decisions, drain: drain})
	admitv1alpha1.RegisterSessionServiceServer(api, &sessionService{
		store: store, router: router, metrics: decisions, counts: sessions, drain: drain, log: log, debug: debug,
	})
	admitv1alpha1.RegisterShareServiceServer(api, &shareService{store: store, metrics: shares})
	admitv1.RegisterDueWorkServiceServer(api, newDueWorkService(store, reads))
	admitv1.RegisterPolicyServiceServer(api, &policyService{store: store, reads: reads, log: log})
	admitv1.RegisterStatusServiceServer(api, newStatusService(reads, past, debug))
	admitv1.RegisterClusterServiceServer(api, &clusterService{members: store, log: log})
	ratelimitv3.RegisterRateLimitServiceServer(api, &envoyService{store: store, metrics: envoy})
	if opts.Peers != nil {
		router.forwarder = forward.New(opts.Peers, opts.Addr, log, forwards)
		forwardv1.RegisterForwardServiceServer(api, newForwardService(store, api, gate, drain, forwards))
	}
	s.health = newHealthReporter(store, slices.Collect(maps.Keys(g.GetServiceInfo())))
	grpc_health_v1.RegisterHealthServer(g, s.health.server)
	reflection.Register(g)
	calls.know(g.GetServiceInfo())
	s.health.start()
	s.router.start()
	s.past.start()
	return s, nil
}

// transportLimits bounds what a caller can make the server do before a handler
// sees the request.
func transportLimits() []grpc.ServerOption {
	return []grpc.ServerOption{
		// Nothing may use the store once Stop has returned.
		grpc.WaitForHandlers(true),
		grpc.ForceServerCodecV2(newMarkingCodec()),
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}
}

func encryption(cfg *tls.Config) []grpc.ServerOption {
	if cfg == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(cfg))}
}

func register(reg prometheus.Registerer, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register the server's metrics: %w", err)
		}
	}
	return nil
}

// Serve answers calls on l until Stop, which may have come before, and then returns nil. It
// closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(countedListener{s.connections.Of(l)}); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

// SetNotServing turns health to NOT_SERVING for good, so that callers go
// elsewhere. Calls are still answered.
func (s *Server) SetNotServing() { s.health.shutDown() }

// Stop takes no new calls, ends the polls and watches that are held open and waits for the
// calls under way; those that ctx outruns are cut off. It returns when no
// handler runs any more. Stopping again changes nothing.
func (s *Server) Stop(ctx context.Context) {
	s.health.shutDown()
	s.drain.begin()
	s.connections.Silent()
	cut := context.AfterFunc(ctx, func() {
		s.connections.All()
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	cut()
	s.router.close()
	s.router.debug.close()
	s.past.close()
	s.health.close()
}
