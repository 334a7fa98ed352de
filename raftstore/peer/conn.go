package peer

import (
	"net"
	"time"
)

// stall is how long a member may pause in the middle of a request, or take to read
// an answer.
const stall = 15 * time.Second

// inbound is a connection that another member opened for raft. Requests and
// answers take turns on it, and between them it may be idle for as long as the
// other end lives. But once a request has begun it is to go on: while raft reads
// a snapshot it does nothing else, and it sets no deadline of its own.
type inbound struct {
	net.Conn
	stall time.Duration
	// begun is set between a request's first byte and its answer.
	begun bool
}

func (c *inbound) Read(b []byte) (int, error) {
	if c.begun {
		if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
			return 0, err
		}
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.begun = true
	}
	return n, err
}

func (c *inbound) Write(b []byte) (int, error) {
	if c.begun {
		c.begun = false
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
	}
	if err := c.SetWriteDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
