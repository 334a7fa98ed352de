package raftstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/clock"
)

// testElectionTimeout is short for tests, and long for a machine that does much
// else.
const testElectionTimeout = 500 * time.Millisecond

// testCluster is a cluster under test, of nodes on the loopback interface.
type testCluster struct {
	t     *testing.T
	certs string
	nodes []*node
}

// newTestCluster makes nodes n1, n2, ... that are not open yet, and expect to found
// a cluster of so many.
func newTestCluster(t *testing.T, nodes, expect int) *testCluster {
	t.Helper()
	c := &testCluster{t: t, certs: filepath.Join(t.TempDir(), "certs")}
	subjects := make([]certs.Subject, nodes)
	for i := range subjects {
		subjects[i].Name = fmt.Sprintf("n%d", i+1)
	}
	if _, err := certs.Init(c.certs, subjects, time.Now()); err != nil {
		t.Fatal(err)
	}
	var addrs []string
	for i := range nodes {
		l := listen(t, "127.0.0.1:0")
		addr := l.Addr().String()
		addrs = append(addrs, addr)
		own := c.tls(subjects[i].Name)
		c.nodes = append(c.nodes, &node{t: t, clk: clock.System(), cfg: Config{
			Dir: filepath.Join(t.TempDir(), "data"),
			Cluster: &Cluster{
				Listener: l, Advertise: addr, GRPCAddr: fmt.Sprintf("grpc-%d:7420", i+1), TLS: func() *tls.Config { return own },
				Expect: expect, ElectionTimeout: testElectionTimeout,
			},
		}})
	}
	for _, n := range c.nodes {
		n.cfg.Cluster.Join = addrs
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			if n.Store != nil {
				n.Close()
			} else {
				n.cfg.Cluster.Listener.Close()
			}
		}
	})
	return c
}

// startCluster starts so many nodes, which found a cluster, and returns it when one
// of them leads.
func startCluster(t *testing.T, nodes int) *testCluster {
	t.Helper()
	c := newTestCluster(t, nodes, nodes)
	for _, n := range c.nodes {
		n.begin()
	}
	c.leader()
	return c
}

func listen(t *testing.T, addr string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (c *testCluster) tls(name string) *tls.Config {
	c.t.Helper()
	path := func(file string) string { return filepath.Join(c.certs, file) }
	config, err := certs.Peers(path("ca.crt"), path(name+".crt"), path(name+".key"))
	if err != nil {
		c.t.Fatal(err)
	}
	return config
}

// begin opens a node, and does not wait for it.
func (n *node) begin() {
	n.t.Helper()
	s, err := Open(n.cfg, testLogger(n.t).With("node", n.cfg.Cluster.GRPCAddr), newRegistry(), n.clk)
	if err != nil {
		n.t.Fatalf("open: %v", err)
	}
	n.Store = s
}

// comeBack opens a node once more, at the same address.
func (n *node) comeBack() {
	n.t.Helper()
	n.cfg.Cluster.Listener = listen(n.t.(*testing.T), n.cfg.Cluster.Advertise)
	n.begin()
}

var errKilled = errors.New("killed by the test")

func (n *node) leads() bool { return n.term.Load() != nil }

// kill ends a node without a word to the others.
func (n *node) kill() {
	n.t.Helper()
	n.fail(errKilled)
	if err := n.Close(); err != nil {
		n.t.Fatalf("close: %v", err)
	}
}

// running returns the nodes that have not been closed.
func (c *testCluster) running() (running []*node) {
	for _, n := range c.nodes {
		if n.Store != nil && !n.isClosing() {
			running = append(running, n)
		}
	}
	return running
}

// leader waits until a node leads and is ready, and returns it.
func (c *testCluster) leader() *node {
	c.t.Helper()
	var leader *node
	c.eventually("a node leads", func() bool {
		for _, n := range c.running() {
			if n.leads() {
				leader = n
			}
		}
		return leader != nil
	})
	return leader
}

// follower returns a running node that does not lead.
func (c *testCluster) follower() *node {
	c.t.Helper()
	leader := c.leader()
	for _, n := range c.running() {
		if n != leader {
			return n
		}
	}
	c.t.Fatal("nobody follows")
	return nil
}

// eventually waits until something is so, for as long as all may take.
func (c *testCluster) eventually(what string, ok func() bool) {
	c.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			c.t.Fatalf("%s: not in 30 s", what)
		}
		<-tick.C
	}
}

// agree waits until all running nodes have applied the same, and wants their states
// to be equal.
func (c *testCluster) agree() {
	c.t.Helper()
	digests := make(map[uint64]bool)
	c.eventually("all nodes apply the same", func() bool {
		clear(digests)
		indexes := make(map[uint64]bool)
		for _, n := range c.running() {
			n.fsm.mu.Lock()
			digests[n.fsm.st.Snapshot().Digest()], indexes[n.fsm.st.Index()] = true, true
			n.fsm.mu.Unlock()
		}
		return len(indexes) == 1
	})
	if len(digests) != 1 {
		c.t.Errorf("at one index there are %d states", len(digests))
	}
}

func (c *testCluster) members() []Member {
	c.t.Helper()
	members, err := c.leader().Members(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	return members
}

func TestThreeNodesFoundACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	leader.mustAcquire("acme")
	c.agree()
	ids := make(map[string]bool)
	for _, n := range c.nodes {
		id := n.ident.get()
		ids[id.ClusterID] = true
		if id.Standing != member {
			t.Errorf("%s is %s", id.NodeID, id.Standing)
		}
		c.eventually("all know the leader", func() bool {
			return n.Ready() && n.Leader() == Leader{NodeID: leader.NodeID(), GRPCAddr: leader.cfg.Cluster.GRPCAddr}
		})
	}
	if len(ids) != 1 {
		t.Errorf("there are %d clusters", len(ids))
	}
	members := c.members()
	for _, m := range members {
		if !m.Voter || !m.Reachable || m.Leader != (m.NodeID == leader.NodeID()) || m.GRPCAddr == "" || m.LastContact < 0 {
			t.Errorf("%+v", m)
		}
	}
	if len(members) != 3 {
		t.Errorf("there are %d members", len(members))
	}
	c.eventually("they show that they decided alike", func() bool {
		alike := make(map[string]bool)
		for _, m := range c.members() {
			if m.Digest == nil {
				return false
			}
			alike[fmt.Sprint(m.Applied, *m.Digest)] = true
		}
		return len(alike) == 1
	})
	_, err := c.follower().Do(t.Context(), Request{Op: acquireOp("acme")})
	if elsewhere := (*NotLeaderError)(nil); !errors.As(err, &elsewhere) || elsewhere.LeaderAddr != leader.cfg.Cluster.GRPCAddr {
		t.Errorf("a follower says %v", err)
	}
}

func TestGrantsSurviveTheLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	kept, released := leader.mustAcquire("acme"), leader.mustAcquire("acme")
	if got := leader.release(released); got != admission.LeaseReleased {
		t.Fatalf("release: %v", got)
	}
	before, _ := leader.now()
	leader.kill()
	next := c.leader()
	if after, _ := next.now(); after < before {
		t.Errorf("time went from %d to %d", before, after)
	}
	if got := next.release(released); got != admission.LeaseAlreadyReleased {
		t.Errorf("release of what the last leader had released: %v", got)
	}
	if got := next.release(kept); got != admission.LeaseReleased {
		t.Errorf("release of what the last leader had granted: %v", got)
	}
	leader.comeBack()
	c.agree()
}
