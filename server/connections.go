package server

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// connections are those that are open. gRPC lets one that has not finished its greeting
// hold up a stop until connectTimeout.
type connections struct {
	mu      sync.Mutex
	open    map[*accepted]struct{}
	closing bool
}

// hangUp closes those that have not said a word, now and later.
func (c *connections) hangUp() {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.close(func(conn *accepted) bool { return !conn.heard.Load() })
}

// cut closes all.
func (c *connections) cut() { c.close(func(*accepted) bool { return true }) }

func (c *connections) close(which func(*accepted) bool) {
	c.mu.Lock()
	open := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, conn := range open {
		if which(conn) {
			_ = conn.Close() // whoever reads it is told
		}
	}
}

// add counts one in, and says whether it may stay.
func (c *connections) add(conn *accepted) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	c.open[conn] = struct{}{}
	return true
}

func (c *connections) remove(conn *accepted) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// origin is the other side of a connection, with the calls that it has under way.
type origin struct {
	net.Addr
	open atomic.Int64
}

// countedListener has connections come from origins, and counts them.
type countedListener struct {
	net.Listener
	connections *connections
}

func (l countedListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	conn := &accepted{Conn: raw, from: &origin{Addr: raw.RemoteAddr()}, among: l.connections}
	if !l.connections.add(conn) {
		_ = conn.Close()
	}
	return conn, nil
}

// accepted is one, until it is closed.
type accepted struct {
	net.Conn
	from  *origin
	among *connections
	heard atomic.Bool
}

func (c *accepted) RemoteAddr() net.Addr { return c.from }

func (c *accepted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

func (c *accepted) Close() error {
	c.among.remove(c)
	return c.Conn.Close()
}
