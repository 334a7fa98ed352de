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
		seconds []second
		want    bool
	}{
		"alone":                 {make([]second, 100), false},
		"for one in hundred":    {append(make([]second, 99), second{share: 0.9}), false},
		"for two in hundred":    {append(make([]second, 98), second{share: 0.9}, second{share: 0.3}), true},
		"the disk in one of 50": {append(make([]second, 49), second{flush: time.Second}), true},
		"a slow disk":           {append(make([]second, 49), second{flush: stalled}), false},
		"not watched":           {nil, false},
	} {
		if got := (&Neighbours{seconds: c.seconds}).InTheWay(); got != c.want {
			t.Errorf("%s: in the way is %v, want %v", name, got, c.want)
		}
	}
}
