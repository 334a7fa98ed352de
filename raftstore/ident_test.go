package raftstore

import (
	"strings"
	"testing"

	"github.com/admitd/admit/internal/clock"
)

// reread returns what the directory says.
func (i *ident) reread(t *testing.T) identity {
	t.Helper()
	again, known, err := readIdent(i.dir)
	if err != nil || !known {
		t.Fatalf("read the identity: %t, %v", known, err)
	}
	return again.id
}

// A node is of one cluster in its life, and what it promised it still knows after a
// crash.
func TestANodeIsOfOneCluster(t *testing.T) {
	for name, begin := range map[string]func(*ident) error{
		"joins":  func(i *ident) error { return i.enter("c1") },
		"founds": (*ident).found,
	} {
		i, _, err := readIdent(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := i.change(func(id *identity) { id.NodeID, id.Standing = "n1-a", seeking }); err != nil {
			t.Fatal(err)
		}
		if err := begin(i); err != nil {
			t.Fatal(err)
		}
		id := i.get()
		if id.ClusterID == "" || i.reread(t) != id {
			t.Errorf("%s: it is %+v, and on the disk %+v", name, id, i.reread(t))
		}
		if err := i.enter("c2"); err == nil {
			t.Errorf("%s: it enters another cluster", name)
		}
		if err := begin(i); err != nil || i.get() != id {
			t.Errorf("%s: once more it is %+v, %v", name, i.get(), err)
		}
		if err := i.settle(); err != nil || i.reread(t).Standing != member || i.get().ClusterID != id.ClusterID {
			t.Errorf("%s: with a log it is %+v, %v", name, i.get(), err)
		}
		if err := i.found(); err == nil {
			t.Errorf("%s: it founds another cluster", name)
		}
	}
}

// Without the others a member's data is nobody's: alone it would wait for ever, and
// with another's certificate it would be somebody else.
func TestAMembersDataIsItsOwn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 2)
	leader, n := c.leader(), c.follower()
	n.kill()
	_, err := Open(Config{Dir: n.cfg.Dir}, testLogger(t), newRegistry(), clock.System())
	if err == nil || !strings.Contains(err.Error(), "can't be opened alone") {
		t.Errorf("opened alone: %v", err)
	}
	other := *n.cfg.Cluster
	other.TLS, other.Listener = leader.cfg.Cluster.TLS, listen(t, "127.0.0.1:0")
	defer other.Listener.Close()
	_, err = Open(Config{Dir: n.cfg.Dir, Cluster: &other}, testLogger(t), newRegistry(), clock.System())
	if err == nil || !strings.Contains(err.Error(), "the certificate is of node") {
		t.Errorf("opened with another's certificate: %v", err)
	}
}

// Whoever looks for a cluster, or has promised to be of one, would found another alone.
func TestWhoIsToBeOfAClusterIsNotOpenedAlone(t *testing.T) {
	for _, standing := range []string{seeking, founding, joining} {
		dir := t.TempDir()
		if err := writeIdentity(dir, identity{Version: dataVersion, NodeID: "n1-a", ClusterID: "c", Standing: standing}); err != nil {
			t.Fatal(err)
		}
		_, err := Open(Config{Dir: dir}, testLogger(t), newRegistry(), clock.System())
		if err == nil || !strings.Contains(err.Error(), "can't be opened alone") {
			t.Errorf("%s: %v", standing, err)
		}
	}
}
