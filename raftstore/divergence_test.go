package raftstore

import (
	"errors"
	"net"
	"testing"

	"github.com/admitd/admit/admission"
)

// A voter that takes calls and says nothing is no reason to believe the leader, but
// who has told enough is believed.
func TestAVoterThatSaysNothingSidesWithNobody(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	c.leader().applyPolicy(testPolicy())
	c.agree()
	silent := c.nodes[0] // the others ask it first
	silent.kill()
	l := listen(t, silent.cfg.Cluster.Advertise)
	defer l.Close()
	go func() { // keeps what it takes
		for conns := []net.Conn{}; ; {
			conn, err := l.Accept()
			if err != nil {
				for _, conn := range conns {
					conn.Close()
				}
				return
			}
			conns = append(conns, conn)
		}
	}()
	follower := c.follower()
	c.agree()
	var own check
	follower.fsm.read(func(*admission.State) { own = follower.fsm.digests.last })
	if err := follower.cluster.sideWithMost(own, own.digest+1); err != nil {
		t.Errorf("against most voters it believes the leader: %v", err)
	}
	if err := follower.cluster.sideWithMost(check{own.index, own.digest + 1}, own.digest); err != nil {
		t.Errorf("without most voters it believes the leader: %v", err)
	}
}

// Of two voters nobody has most behind him: the leader is right.
func TestOfTwoVotersTheLeaderIsRight(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	c.leader().applyPolicy(testPolicy())
	c.agree()
	follower := c.follower()
	var own check
	follower.fsm.read(func(*admission.State) { own = follower.fsm.digests.last })
	if err := follower.cluster.sideWithMost(own, own.digest); err != nil {
		t.Errorf("who is with the leader stops: %v", err)
	}
	wrong := check{own.index, own.digest + 1}
	if err := follower.cluster.sideWithMost(wrong, own.digest); !errors.Is(err, errDiverged) {
		t.Errorf("who is not goes on: %v", err)
	}
}
