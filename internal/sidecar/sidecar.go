package sidecar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/hangup"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// Limits of the transport, as a node has them.
const (
	maxReceiveBytes = 4 << 20
	maxHeaderBytes  = 16 << 10
	// maxStreams is for one connection.
	maxStreams        = 1024
	connectTimeout    = 10 * time.Second
	keepaliveInterval = time.Minute
	keepaliveTimeout  = 20 * time.Second
	minPing           = 10 * time.Second
)

// Options are how a sidecar keeps permits.
type Options struct {
	// Grace is how long a worker may be without a connection before what it holds is
	// given back.
	Grace time.Duration
	// MaxLifetime is for how long a permit is renewed. 0 means without end.
	MaxLifetime time.Duration
	// MaxPermits is how many permits are kept, those included that calls under way may
	// be granted.
	MaxPermits int
	// MaxShares is for how many keys tokens are held, 0 that none are.
	MaxShares int
	// Node names the sidecar among those that share tokens, as NodeShare does with its
	// parts of the fleet. An empty name is made up, parts that are 0 are 1.
	Node                 string
	NodeOwned, NodeTotal int64
}

// node is who leases.
func (o Options) node() *admitv1.NodeShare {
	n := &admitv1.NodeShare{Id: o.Node, Owned: max(o.NodeOwned, 1), Total: max(o.NodeTotal, 1)}
	if n.Id == "" {
		host, _ := os.Hostname() // the rest alone tells it from others
		n.Id = host[:min(len(host), 64)] + "-" + rand.Text()
	}
	return n
}

// jittered adds up to a tenth to a pause.
func jittered(d time.Duration) time.Duration { return d + mathrand.N(d/10+1) }

// Server is a sidecar. It is made by New and used once: Serve, then Stop.
type Server struct {
	grpc   *grpc.Server
	gate   *gate
	table  *table
	keeper *keeper
	lender *lender
	health *healthReporter
	open   hangup.Connections
}

// New returns a sidecar that asks the cluster through up, which is to be a client with a
// session and to be closed after Stop. Its metrics go to reg.
func New(up *client.Client, opts Options, log *slog.Logger, reg prometheus.Registerer) (*Server, error) {
	m := newMetrics()
	s := &Server{gate: newGate(m), table: newTable(opts, m)}
	s.keeper = newKeeper(up, s.table, m, log)
	workers := &connections{table: s.table}
	s.grpc = grpc.NewServer(
		grpc.WaitForHandlers(true), // nothing may use the table once Stop has returned
		grpc.MaxRecvMsgSize(maxReceiveBytes),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveInterval, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		grpc.StatsHandler(workers),
		grpc.UnaryInterceptor(s.gate.unary), grpc.StreamInterceptor(s.gate.stream),
	)
	calls := &upstream{client: up, gate: s.gate, retries: m.retries}
	s.health = newHealthReporter(up, m)
	book := newShareBook(opts.MaxShares, time.Now, jittered, m)
	s.lender = newLender(up, opts.node(), book, m, log)
	answers := &admission{up: calls, table: s.table, rates: &rates{up: calls, book: book, gate: s.gate, health: s.health, metrics: m}}
	admitv1.RegisterAdmissionServiceServer(s.grpc, answers)
	admitv1alpha1.RegisterSessionServiceServer(s.grpc, &sessions{gate: s.gate, admission: answers})
	for _, desc := range []*grpc.ServiceDesc{
		&admitv1.DueWorkService_ServiceDesc, &admitv1.StatusService_ServiceDesc, &ratelimitv3.RateLimitService_ServiceDesc,
	} {
		passed, err := calls.pass(desc)
		if err != nil {
			return nil, err
		}
		s.grpc.RegisterService(passed, nil)
	}
	s.health.speakFor(s.grpc.GetServiceInfo())
	grpc_health_v1.RegisterHealthServer(s.grpc, s.health.server)
	reflection.Register(s.grpc)
	if err := m.register(reg, &limits{gate: s.gate, table: s.table, connections: workers, book: book}); err != nil {
		return nil, err
	}
	s.keeper.start()
	s.lender.start()
	s.health.start()
	return s, nil
}

// Serve answers calls on l until Stop, and then returns nil. It closes l.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(s.open.Of(l)); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // before it had begun
		return fmt.Errorf("serve gRPC on %s: %w", l.Addr(), err)
	}
	return nil
}

// Serving says whether the cluster decides, as far as is known here.
func (s *Server) Serving() bool { return s.health.now() }

// Stop takes no new calls, ends those that are held open, waits for the others, and gives
// back what is left of shares, and what workers hold whose connections had gone before.
// What the others hold is left to them. Calls that ctx outruns are cut off, and what is
// not given back by then is left to expire. Nothing runs any more when it returns.
func (s *Server) Stop(ctx context.Context) {
	s.health.shutDown()
	s.table.freeze()
	s.gate.close()
	s.open.Silent()
	inTime := context.AfterFunc(ctx, func() {
		s.gate.cut()
		s.open.All()
		s.grpc.Stop()
	})
	s.grpc.GracefulStop()
	inTime()
	s.keeper.close(ctx)
	s.lender.close(ctx)
	s.health.close()
}
