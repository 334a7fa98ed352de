package config

import (
	"slices"
	"time"
)

const (
	// mostMembers bounds bootstrap_expect: a quorum of more takes long to hear.
	mostMembers = 9
	// mostJoins bounds join; a few members are enough to find the rest.
	mostJoins = 32

	minElectionTimeout = 100 * time.Millisecond
	maxElectionTimeout = time.Minute
)

// checkCluster wants what a member needs, and nothing of it where a node is
// alone.
func (c Config) checkCluster(wrong *problems) {
	if !c.Clustered() {
		c.checkAlone(wrong)
		return
	}
	for _, f := range []struct{ key, file string }{{"peer_ca", c.PeerCA}, {"peer_cert", c.PeerCert}, {"peer_key", c.PeerKey}} {
		if f.file == "" {
			wrong.add(f.key, "is required with peer_addr: members prove themselves to one another; admitctl certs init makes the files")
		}
	}
	c.checkAdvertised(wrong)
	c.checkJoin(wrong)
	if c.ElectionTimeout < minElectionTimeout || c.ElectionTimeout > maxElectionTimeout {
		wrong.add("election_timeout", "is %s, must be from %s to %s", c.ElectionTimeout, minElectionTimeout, maxElectionTimeout)
	}
}

func (c Config) checkAlone(wrong *problems) {
	for _, s := range []struct {
		key string
		set bool
	}{
		{"peer_advertise", c.PeerAdvertise != ""},
		{"grpc_advertise", c.GRPCAdvertise != ""},
		{"join", len(c.Join) > 0},
		{"bootstrap_expect", c.BootstrapExpect != 0},
		{"peer_ca", c.PeerCA != ""},
		{"peer_cert", c.PeerCert != ""},
		{"peer_key", c.PeerKey != ""},
	} {
		if s.set {
			wrong.add(s.key, "needs peer_addr")
		}
	}
}

// checkAdvertised wants addresses that the other members can call.
func (c Config) checkAdvertised(wrong *problems) {
	peer := c.checkCallable(wrong, "peer_addr", WithPeerPort(c.PeerAddr), "peer_advertise", WithPeerPort(c.PeerAdvertise))
	grpc := c.checkCallable(wrong, "grpc_addr", c.GRPCAddr, "grpc_advertise", c.GRPCAdvertise)
	if peer != "" && grpc != "" && !isLoopback(peer) && isLoopback(grpc) {
		wrong.add("grpc_addr", "%s is out of reach for members that call %s: they forward calls to it; set grpc_addr or grpc_advertise", grpc, peer)
	}
}

// checkCallable returns the host that others are told, or nothing if there is
// none that they can call.
func (c Config) checkCallable(wrong *problems, boundKey, bound, toldKey, told string) (host string) {
	host, _, err := splitAddr(bound)
	if err != nil {
		if boundKey != "grpc_addr" { // which checkPorts has told of
			wrong.add(boundKey, "%w", err)
		}
		return ""
	}
	if told != "" {
		var port string
		if host, port, err = splitAddr(told); err != nil {
			wrong.add(toldKey, "%w", err)
			return ""
		}
		if port == "0" || isEverywhere(host) {
			wrong.add(toldKey, "%q is no address that other members can call", told)
			return ""
		}
		return host
	}
	if isEverywhere(host) {
		wrong.add(toldKey, "is required, because %s is %q, which other members can't call", boundKey, bound)
		return ""
	}
	return host
}

func (c Config) checkJoin(wrong *problems) {
	if len(c.Join) > mostJoins {
		wrong.add("join", "has %d addresses, at most %d are needed", len(c.Join), mostJoins)
	}
	for _, addr := range c.Join {
		host, port, err := splitAddr(WithPeerPort(addr))
		switch {
		case err != nil:
			wrong.add("join", "%w", err)
		case port == "0" || isEverywhere(host):
			wrong.add("join", "%q is no address that can be called", addr)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(c.Join)))) != len(c.Join) {
		wrong.add("join", "has an address twice")
	}
	switch {
	case c.BootstrapExpect < 0 || c.BootstrapExpect > mostMembers:
		wrong.add("bootstrap_expect", "is %d, must be from 0 to %d", c.BootstrapExpect, mostMembers)
	case c.BootstrapExpect > 1 && len(c.Join) == 0:
		wrong.add("bootstrap_expect", "is %d, and join does not say where the others are", c.BootstrapExpect)
	case c.BootstrapExpect > 1 && len(c.Join) >= 2*c.BootstrapExpect:
		wrong.add("bootstrap_expect", "is %d, and of the %d nodes at join so many could found a cluster each",
			c.BootstrapExpect, len(c.Join))
	}
}
