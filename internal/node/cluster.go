package node

import (
	"context"
	"fmt"
	"net"

	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/raftstore"
)

// cluster is how the store talks to the other members; nil for a node that is
// alone.
func (n *Node) cluster() *raftstore.Cluster {
	if !n.cfg.Clustered() {
		return nil
	}
	join := make([]string, len(n.cfg.Join))
	for i, addr := range n.cfg.Join {
		join[i] = config.WithPeerPort(addr)
	}
	return &raftstore.Cluster{
		Listener:        n.peerListener,
		Advertise:       advertised(config.WithPeerPort(n.cfg.PeerAdvertise), config.WithPeerPort(n.cfg.PeerAddr), n.peerListener),
		GRPCAddr:        advertised(n.cfg.GRPCAdvertise, n.cfg.GRPCAddr, n.grpcListener),
		TLS:             n.security.peerTLS,
		Join:            join,
		Expect:          n.cfg.BootstrapExpect,
		ElectionTimeout: n.cfg.ElectionTimeout,
	}
}

// advertised is what other members are told: the address as it is configured, a
// name included, with the port that was taken where any would do.
func advertised(told, bound string, l net.Listener) string {
	if told != "" {
		return told
	}
	host, port, err := net.SplitHostPort(bound)
	if _, taken, failed := net.SplitHostPort(l.Addr().String()); err == nil && failed == nil && port == "0" {
		return net.JoinHostPort(host, taken)
	}
	return bound
}

// NodeID is the id of the node and its data.
func (n *Node) NodeID() string { return n.store.NodeID() }

// leads says whether this node leads the cluster.
func (n *Node) leads() bool { return n.store.Leader().NodeID == n.store.NodeID() }

// Members returns the members of the cluster, as far as this node knows.
func (n *Node) Members(ctx context.Context) ([]raftstore.Member, error) {
	members, err := n.store.Members(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the members: %w", err)
	}
	return members, nil
}
