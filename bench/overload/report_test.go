package overload

import (
	"testing"
	"time"

	"github.com/admitd/admit/bench/result"
)

func TestRoundsAreComparedWithTheirOwnPeak(t *testing.T) {
	rounds := []round{
		{peak: 100, offered: 300, goodput: 95, quietPeak: 10 * time.Millisecond, quietOver: 15 * time.Millisecond, recovery: time.Second},
		{peak: 200, offered: 500, goodput: 100, quietPeak: 10 * time.Millisecond, quietOver: 40 * time.Millisecond, recovery: 7 * time.Second,
			releasesRefused: 2, acquiresRefused: 9},
	}
	facts := report(rounds)
	for what, want := range map[string][2]float64{
		"offered, by that":                                     {3, 2.5},
		"done of it, by that":                                  {0.95, 0.5},
		"Releases refused for overload":                        {0, 2},
		"the same beside what is offered, by that":             {1.5, 4},
		"until the quiet tenant's calls are as fast as before": {1, 7},
	} {
		if got := figures(facts, what); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if c := releases(rounds[:1]); c.Wrong != "" {
		t.Errorf("no Release was refused: %s", c.Wrong)
	}
	if c := releases(rounds); c.Wrong == "" {
		t.Error("2 Releases were refused, and the check holds")
	}
}

// figures are a fact's figures.
func figures(facts []result.Fact, what string) []float64 {
	for _, f := range facts {
		if f.What == what {
			return f.Rounds
		}
	}
	return nil
}
