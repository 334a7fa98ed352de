package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/admitd/admit/internal/localaddr"
)

// keepAlive finds connections whose other end is gone, in 11 s.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// tlsConn is a connection that the port closes when it closes.
type tlsConn struct {
	*tls.Conn
	port *Port
}

// keep notes an open connection, unless the port is closed.
func (p *Port) keep(conn *tls.Conn) (*tlsConn, error) {
	c := &tlsConn{conn, p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = conn.Close() // nobody is to use it
		return nil, net.ErrClosed
	}
	p.open[c] = struct{}{}
	return c, nil
}

// Close closes the connection without a word to the other end, which might not
// listen: closing must not block.
func (c *tlsConn) Close() error {
	c.port.mu.Lock()
	delete(c.port.open, c)
	c.port.mu.Unlock()
	return c.NetConn().Close()
}

// cert returns the certificate that the other end showed.
func (c *tlsConn) cert() *x509.Certificate { return c.ConnectionState().PeerCertificates[0] }

func tuneInbound(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	// Without these a dead connection is only noticed later.
	_ = tcp.SetKeepAliveConfig(keepAlive)
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = setUnacked("", "", raw)
	}
}

func (p *Port) dialer(addr string) *net.Dialer {
	from := localaddr.For(p.cfg.Listener.Addr(), addr)
	return &net.Dialer{LocalAddr: from, KeepAliveConfig: keepAlive, Control: setUnacked}
}

// dial opens a connection to the node with id to, or with "" to any, at addr. The
// deadline of ctx is the connection's until its owner sets another.
func (p *Port) dial(ctx context.Context, want byte, to, addr string) (_ *tlsConn, _ Welcome, err error) {
	conn, err := p.dialer(addr).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, Welcome{}, err
	}
	c, err := p.keep(tls.Client(conn, clientTLS(p.cfg.TLS())))
	if err != nil {
		return nil, Welcome{}, err
	}
	w, err := p.introduce(ctx, c, want, to)
	if err != nil {
		return nil, w, errors.Join(fmt.Errorf("talk to the node at %s: %w", addr, err), c.Close())
	}
	p.book.note(Address{w.NodeID, w.PeerAddr, w.GRPCAddr})
	return c, w, nil
}

// introduce says who this node is and hears who the other is.
func (p *Port) introduce(ctx context.Context, c *tlsConn, want byte, to string) (w Welcome, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(p.greeting)
	}
	if err := c.SetDeadline(deadline); err != nil {
		return w, err
	}
	if err := c.HandshakeContext(ctx); err != nil {
		return w, err
	}
	self := p.hello()
	said := self
	said.To = to
	if err := writeHello(c, want, said); err != nil {
		return w, err
	}
	if err := readFrame(c, &w); err != nil {
		return w, err
	}
	if err := checkName(c.cert(), w.NodeID); err != nil {
		return w, err
	}
	if w.Refused != "" {
		return w, &RefusedError{w.Refused}
	}
	if to != "" && w.NodeID != to {
		return w, fmt.Errorf("node %s is there, not %s", w.NodeID, to)
	}
	return w, fits(self, w.Hello)
}

// CallMember is Call for a member whose address may have changed: it is where it
// said last, or else at addr.
func (p *Port) CallMember(ctx context.Context, nodeID, addr string, r Request) (Reply, error) {
	reply, err := p.Call(ctx, nodeID, p.book.peerAddr(nodeID, addr), r)
	if err != nil {
		p.book.doubt(nodeID)
	}
	return reply, err
}

// Call asks the node with id to, or with "" any, at addr.
func (p *Port) Call(ctx context.Context, to, addr string, r Request) (Reply, error) {
	c, _, err := p.dial(ctx, wantCall, to, addr)
	if err != nil {
		return Reply{}, err
	}
	defer c.Close()
	if err := writeFrame(c, r); err != nil {
		return Reply{}, fmt.Errorf("call the node at %s: %w", addr, err)
	}
	var reply Reply
	if err := readFrame(c, &reply); err != nil {
		return Reply{}, fmt.Errorf("hear the node at %s: %w", addr, err)
	}
	return reply, nil
}
