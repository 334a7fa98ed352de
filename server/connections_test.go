package server

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/test/bufconn"
)

// TestStopWaitsForNoGreeting stops a server while a connection has yet to say who it is.
func TestStopWaitsForNoGreeting(t *testing.T) {
	for name, test := range map[string]struct {
		says string
		stop time.Duration // how long calls may take to end
	}{
		"it says nothing":            {"", time.Minute},
		"it has begun to say it":     {"PRI * HT", 50 * time.Millisecond},
		"there is no time to listen": {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(newFakeStore(), Options{}, discard(), prometheus.NewRegistry())
			if err != nil {
				t.Fatal(err)
			}
			l := bufconn.Listen(1 << 10)
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			conn, err := l.DialContext(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write([]byte(test.says)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), test.stop)
			defer cancel()
			stopped := make(chan struct{})
			go func() { s.Stop(ctx); close(stopped) }()
			select {
			case <-stopped:
			case <-time.After(connectTimeout / 2):
				t.Error("it waits")
				<-stopped
			}
			if err := <-served; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServeAfterStop has a server stop before it begins to serve, as one may that is told
// to stop while it starts.
func TestServeAfterStop(t *testing.T) {
	s, err := New(newFakeStore(), Options{}, discard(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	s.Stop(soon(t))
	l := bufconn.Listen(1 << 10)
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("the listener is open")
	}
}
