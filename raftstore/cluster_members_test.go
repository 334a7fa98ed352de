package raftstore

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore/peer"
)

func (c *testCluster) member(nodeID string) (Member, bool) {
	members := c.members()
	i := slices.IndexFunc(members, func(m Member) bool { return m.NodeID == nodeID })
	if i < 0 {
		return Member{}, false
	}
	return members[i], true
}

// A node that is told to found a cluster by itself founds none where there is one.
// It takes part in it without a vote until it has caught up, may lead once it has
// one, and the first node may go.
func TestANodeJoinsLeadsAndStays(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 2, 1)
	first, second := c.nodes[0], c.nodes[1]
	// A node that is alone does not wait for it.
	first.cfg.Cluster.Join, first.cfg.Cluster.ElectionTimeout = nil, 10*time.Second
	first.begin()
	first.waitReady()
	first.applyPolicy(testPolicy())
	token := first.mustAcquire("acme")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	first.cfg.Cluster.ElectionTimeout = testElectionTimeout
	first.comeBack()
	first.waitReady()

	second.begin()
	c.eventually("the second joins", func() bool {
		m, ok := c.member(second.NodeID())
		return ok && m.Reachable
	})
	if m, _ := c.member(second.NodeID()); m.Voter {
		t.Error("it has a vote at once")
	}
	if second.leads() {
		t.Error("it leads a cluster of its own")
	}
	c.eventually("it is given its vote", func() bool {
		m, _ := c.member(second.NodeID())
		return m.Voter
	})
	if err := first.Transfer(t.Context(), second.NodeID()); err != nil {
		t.Fatal(err)
	}
	c.eventually("it leads", second.leads)
	if got := second.release(token); got != admission.LeaseReleased {
		t.Errorf("release: %v", got)
	}
	if err := first.Remove(t.Context(), first.NodeID()); !errors.As(err, new(*NotLeaderError)) && !errors.Is(err, ErrNoQuorum) {
		t.Errorf("who does not lead removes: %v", err)
	}
	if err := second.Remove(t.Context(), first.NodeID()); err != nil {
		t.Fatal(err)
	}
	if err := second.Remove(t.Context(), second.NodeID()); !errors.Is(err, ErrMembership) {
		t.Errorf("the last voter goes: %v", err)
	}
	if members := c.members(); len(members) != 1 {
		t.Errorf("the members are %+v", members)
	}
}

// With a new disk a node is another one, under the same certificate; the old one
// stays a member until it is removed, and no other may be as long as it is away.
func TestAWipedDiskIsAnotherNode(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.leader().applyPolicy(testPolicy())
	lost := c.follower()
	old := lost.NodeID()
	lost.kill()
	leader := c.leader()
	if err := os.RemoveAll(lost.cfg.Dir); err != nil {
		t.Fatal(err)
	}
	lost.comeBack()
	c.eventually("it joins anew", func() bool {
		m, ok := c.member(lost.NodeID())
		return ok && m.Reachable
	})
	if lost.NodeID() == old {
		t.Error("it has the id of what it lost")
	}
	if m, ok := c.member(old); !ok || m.Reachable || !m.Voter {
		t.Errorf("of the old one the members say %+v", m)
	}
	c.eventually("the old one has been away for long", func() bool {
		_, ago, _ := leader.cluster.port.Book().Find(old)
		return ago > transportTimeouts*testElectionTimeout
	})
	for _, m := range c.members() {
		if m.Voter && m.Reachable {
			if err := leader.Remove(t.Context(), m.NodeID); !errors.Is(err, ErrMembership) {
				t.Errorf("another is removed: %v", err)
			}
		}
	}
	if err := leader.Remove(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	c.agree()
}

// Who leads hands over before it goes, so that nobody waits for an election.
func TestAClosingLeaderHandsOver(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 3, 3)
	for _, n := range c.nodes {
		n.cfg.Cluster.ElectionTimeout = 3 * time.Second
		n.begin()
	}
	leader := c.leader()
	leader.applyPolicy(testPolicy())
	start := time.Now()
	if err := leader.Close(); err != nil {
		t.Fatal(err)
	}
	c.leader()
	if took := time.Since(start); took >= 3*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestNodesThatWaitAreTakenIn(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 2, 0)
	c.nodes[0].cfg.Cluster.Expect, c.nodes[0].cfg.Cluster.Join, c.nodes[1].cfg.Cluster.Join = 1, nil, nil
	first, second := c.nodes[0], c.nodes[1]
	second.begin()
	if second.Ready() {
		t.Error("a node without a cluster is ready")
	}
	if _, err := second.Do(t.Context(), Request{Op: acquireOp("acme")}); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("a node without a cluster says %v", err)
	}
	first.begin()
	first.waitReady()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := first.Join(ctx, "127.0.0.1:1"); !errors.Is(err, ErrMembership) {
		t.Errorf("nobody was taken in: %v", err)
	}
	if err := first.Join(ctx, second.cfg.Cluster.Advertise); err != nil {
		t.Fatal(err)
	}
	if err := first.Promote(ctx, second.NodeID()); err != nil {
		t.Fatal(err)
	}
	c.agree()
}

// A node that promised to be of a cluster, and was founded without, is taken in.
func TestWhoWasLeftOutIsTakenIn(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t, 2, 1)
	first, out := c.nodes[0], c.nodes[1]
	first.cfg.Cluster.Join = nil
	first.begin()
	first.waitReady()
	if err := os.MkdirAll(out.cfg.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	promised := identity{
		Version: dataVersion, NodeID: newNodeID("n2"), ClusterID: first.ident.get().ClusterID, Standing: joining,
	}
	if err := writeIdentity(out.cfg.Dir, promised); err != nil {
		t.Fatal(err)
	}
	out.begin()
	c.eventually("it is given a vote", func() bool {
		m, _ := c.member(promised.NodeID)
		return m.Voter
	})
	c.agree()
}

func TestFoundersAreThoseWhoSeeEachOther(t *testing.T) {
	info := func(id, cluster string, expect int, sees ...string) (in peer.Info) {
		in.NodeID, in.ClusterID, in.Expect, in.Sees = id, cluster, expect, sees
		return in
	}
	for name, c := range map[string]struct {
		self   peer.Info
		others []peer.Info
		want   []string
	}{
		"one":          {info("a", "", 1), nil, []string{"a"}},
		"waiting":      {info("a", "", 0, "b"), []peer.Info{info("b", "", 2, "a")}, nil},
		"two":          {info("b", "", 2, "a"), []peer.Info{info("a", "", 2, "b")}, []string{"a", "b"}},
		"few":          {info("a", "", 3, "b"), []peer.Info{info("b", "", 3, "a")}, nil},
		"blind":        {info("a", "", 2, "b"), []peer.Info{info("b", "", 2)}, nil},
		"another size": {info("a", "", 2, "b"), []peer.Info{info("b", "", 3, "a")}, nil},
		"one too many": {
			info("c", "", 2, "a", "b"), []peer.Info{info("a", "", 2, "b", "c"), info("b", "", 2, "a", "c")}, nil,
		},
		"promised here":      {info("a", "x", 2, "b"), []peer.Info{info("b", "x", 2)}, []string{"a", "b"}},
		"promised elsewhere": {info("a", "", 2, "b"), []peer.Info{info("b", "x", 2, "a")}, nil},
		"listed twice": {
			info("a", "", 3, "b"), []peer.Info{info("b", "", 3, "a"), info("b", "", 3, "a")}, nil,
		},
	} {
		var got []string
		for _, in := range founders(c.self, c.others) {
			got = append(got, in.NodeID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: founded by %v, want %v", name, got, c.want)
		}
	}
}
