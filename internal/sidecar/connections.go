package sidecar

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// maxConnections is how many connections of workers are served at a time; more wait.
const maxConnections = 1024

// connections tells the table of workers that come and go.
type connections struct {
	table *table
	open  atomic.Int64
}

type workerKey struct{}

// workerOf is who makes a call.
func workerOf(ctx context.Context) *worker {
	w, ok := ctx.Value(workerKey{}).(*worker)
	if !ok { // every call comes over a connection that was tagged
		return &worker{holds: make(map[*hold]struct{}), gone: true}
	}
	return w
}

// TagConn implements stats.Handler.
func (c *connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, workerKey{}, &worker{holds: make(map[*hold]struct{})})
}

// HandleConn implements stats.Handler.
func (c *connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		c.open.Add(1)
	case *stats.ConnEnd:
		c.open.Add(-1)
		c.table.leave(workerOf(ctx))
	}
}

// TagRPC implements stats.Handler.
func (c *connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (c *connections) HandleRPC(context.Context, stats.RPCStats) {}
