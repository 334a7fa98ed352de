//go:build !race

package raftstore

import (
	"testing"

	"github.com/admitd/admit/raftstore/peer"
)

// Not under the race detector, which finds hashicorp/raft#681 here: raft replaces
// what it knows of a member that moves while whoever replicates to it reads the
// member's id there, without the lock. The id is the same before and after.
func TestAMemberIsFoundWhereItMovesTo(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	moved := c.follower()
	moved.kill()
	l := listen(t, "127.0.0.1:0")
	moved.cfg.Cluster.Listener, moved.cfg.Cluster.Advertise = l, l.Addr().String()
	moved.begin()
	c.eventually("the cluster knows its address", func() bool {
		for _, server := range c.leader().servers() {
			if string(server.ID) == moved.NodeID() {
				return peer.AddrOf(server.Address) == l.Addr().String()
			}
		}
		return false
	})
	c.agree()
}
