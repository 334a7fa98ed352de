// Package hangup has a gRPC server stop in time: left to itself it waits for connections
// that have yet to finish their greeting, for as long as it lets one take.
package hangup

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Connections are those of a server that are open. The zero value has none.
type Connections struct {
	mu      sync.Mutex
	open    map[*conn]struct{}
	closing bool
}

// Of returns the listener with its connections among these.
func (c *Connections) Of(l net.Listener) net.Listener { return listener{l, c} }

// Silent closes those that have not said a word, and from now on each that comes.
func (c *Connections) Silent() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.close(func(one *conn) bool { return !one.heard.Load() })
}

// All closes all of them.
func (c *Connections) All() { c.close(func(*conn) bool { return true }) }

func (c *Connections) close(which func(*conn) bool) {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, one := range open {
		if which(one) {
			_ = one.Close() // whoever reads it is told
		}
	}
}

// add counts one in, and says whether it may stay.
func (c *Connections) add(one *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	if c.open == nil {
		c.open = make(map[*conn]struct{})
	}
	c.open[one] = struct{}{}
	return true
}

func (c *Connections) remove(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, one)
}

type listener struct {
	net.Listener
	connections *Connections
}

func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, among: l.connections}
	if !l.connections.add(c) {
		_ = c.Close() // as if its other side had
	}
	return c, nil
}

// conn is a connection, until it is closed.
type conn struct {
	net.Conn
	among *Connections
	heard atomic.Bool
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

func (c *conn) Close() error {
	c.among.remove(c)
	return c.Conn.Close()
}
