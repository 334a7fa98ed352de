// Package node is the composition root: it makes one node of a store, the gRPC
// server over it and the HTTP listener beside it, and starts and stops them in
// order.
//
// The HTTP listener starts first and stops last, so that a start that hangs and
// a stop that takes its time can be watched. gRPC takes calls before the store
// is ready, and answers them with UNAVAILABLE, so that health can be asked.
package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/admitd/admit/internal/buildinfo"
	"github.com/admitd/admit/internal/clock"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tracing"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server"
)

// Node is a running node. Its methods may be called concurrently.
type Node struct {
	cfg      config.Config
	log      *slog.Logger
	reg      *prometheus.Registry
	security *security
	store    *raftstore.Store
	server   *server.Server
	// api answers reads over HTTP, once it is there.
	api atomic.Pointer[http.Handler]

	grpcListener net.Listener
	httpListener net.Listener
	// traces is nil where none are sent.
	traces *tracing.Provider
	// peerListener is nil on a node that is alone.
	peerListener net.Listener

	// cleanups undo what Start did, the last first.
	cleanups []func(context.Context)
	// served are the goroutines that serve.
	served sync.WaitGroup
	// failures gets the first reason why the node can't go on.
	failures chan error
	// stopping is closed when the node begins to stop.
	stopping chan struct{}
	// opened says that store is set.
	opened   atomic.Bool
	draining atomic.Bool
	stopOnce sync.Once
}

// Run starts a node, calls ready once it decides, and stops it in order when ctx
// ends, which is no error, be it ready or not. A node that can't go on is stopped
// too, and Run returns why.
func Run(ctx context.Context, cfg config.Config, log *slog.Logger, ready func(*Node)) error {
	n, err := Start(ctx, cfg, log)
	switch {
	case err == nil:
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())):
		log.Info("stopped before it was ready", "reason", context.Cause(ctx))
		return nil
	default:
		return err
	}
	ready(n)
	select {
	case <-ctx.Done():
		log.Info("stopping")
		n.Stop()
		return nil
	case err = <-n.failures:
		log.Error("the node can't go on", "error", err)
		n.stop(time.After(0)) // there is nothing left to drain
		return err
	}
}

// Start returns a node that is ready, or why there is none. The end of ctx
// aborts the start and nothing more; the caller stops the node.
func Start(ctx context.Context, cfg config.Config, log *slog.Logger) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	secured, err := loadSecurity(cfg)
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: log, reg: prometheus.NewRegistry(), security: secured,
		failures: make(chan error, 1), stopping: make(chan struct{}),
	}
	n.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newMachineCollector(cfg.Data, secured))
	for _, step := range []func(context.Context) error{
		n.listen, n.followFiles, n.serveHTTP, n.openStore, n.sendTraces, n.serveGRPC, n.awaitReady, n.applyFirstPolicy,
	} {
		if err := step(ctx); err != nil {
			n.unwind()
			return nil, err
		}
	}
	log.Info("ready", "grpc_addr", n.GRPCAddr(), "http_addr", n.HTTPAddr(), "data", cfg.Data, "node_id", n.store.NodeID(),
		"version", buildinfo.String())
	return n, nil
}

// GRPCAddr is where the API is served.
func (n *Node) GRPCAddr() string { return n.grpcListener.Addr().String() }

// HTTPAddr is where metrics and health are served.
func (n *Node) HTTPAddr() string { return n.httpListener.Addr().String() }

func (n *Node) openStore(context.Context) (err error) {
	n.store, err = raftstore.Open(raftstore.Config{Dir: n.cfg.Data, Cluster: n.cluster()}, n.log, n.reg, clock.System())
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	n.opened.Store(true)
	n.onStop(func(context.Context) {
		if err := n.store.Close(); err != nil {
			n.log.Error("closing the store failed", "error", err)
		}
	})
	n.watch("store", func() error {
		select {
		case <-n.store.Failed():
			return n.store.Err()
		case <-n.stopping:
			return nil
		}
	})
	return nil
}

func (n *Node) serveGRPC(context.Context) (err error) {
	opts := server.Options{TLS: n.security.grpcTLS(), Guard: n.security.guard}
	if n.traces != nil {
		opts.Traces = n.traces
	}
	if n.cfg.Clustered() {
		opts.Peers, opts.Addr = n.security.nodeCredentials(), n.grpcListener.Addr()
	}
	if n.server, err = server.New(n.store, opts, n.log, n.reg); err != nil {
		return err
	}
	overHTTP := n.server.HTTP(n.security.watchers)
	n.api.Store(&overHTTP)
	n.onStop(n.server.Stop)
	n.onStop(n.store.HandOver)
	n.watch("gRPC server", func() error { return n.server.Serve(n.grpcListener) })
	return nil
}

// watch runs a part of the node whose error ends the node.
func (n *Node) watch(name string, run func() error) {
	n.served.Go(func() {
		if err := run(); err != nil {
			n.fail(fmt.Errorf("the %s failed: %w", name, err))
		}
	})
}

func (n *Node) fail(err error) {
	select {
	case n.failures <- err:
	default: // the first reason is the one that counts
	}
}

// awaitReady waits until calls are answered. A lone voter takes a fraction of a
// second and the time to read its log; a member waits for the others.
func (n *Node) awaitReady(ctx context.Context) error {
	for {
		changed := n.store.ReadyChanged()
		if n.store.Ready() {
			return nil
		}
		select {
		case <-changed:
		case err := <-n.failures:
			return err
		case <-ctx.Done():
			return fmt.Errorf("wait for the store to be ready: %w", context.Cause(ctx))
		}
	}
}

func (n *Node) onStop(cleanup func(context.Context)) { n.cleanups = append(n.cleanups, cleanup) }

// Stop turns health to NOT_SERVING, waits the drain delay, hands over the lead if
// it has it, lets calls end for up to the shutdown timeout, and closes the store
// and then the HTTP listener.
// Stopping again changes nothing.
func (n *Node) Stop() { n.stop(time.After(n.cfg.DrainDelay)) }

// stop is Stop once load balancers have noticed.
func (n *Node) stop(noticed <-chan time.Time) {
	n.stopOnce.Do(func() {
		began := time.Now()
		n.draining.Store(true)
		n.server.SetNotServing()
		<-noticed
		n.unwind()
		n.log.Info("stopped", "took", time.Since(began))
	})
}

// unwind undoes what Start did. It is called once.
func (n *Node) unwind() {
	close(n.stopping)
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.ShutdownTimeout)
	defer cancel()
	for len(n.cleanups) > 0 {
		last := len(n.cleanups) - 1
		n.cleanups[last](ctx)
		n.cleanups = n.cleanups[:last]
	}
	n.served.Wait()
}

// Check says whether a node could start with cfg, as far as can be told without
// starting it: the settings, and the files that they name.
func Check(cfg config.Config) error {
	_, insecure := loadSecurity(cfg)
	_, wrong := loadPolicy(cfg.PolicyFile)
	return errors.Join(cfg.Validate(), insecure, wrong)
}
