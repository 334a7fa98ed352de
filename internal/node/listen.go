package node

import (
	"context"
	"fmt"
	"math"
	"net"
	"syscall"

	"golang.org/x/net/netutil"

	"github.com/admitd/admit/internal/config"
)

const (
	// spareFiles are left to the store and the process itself. A log that can't
	// open its next file ends the node, so connections must not take them all.
	spareFiles = 128
	// httpConnections are for operators and what scrapes, peerConnections for the
	// members of the cluster, who keep a few open each, and for the strangers that
	// their port bears with, fewer by far.
	httpConnections = 64
	peerConnections = 256
	// fewestConnections are served however few files the process may open.
	fewestConnections = 16
)

// grpcConnections is how many connections the API takes at a time in a process
// that may open so many files, where other ports take some. More wait until others
// close.
func grpcConnections(files, elsewhere uint64) int {
	others := spareFiles + elsewhere
	if files < others+fewestConnections {
		return fewestConnections
	}
	return int(min(files-others, math.MaxInt32))
}

// listen takes all ports first: one that is taken is the likeliest mistake.
func (n *Node) listen(context.Context) (err error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("ask how many files may be open: %w", err)
	}
	elsewhere := uint64(httpConnections)
	if n.cfg.Clustered() {
		elsewhere += peerConnections
	}
	if n.grpcListener, err = n.listenOn("grpc_addr", n.cfg.GRPCAddr, grpcConnections(files.Cur, elsewhere)); err != nil {
		return err
	}
	if n.httpListener, err = n.listenOn("http_addr", n.cfg.HTTPAddr, httpConnections); err != nil || !n.cfg.Clustered() {
		return err
	}
	n.peerListener, err = n.listenOn("peer_addr", config.WithPeerPort(n.cfg.PeerAddr), peerConnections)
	return err
}

func (n *Node) listenOn(key, addr string, connections int) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	l = netutil.LimitListener(l, connections)
	n.onStop(func(context.Context) { _ = l.Close() }) // it is closed already if it was served
	if key == "peer_addr" || n.cfg.Open() {
		return l, nil
	}
	// A name may stand for any address.
	if tcp, ok := l.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, fmt.Errorf("%s: %s is %s, which is not on the loopback interface", key, addr, l.Addr())
	}
	return l, nil
}
