package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/admitd/admit/internal/page"
	"github.com/admitd/admit/server"
)

// serveHTTP serves what operators and supervisors look at:
//
//   - /metrics for Prometheus, and nobody else where callers have to be known,
//   - /debug/pprof for the same callers, where it is wanted,
//   - /healthz: the process answers,
//   - /readyz: the node decides, or has the leader decide; 503 before that and once
//     it drains,
//   - /, the page, which holds no data, and /api/, what it reads: that only for those
//     who may call the API.
func (n *Node) serveHTTP(context.Context) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", n.guarded(promhttp.HandlerFor(n.reg, promhttp.HandlerOpts{
		ErrorLog:      slog.NewLogLogger(n.log.Handler(), slog.LevelError),
		ErrorHandling: promhttp.ContinueOnError,
	})))
	if n.cfg.Profiles {
		mux.Handle("GET /debug/pprof/", n.guarded(profiles()))
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "alive") })
	mux.HandleFunc("GET /readyz", n.readyz)
	mux.Handle("/", page.Handler())
	mux.Handle("/api/", http.StripPrefix("/api", http.HandlerFunc(n.serveAPI)))
	srv := &http.Server{
		Handler:           mux,
		ErrorLog:          slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	if secured := n.security.httpTLS(); secured != nil {
		n.httpListener = tls.NewListener(n.httpListener, secured)
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

// profiles serves what the Go runtime knows of where processor time and memory go.
// A profile takes less than an answer may, so at most 25 seconds.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func (n *Node) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case n.draining.Load():
		say(w, http.StatusServiceUnavailable, "draining")
	case !n.opened.Load() || !n.store.Ready():
		say(w, http.StatusServiceUnavailable, "no node leads, as far as this one knows")
	default:
		say(w, http.StatusOK, "ready")
	}
}

// serveAPI answers the API's reads once there is one.
func (n *Node) serveAPI(w http.ResponseWriter, r *http.Request) {
	api := n.api.Load()
	if api == nil {
		say(w, http.StatusServiceUnavailable, "the node is starting")
		return
	}
	(*api).ServeHTTP(w, r)
}

// guarded lets only callers through who are known.
func (n *Node) guarded(next http.Handler) http.Handler {
	if n.security.watchers == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := n.security.watchers.Identify(r.TLS, server.BearerToken(r.Header.Get("Authorization"))); !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			say(w, http.StatusUnauthorized, "a token or a certificate that this node knows is needed")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func say(w http.ResponseWriter, code int, text string) {
	w.WriteHeader(code)
	_, _ = io.WriteString(w, text+"\n") // a caller who left needs no answer
}
