package e2e

import (
	"os"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// TestWrongClock steps the leader's wall clock an hour either way. No permit is lost
// by it, and no limit broken.
func TestWrongClock(t *testing.T) {
	files := map[*harness.Node]string{}
	tr := startTrial(t, func(n *harness.Node) { files[n] = n.WrongClock() })
	set := func(leader int, text string) func() {
		return func() {
			file := files[tr.cluster.Nodes[leader]]
			if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, wrong := range []string{"3600", "-3600"} {
		leader := tr.cluster.Leader()
		tr.fault("a step of the leader's clock by "+wrong+" s", set(leader, wrong))
		tr.work()
		tr.fault("kill -9 of the leader", tr.cluster.Nodes[leader].Kill)
		tr.restart(leader)
		tr.fault("a right clock again", set(leader, ""))
	}
	// What was planned while the clock was ahead is due when all clocks are there.
	for member := range tr.cluster.Nodes {
		set(member, "3600")()
	}
	tr.finish()
}
