package sidecar

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/admitd/admit/client"
)

// watchAgain is about how long to wait between a node's health and the next one's.
const watchAgain = 100 * time.Millisecond

// healthReporter tells grpc.health.v1 what is true of the cluster: every service, and the
// sidecar as a whole under the empty name, serves exactly while a node is reached that says
// that it does, until shutDown.
type healthReporter struct {
	server  *health.Server
	client  *client.Client
	names   []string
	metrics *metrics
	// serving is what was heard last, down that shutDown was called.
	serving, down atomic.Bool
	ctx           context.Context
	stop          context.CancelFunc
	done          chan struct{}

	mu sync.Mutex
	// decides ends when the cluster is lost.
	decides context.Context
	lose    context.CancelFunc
}

func newHealthReporter(c *client.Client, m *metrics) *healthReporter {
	ctx, stop := context.WithCancel(context.Background())
	h := &healthReporter{
		server: health.NewServer(), client: c, names: []string{""}, metrics: m,
		ctx: ctx, stop: stop, done: make(chan struct{}),
	}
	h.decides, h.lose = context.WithCancel(ctx)
	return h
}

// speakFor adds services that health is told of, before start.
func (h *healthReporter) speakFor(services map[string]grpc.ServiceInfo) {
	for name := range services {
		h.names = append(h.names, name)
	}
	h.set(false)
}

// start follows the cluster until close.
func (h *healthReporter) start() {
	go func() {
		defer close(h.done)
		for h.ctx.Err() == nil {
			h.watch()
			h.set(false)
			timer := time.NewTimer(watchAgain/2 + rand.N(watchAgain))
			select {
			case <-timer.C:
			case <-h.ctx.Done():
			}
			timer.Stop()
		}
	}()
}

// watch passes on what a node says of itself for as long as it does.
func (h *healthReporter) watch() {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	node, err := grpc_health_v1.NewHealthClient(h.client.Conn()).Watch(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return
	}
	for {
		resp, err := node.Recv()
		if err != nil {
			return
		}
		h.set(resp.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING)
	}
}

func (h *healthReporter) set(serving bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	h.metrics.serving.Set(0)
	if serving {
		status = grpc_health_v1.HealthCheckResponse_SERVING
		h.metrics.serving.Set(1)
	}
	h.serving.Store(serving)
	h.follow(serving)
	for _, name := range h.names {
		h.server.SetServingStatus(name, status)
	}
}

// follow has decides tell whether the cluster does.
func (h *healthReporter) follow(serving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !serving {
		h.lose()
	} else if h.decides.Err() != nil {
		h.decides, h.lose = context.WithCancel(h.ctx)
	}
}

// deciding is a context that ends when it is known that no node decides.
func (h *healthReporter) deciding() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.decides
}

// shutDown says NOT_SERVING from now on, whatever the cluster says.
func (h *healthReporter) shutDown() {
	h.down.Store(true)
	h.server.Shutdown()
}

// now says whether it serves.
func (h *healthReporter) now() bool { return h.serving.Load() && !h.down.Load() }

// close ends what start began.
func (h *healthReporter) close() {
	h.stop()
	<-h.done
}
