package peer

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Transport is raft's own transport over a Port, without two of its ways:
//
//   - Heartbeats pass through raft's main loop as all else does. Handled beside
//     it, one of a new leader changes the term in the middle of what the loop does
//     in the old one (hashicorp/raft#695).
//   - One request at a time is under way to each member. With more, a member that
//     rejected one could get heartbeats for ever and never another entry
//     (hashicorp/raft#612).
//
// It finds members by their ids, at the address that they gave last.
type Transport struct {
	*raft.NetworkTransport
	book *Book
}

var (
	_ raft.Transport   = (*Transport)(nil)
	_ raft.WithPreVote = (*Transport)(nil)
	_ raft.WithClose   = (*Transport)(nil)
)

// idleConnections are kept for each member.
const idleConnections = 5

// Raft returns the transport for raft; raft closes it. A request may take as long
// as timeout, a snapshot as long as its size makes it.
func (p *Port) Raft(timeout time.Duration, logger hclog.Logger) *Transport {
	return &Transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream:          &stream{port: p, closed: make(chan struct{})},
			Timeout:         timeout,
			MaxPool:         idleConnections,
			MaxRPCsInFlight: 1,
			Logger:          logger,
		}),
		book: &p.book,
	}
}

// SetHeartbeatHandler does nothing.
func (t *Transport) SetHeartbeatHandler(func(raft.RPC)) {}

// EncodePeer returns the address as the configuration has it.
func (t *Transport) EncodePeer(_ raft.ServerID, addr raft.ServerAddress) []byte { return []byte(addr) }

// AppendEntries sends entries, or a heartbeat. Who takes them follows this node, at
// the moment when they were sent at least: the answer may have waited for long.
func (t *Transport) AppendEntries(
	id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse,
) error {
	sent := time.Now()
	err := t.heard(id, t.NetworkTransport.AppendEntries(id, t.target(id, addr), args, resp))
	if err == nil && resp.Success && resp.Term <= args.Term {
		t.book.confirm(string(id), sent)
	}
	return err
}

// RequestVote asks for a vote.
func (t *Transport) RequestVote(
	id raft.ServerID, addr raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse,
) error {
	return t.heard(id, t.NetworkTransport.RequestVote(id, t.target(id, addr), args, resp))
}

// RequestPreVote asks whether a vote would be given.
func (t *Transport) RequestPreVote(
	id raft.ServerID, addr raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse,
) error {
	return t.heard(id, t.NetworkTransport.RequestPreVote(id, t.target(id, addr), args, resp))
}

// InstallSnapshot sends a snapshot.
func (t *Transport) InstallSnapshot(
	id raft.ServerID, addr raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	return t.heard(id, t.NetworkTransport.InstallSnapshot(id, t.target(id, addr), args, resp, data))
}

// TimeoutNow asks a member to take over.
func (t *Transport) TimeoutNow(
	id raft.ServerID, addr raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse,
) error {
	return t.heard(id, t.NetworkTransport.TimeoutNow(id, t.target(id, addr), args, resp))
}

// target returns where to find a member.
func (t *Transport) target(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return Target(string(id), t.book.peerAddr(string(id), AddrOf(addr)))
}

// Target is a member's address as raft knows it, ID@ADDRESS. The id is in it, since
// two members may give one address: a node with a new disk, and what it was before.
func Target(nodeID, peerAddr string) raft.ServerAddress {
	return raft.ServerAddress(nodeID + "@" + peerAddr)
}

// AddrOf returns the address in a Target.
func AddrOf(target raft.ServerAddress) string {
	_, addr, _ := strings.Cut(string(target), "@")
	return addr
}

func (t *Transport) heard(id raft.ServerID, err error) error {
	if err != nil {
		t.book.doubt(string(id))
		return err
	}
	t.book.heard(string(id))
	return nil
}

// stream is what raft's transport takes a network for.
type stream struct {
	port   *Port
	closed chan struct{}
	once   sync.Once
}

// Dial dials ID@ADDRESS, and only that node: were another there and answered in
// its name, raft would count it twice.
func (s *stream) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, ok := strings.Cut(string(target), "@")
	if !ok {
		return nil, fmt.Errorf("%q names no node", target)
	}
	ctx, cancel := context.WithTimeout(s.port.ctx, timeout)
	defer cancel()
	c, _, err := s.port.dial(ctx, wantRaft, id, addr)
	if err != nil {
		return nil, err
	}
	return c, c.SetDeadline(time.Time{})
}

func (s *stream) Accept() (net.Conn, error) {
	select {
	case c := <-s.port.raft:
		return c, nil
	case <-s.closed:
	case <-s.port.ctx.Done():
	}
	return nil, net.ErrClosed
}

func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr returns this node's Target.
func (s *stream) Addr() net.Addr {
	return advertised(Target(s.port.cfg.Node.Hello().NodeID, s.port.cfg.Advertise))
}

type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }
