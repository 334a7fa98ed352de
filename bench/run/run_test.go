package run

import (
	"strings"
	"testing"

	"github.com/admitd/admit/bench/result"
)

func TestAnsweredNamesTheFirstFailure(t *testing.T) {
	well := result.Side{System: "a", Closed: []result.Sample{{Calls: 5}}}
	ill := result.Side{System: "b", Open: []result.Sample{{Calls: 5}, {Calls: 7, Failed: 3, Failure: "no"}}}
	if c := answered([]result.Row{{Title: "r", Admit: well, Peer: well}}); c.Wrong != "" {
		t.Errorf("nothing failed, and it says %q", c.Wrong)
	}
	c := answered([]result.Row{{Title: "r", Admit: well, Peer: well}, {Title: "s", Admit: well, Peer: ill}})
	if want := "s, b: 3 of 10 in a round, one with no"; !strings.Contains(c.Wrong, want) {
		t.Errorf("it says %q, want %q", c.Wrong, want)
	}
}

func TestSidesTakeTurnsAtBeingFirst(t *testing.T) {
	a, b := &turn{}, &turn{}
	for round, first := range []*turn{a, b, a} {
		if got := order([]*turn{a, b}, round); got[0] != first || len(got) != 2 {
			t.Errorf("round %d is begun by another", round)
		}
	}
}
