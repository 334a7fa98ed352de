package raftstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/admitd/admit/raftstore/peer"
)

// Cluster makes a store a member of a cluster: it says where the others are and
// how to talk to them.
type Cluster struct {
	// Listener is the peer port, already bound. The store closes it.
	Listener net.Listener
	// Advertise is the host:port at which other members dial the peer port.
	Advertise string
	// GRPCAddr is the host:port of this node's API, told to the others.
	GRPCAddr string
	// TLS returns what holds for the next connection, since certificates are replaced. It
	// has the node's certificate and, in ClientCAs, the authorities that issue
	// those of all members, whoever dials. The certificate names its node by the URI
	// spiffe://DOMAIN/admit/node/NAME, always the same; hosts in it don't matter.
	// Required; several goroutines may call it at once.
	TLS func() *tls.Config
	// Join are the peer addresses at which to look for a cluster. This node's own
	// may be among them.
	Join []string
	// Expect founds a cluster once so many nodes without one see each other. With
	// 0 this node founds none and waits to be taken in; with 1 it founds one by
	// itself. It matters only to a node that has no data yet, and to none where a
	// cluster is found at Join.
	Expect int
	// ElectionTimeout is how long a leader may be silent before the others elect
	// another, and what all other times of the protocol follow from. Default 1 s;
	// more is for slow machines.
	ElectionTimeout time.Duration
}

// Leader says who leads; zero where nobody is known to.
type Leader struct {
	NodeID string
	// GRPCAddr is where its API is, or "" while that is not known.
	GRPCAddr string
}

// Member is one node of the cluster.
type Member struct {
	NodeID string
	// PeerAddr and GRPCAddr are where it listens for members and for callers. A lone
	// node has neither, and of one that was not heard of GRPCAddr may be unknown.
	PeerAddr, GRPCAddr string
	// Voter says whether it counts for a quorum: it does not before it has caught up.
	Voter  bool
	Leader bool
	// Reachable says whether it answered just now; LastContact is how long ago this
	// node last heard of it, or -1 if it never has.
	Reachable   bool
	LastContact time.Duration
	// Applied is the index of the last log entry that it had applied when last asked.
	Applied uint64
	// Digest is what all that it decided up to there comes to, or nil if it did not say.
	// Members that have applied the same entries have the same, or have diverged.
	Digest *uint64
}

// validate says what is wrong with the settings, if a node is to be a member.
func (c *Cluster) validate() error {
	if c == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Advertise)
	switch ip := net.ParseIP(host); {
	case err != nil:
		return fmt.Errorf("the address for members: %w", err)
	case host == "", ip != nil && ip.IsUnspecified():
		return fmt.Errorf("the address for members: %s is none that they could dial", c.Advertise)
	case c.Listener == nil:
		return errors.New("a member needs a port for the others")
	case c.TLS == nil:
		return errors.New("members talk over TLS only, and there is no configuration for it")
	}
	_, err = c.name()
	return err
}

// name returns this node's name.
func (c *Cluster) name() (string, error) {
	name, err := peer.OwnName(c.TLS())
	if err != nil {
		return "", fmt.Errorf("talk to members: %w", err)
	}
	return name, nil
}
