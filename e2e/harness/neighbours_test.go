package harness

import (
	"os"
	"testing"
	"time"
)

func TestReadUsageTellsOursFromTheRest(t *testing.T) {
	before, ok := readUsage()
	if !ok {
		if _, err := os.Stat("/proc/stat"); err == nil {
			t.Fatal("reads no usage although there is a /proc")
		}
		return // nothing to read on this system
	}
	after := before
	for began := time.Now(); after.ours < before.ours+5; {
		if time.Since(began) > 20*time.Second {
			t.Fatal("20 seconds of work were not counted as ours")
		}
		after, _ = readUsage()
	}
	if ours, all := after.ours-before.ours, after.busy-before.busy; ours > all+2 {
		t.Errorf("%d ticks were counted as ours, of %d in all", ours, all)
	}
}

func TestNeighboursInTheWay(t *testing.T) {
	for name, c := range map[string]struct {
		shares []float64
		want   bool
	}{
		"alone":              {make([]float64, 100), false},
		"for one in hundred": {append(make([]float64, 99), 0.9), false},
		"for two in hundred": {append(make([]float64, 98), 0.9, 0.3), true},
		"not watched":        {nil, false},
	} {
		if got := (&Neighbours{shares: c.shares}).InTheWay(); got != c.want {
			t.Errorf("%s: in the way is %v, want %v", name, got, c.want)
		}
	}
}
