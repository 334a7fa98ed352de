package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/admitd/admit/client"
)

// Config is how the process of a sidecar runs.
type Config struct {
	Options
	// Listen is where workers call: unix:PATH, or host:port on loopback.
	Listen string
	// SocketMode says who may use a Unix socket.
	SocketMode fs.FileMode
	// Upstream are the nodes of the cluster, host:port each.
	Upstream []string
	// CACert has the authorities of the nodes' certificates; empty is plain text.
	CACert string
	// Cert and Key are what the sidecar shows to nodes, TokenFile what it sends them. All
	// may be empty.
	Cert, Key, TokenFile string
	// HTTPAddr is where metrics and health are served, on loopback; empty for nowhere.
	HTTPAddr string
	// ShutdownTimeout is what calls under way get to end.
	ShutdownTimeout time.Duration
}

// Process is a running sidecar, with its listeners.
type Process struct {
	cfg    Config
	log    *slog.Logger
	client *client.Client
	server *Server
	// api and http are where it serves; http is nil where it doesn't.
	api, http  net.Listener
	httpServer *http.Server
	running    sync.WaitGroup
	failures   chan error
}

// Check says whether the files that cfg names can be used.
func Check(cfg Config) error {
	c, err := cfg.dial()
	if err != nil {
		return err
	}
	return c.Close()
}

// Run starts a sidecar, calls ready once it takes calls, be the cluster there or not, and
// stops it in order when ctx ends, which is no error.
func Run(ctx context.Context, cfg Config, log *slog.Logger, ready func(*Process)) error {
	p := &Process{cfg: cfg, log: log, failures: make(chan error, 2)}
	if err := p.start(); err != nil {
		return err
	}
	log.Info("ready", "listen", p.Addr(), "http_addr", p.HTTPAddr(), "upstream", strings.Join(cfg.Upstream, ","))
	ready(p)
	var failure error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case failure = <-p.failures:
		log.Error("the sidecar can't go on", "error", failure)
	}
	began := time.Now()
	err := p.stop()
	log.Info("stopped", "took", time.Since(began))
	return errors.Join(failure, err)
}

// Addr is where workers call, as gRPC's clients write it.
func (p *Process) Addr() string {
	if a := p.api.Addr(); a.Network() == "unix" {
		return unixScheme + a.String()
	}
	return p.api.Addr().String()
}

// HTTPAddr is where metrics and health are served; empty for nowhere.
func (p *Process) HTTPAddr() string {
	if p.http == nil {
		return ""
	}
	return p.http.Addr().String()
}

// start takes the listeners first: one that is taken is the likeliest mistake.
func (p *Process) start() (err error) {
	opened := []func() error{}
	defer func() {
		if err != nil {
			for _, undo := range opened {
				_ = undo() // the first error is the one that counts
			}
		}
	}()
	if p.api, err = listen(p.cfg.Listen, p.cfg.SocketMode); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	opened = append(opened, p.api.Close)
	if p.cfg.HTTPAddr != "" {
		if p.http, err = listenLoopback(p.cfg.HTTPAddr, httpConnections); err != nil {
			return fmt.Errorf("http_addr: %w", err)
		}
		opened = append(opened, p.http.Close)
	}
	if p.client, err = p.cfg.dial(); err != nil {
		return err
	}
	opened = append(opened, p.client.Close)
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if p.server, err = New(p.client, p.cfg.Options, p.log, reg); err != nil {
		return err
	}
	p.running.Go(func() { p.fail(p.server.Serve(p.api)) })
	if p.http != nil {
		p.serveHTTP(reg)
	}
	return nil
}

func (p *Process) fail(err error) {
	if err != nil {
		p.failures <- err
	}
}

// dial returns a client of the cluster.
func (cfg Config) dial() (*client.Client, error) {
	secured, err := cfg.security()
	if err != nil {
		return nil, err
	}
	// No span is made here; those that workers make are told to the nodes.
	opts := append(secured, client.WithSession(), client.WithTracing(noop.NewTracerProvider()))
	c, err := client.Dial(strings.Join(cfg.Upstream, ","), opts...)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	return c, nil
}
