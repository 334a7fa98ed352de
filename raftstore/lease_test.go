package raftstore

import (
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/raftstore/peer"
)

// A leader that was stopped, and goes on, does not answer from what it knew then.
func TestALeaderThatWasStoppedAsksTheOthersFirst(t *testing.T) {
	t.Parallel()
	n := startCluster(t, 3).leader()
	m, now := n.cluster, time.Now()
	if !m.leaseHolds(now) {
		t.Error("the lease of a leader does not hold")
	}
	if m.leaseHolds(now.Add(2 * testElectionTimeout)) {
		t.Error("the lease holds though nobody was heard of")
	}
	if age := n.Age(); age != 0 {
		t.Errorf("the leader's age is %v", age)
	}
}

// That others talk, in the name of a new leader perhaps, is no lease.
func TestContactIsNoLease(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	n := c.follower()
	c.eventually("a follower has no lease", func() bool {
		for _, other := range c.nodes {
			for _, at := range other.cluster.members() {
				if _, err := other.cluster.port.CallMember(t.Context(), at.nodeID, at.addr, peer.Request{}); err != nil {
					t.Error(err)
				}
			}
		}
		return !n.cluster.leaseHolds(time.Now())
	})
}

// A node that has just lost the lead knows no more than when others last followed it.
func TestTheAgeOfWhoLostTheLead(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	leader := c.leader()
	for _, n := range c.nodes {
		if n != leader {
			n.kill()
		}
	}
	killed := time.Now()
	c.eventually("it leads no more", func() bool { return !leader.leads() })
	if age, least := leader.Age(), time.Since(killed)-testElectionTimeout/2; age < least {
		t.Errorf("its age is %v, though it has been alone for at least %v", age, least)
	}
}

// An answer to what was sent before the question does not count for it.
func TestALeadIsConfirmedAfterTheQuestion(t *testing.T) {
	t.Parallel()
	n := startCluster(t, 3).leader()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				asked := time.Now()
				if _, err := n.ReadPoint(t.Context()); err != nil {
					t.Error(err)
					return
				}
				if at := n.cluster.confirmed(time.Now()); at.Before(asked) {
					t.Errorf("confirmed %v before the question", asked.Sub(at))
				}
			}
		})
	}
	all.Wait()
}
