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
	for began, x := time.Now(), 0; time.Since(began) < 200*time.Millisecond; x++ {
	}
	after, _ := readUsage()
	if ours := after.ours - before.ours; ours < 5 || ours > after.busy-before.busy+2 {
		t.Errorf("worked for 20 ticks, %d were counted as ours, %d in all", ours, after.busy-before.busy)
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
