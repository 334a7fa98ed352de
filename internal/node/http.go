package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// serveHTTP serves what operators and supervisors look at:
//
//   - /metrics for Prometheus,
//   - /healthz: the process answers,
//   - /readyz: the node decides; 503 before that and once it drains.
func (n *Node) serveHTTP(context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(n.reg, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(n.log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", n.readyz)
	srv := &http.Server{
		Handler:           mux,
		ErrorLog:          slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	n.onStop(func(ctx context.Context) {
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close() // what is left was cut off for taking too long
		}
	})
	n.watch("HTTP server", func() error {
		if err := srv.Serve(n.httpListener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve HTTP on %s: %w", n.HTTPAddr(), err)
		}
		return nil
	})
	return nil
}

func (n *Node) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case n.draining.Load():
		say(w, http.StatusServiceUnavailable, "draining")
	case !n.opened.Load() || !n.store.Ready():
		say(w, http.StatusServiceUnavailable, "the store is not ready")
	default:
		say(w, http.StatusOK, "ready")
	}
}

func say(w http.ResponseWriter, code int, text string) {
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a caller who left needs no answer
}
