package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// httpConnections are for operators and what scrapes.
const httpConnections = 64

// serveHTTP serves, to this machine:
//
//   - /metrics for Prometheus,
//   - /healthz: the process answers,
//   - /readyz: the cluster decides, as far as is known here; else 503.
func (p *Process) serveHTTP(reg *prometheus.Registry) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelError), ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.server.Serving() {
			answer(w, http.StatusServiceUnavailable, "no node is reached that says that the cluster decides")
			return
		}
		answer(w, http.StatusOK, "ready")
	})
	srv := &http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeaderBytes,
	}
	p.httpServer = srv
	p.running.Go(func() {
		if err := srv.Serve(p.http); !errors.Is(err, http.ErrServerClosed) {
			p.fail(fmt.Errorf("serve HTTP on %s: %w", p.HTTPAddr(), err))
		}
	})
}

// stop drains the sidecar; the HTTP side, where that can be watched, ends last.
func (p *Process) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.ShutdownTimeout)
	defer cancel()
	p.server.Stop(ctx)
	err := p.client.Close()
	if p.httpServer != nil && p.httpServer.Shutdown(ctx) != nil {
		_ = p.httpServer.Close() // what is left was cut off for taking too long
	}
	p.running.Wait()
	return err
}

func answer(w http.ResponseWriter, code int, text string) {
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a caller who left needs no answer
}
