package server

import (
	"context"

	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// healthReporter tells grpc.health.v1 what is true: every service, and the
// server as a whole under the empty name, serves exactly while the store is
// ready, until shutDown.
type healthReporter struct {
	server *health.Server
	store  Store
	names  []string
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

func newHealthReporter(store Store, services []string) *healthReporter {
	ctx, cancel := context.WithCancel(context.Background())
	h := &healthReporter{
		server: health.NewServer(),
		store:  store,
		names:  append([]string{""}, services...),
		ctx:    ctx,
		cancel: cancel,
		done:   make(chan struct{}),
	}
	h.set(false)
	return h
}

// start follows the store until close.
func (h *healthReporter) start() {
	go func() {
		defer close(h.done)
		for {
			// The channel is taken first, so that no change is missed.
			changed := h.store.ReadyChanged()
			h.set(h.store.Ready())
			select {
			case <-changed:
			case <-h.ctx.Done():
				return
			}
		}
	}()
}

func (h *healthReporter) set(ready bool) {
	status := grpc_health_v1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = grpc_health_v1.HealthCheckResponse_SERVING
	}
	for _, name := range h.names {
		h.server.SetServingStatus(name, status)
	}
}

// shutDown says NOT_SERVING from now on, whatever the store says.
func (h *healthReporter) shutDown() { h.server.Shutdown() }

// close ends what start began.
func (h *healthReporter) close() {
	h.cancel()
	<-h.done
}
