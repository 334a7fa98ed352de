package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// crowded is the part of the machine from which on others are in the way.
const crowded = 0.25

// Neighbours watches how much of the machine's processors other programs use
// while a test measures: all but the test and what it started. It knows nothing
// where there is no /proc.
type Neighbours struct {
	stop    func()
	running sync.WaitGroup
	shares  []float64 // of the machine, for each second
}

// WatchNeighbours starts to watch.
func WatchNeighbours(t testing.TB) *Neighbours {
	n := &Neighbours{}
	stopped := make(chan struct{})
	n.stop = sync.OnceFunc(func() { close(stopped) })
	n.running.Go(func() { n.watch(stopped) })
	t.Cleanup(n.end)
	return n
}

func (n *Neighbours) end() {
	n.stop()
	n.running.Wait()
}

// Stop ends the watch.
func (n *Neighbours) Stop() *Neighbours {
	n.end()
	return n
}

// InTheWay says whether others were in the way for long enough to be seen in a
// 99th percentile.
func (n *Neighbours) InTheWay() bool { return n.crowdedFor()*100 > len(n.shares) }

func (n *Neighbours) crowdedFor() (seconds int) {
	for _, share := range n.shares {
		if share > crowded {
			seconds++
		}
	}
	return seconds
}

// String is the figures in one line.
func (n *Neighbours) String() string {
	return fmt.Sprintf("other programs were in the way in %d of %d seconds", n.crowdedFor(), len(n.shares))
}

func (n *Neighbours) watch(stopped <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, ok := readUsage()
	for ok {
		select {
		case <-stopped:
			return
		case <-tick.C:
		}
		var now usage
		if now, ok = readUsage(); ok && now.all > last.all {
			others := (now.busy - last.busy) - (now.ours - last.ours)
			n.shares = append(n.shares, float64(others)/float64(now.all-last.all))
		}
		last = now
	}
}

// usage is processor time since the machine started, in ticks.
type usage struct {
	all, busy int64 // of all processors
	ours      int64 // of this process and its children
}

// readUsage reads the processor time used so far.
func readUsage() (u usage, ok bool) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, false
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	// cpu user nice system idle iowait irq softirq steal; what follows is part
	// of user already.
	for i, field := range strings.Fields(line) {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil || i > 8 {
			continue
		}
		u.all += ticks
		if i != 4 && i != 5 {
			u.busy += ticks
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range processes {
		u.ours += ourTicks(path)
	}
	return u, u.all > 0
}

// ourTicks is the time that the process of a stat file used, 0 if it is neither
// this one nor a child of it.
func ourTicks(path string) int64 {
	stat, err := os.ReadFile(path)
	if err != nil {
		return 0 // it has ended
	}
	// pid (name) state ppid ...; the name may hold anything, a parenthesis too.
	pid, _, _ := bytes.Cut(stat, []byte(" "))
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	self := strconv.Itoa(os.Getpid())
	if string(pid) != self && string(fields[1]) != self {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return user + system
}
