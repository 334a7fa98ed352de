package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// greeting is how long a connection may take until it is raft's or its call is
	// answered, and bounds what strangers hold. With an election timeout above 2 s a
	// call to be taken in may take longer; whoever wants to be asks again.
	greeting = 10 * time.Second
	// tellEvery is how often the log tells of those turned away.
	tellEvery = 10 * time.Second
	// strangers bounds the connections that are not raft's yet. It must stay well below
	// what the listener takes in all: connections that say nothing would leave none for
	// members.
	strangers = 64
)

// Node is what a port speaks for. Its methods may be called by several goroutines
// at once.
type Node interface {
	// Hello says who the node is at this moment; the port fills in the rest.
	Hello() Hello
	// Admit is asked before a connection for raft is taken from a node that is of
	// the same cluster or takes this one, as yet without any, for a member.
	Admit(from Hello) error
	// Answer answers a call, before ctx ends.
	Answer(ctx context.Context, from Hello, r Request) Reply
}

// Config is what a port needs. All fields are required.
type Config struct {
	Listener net.Listener
	// Advertise is where others dial this port, GRPCAddr where the node's API is.
	Advertise, GRPCAddr string
	// TLS returns what holds for the next connection.
	TLS  func() *tls.Config
	Node Node
	Log  *slog.Logger
}

// Port is a node's port for other members. Its methods may be called by several
// goroutines at once.
type Port struct {
	cfg             Config
	book            Book
	greeting, stall time.Duration
	// raft takes connections for raft.
	raft chan net.Conn
	// room is taken by each connection that is not raft's yet.
	room   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	// told is when the log last told of a connection that was turned away.
	told time.Time
	open map[*tlsConn]struct{}
}

// Open begins to listen. The caller closes the port, and so the listener.
func Open(cfg Config) (*Port, error) {
	if err := checkTLS(cfg.TLS()); err != nil {
		return nil, err
	}
	p := newPort(cfg)
	p.loops.Go(p.listen)
	return p, nil
}

func newPort(cfg Config) *Port {
	p := &Port{
		cfg: cfg, greeting: greeting, stall: stall,
		raft: make(chan net.Conn), room: make(chan struct{}, strangers), open: make(map[*tlsConn]struct{}),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Book returns where other nodes are.
func (p *Port) Book() *Book { return &p.book }

// Close ends all connections and waits for what serves them.
func (p *Port) Close() error {
	p.cancel()
	err := p.cfg.Listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.NetConn().Close() // it ends with the port, in whatever state
	}
	p.mu.Unlock()
	p.loops.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (p *Port) listen() {
	for {
		conn, err := p.cfg.Listener.Accept()
		switch {
		case p.ctx.Err() != nil:
			if err == nil {
				_ = conn.Close() // too late
			}
			return
		case err != nil:
			p.cfg.Log.Error("failed to accept a member's connection", "error", err)
			p.pause()
		default:
			p.take(conn)
		}
	}
}

// pause keeps an error that stays from filling the log.
func (p *Port) pause() {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
}

func (p *Port) take(conn net.Conn) {
	select {
	case p.room <- struct{}{}:
	default:
		_ = conn.Close() // a flood: members try again
		return
	}
	p.loops.Go(func() {
		defer func() { <-p.room }()
		if err := p.greet(conn); err != nil {
			p.tell(conn, err)
		}
	})
}

// tell logs why a connection was turned away, once in a while: who is turned away
// tries again.
func (p *Port) tell(conn net.Conn, why error) {
	p.mu.Lock()
	level := slog.LevelDebug
	if now := time.Now(); now.Sub(p.told) >= tellEvery {
		level, p.told = slog.LevelInfo, now
	}
	p.mu.Unlock()
	p.cfg.Log.Log(p.ctx, level, "turned a connection away", "remote_addr", conn.RemoteAddr().String(), "error", why)
}

// greet hears who dialed and what for, and serves it. Raft's connections it hands
// over, all others it closes.
func (p *Port) greet(conn net.Conn) error {
	tuneInbound(conn)
	c, err := p.keep(tls.Server(conn, serverTLS(p.cfg.TLS())))
	if err != nil {
		return err
	}
	handed := false
	defer func() {
		if !handed {
			_ = c.Close() // what was to be said has been
		}
	}()
	ctx, cancel := context.WithTimeout(p.ctx, p.greeting)
	defer cancel()
	if err := c.SetDeadline(time.Now().Add(p.greeting)); err != nil {
		return err
	}
	if err := c.HandshakeContext(ctx); err != nil {
		return err
	}
	want, from, err := readHello(c)
	if err != nil {
		return err
	}
	self, refusal := p.admit(c, want, from)
	w := Welcome{Hello: self}
	if refusal != nil {
		w.Refused = refusal.Error()
	}
	if err := writeFrame(c, w); err != nil || refusal != nil {
		return errors.Join(refusal, err)
	}
	p.book.note(Address{from.NodeID, from.PeerAddr, from.GRPCAddr})
	if want == wantCall {
		return p.answer(ctx, c, from)
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	select {
	case p.raft <- &inbound{Conn: c, stall: p.stall}:
		handed = true
	case <-ctx.Done():
	}
	return nil
}

// admit decides whether to talk, and returns what to say of this node.
func (p *Port) admit(c *tlsConn, want byte, from Hello) (Hello, error) {
	self := p.hello()
	err := checkName(c.cert(), from.NodeID)
	if err == nil {
		err = fits(self, from)
	}
	switch {
	case err != nil || want == wantCall:
	case want != wantRaft:
		err = fmt.Errorf("it wants %d, which this version does not know", want)
	default:
		if err = p.cfg.Node.Admit(from); err == nil {
			self = p.hello() // it may have been taken into the cluster just now
		}
		if err == nil && (self.ClusterID == "" || self.ClusterID != from.ClusterID) {
			err = fmt.Errorf("this node is not of cluster %q", from.ClusterID)
		}
	}
	return self, err
}

func (p *Port) answer(ctx context.Context, c *tlsConn, from Hello) error {
	var r Request
	if err := readFrame(c, &r); err != nil {
		return fmt.Errorf("read a call of %s: %w", from.NodeID, err)
	}
	return writeFrame(c, p.cfg.Node.Answer(ctx, from, r))
}

func (p *Port) hello() Hello {
	h := p.cfg.Node.Hello()
	h.PeerAddr, h.GRPCAddr, h.Levels = p.cfg.Advertise, p.cfg.GRPCAddr, ownLevels
	return h
}
