package harness

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// crowded is the part of the processors, and stalled the time of a flush to the disk,
	// from which on others are in the way.
	crowded = 0.25
	stalled = 250 * time.Millisecond
	// flushEvery is how often the disk is tried.
	flushEvery = 100 * time.Millisecond
)

// Neighbours watches how much of the machine's processors other programs use while a
// test measures, all but the test and what it started, and whether the disk answers. It
// knows nothing of processors where there is no /proc.
type Neighbours struct {
	stop    func()
	running sync.WaitGroup
	seconds []second
	// flush is the longest since the last second.
	flush atomic.Int64
}

// second is what was seen in one: the part of the processors that others used, and the
// longest flush.
type second struct {
	share float64
	flush time.Duration
}

// WatchNeighbours starts to watch, and tries the disk that has dir.
func WatchNeighbours(t testing.TB, dir string) *Neighbours {
	t.Helper()
	probe, err := os.Create(filepath.Join(dir, "flushed"))
	if err != nil {
		t.Fatalf("watch the disk: %v", err)
	}
	n := &Neighbours{}
	stopped := make(chan struct{})
	n.stop = sync.OnceFunc(func() { close(stopped) })
	n.running.Go(func() { n.watch(stopped) })
	n.running.Go(func() {
		defer probe.Close()
		n.tryDisk(probe, stopped)
	})
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
func (n *Neighbours) InTheWay() bool { return n.disturbed()*100 > len(n.seconds) }

// disturbed is in how many seconds.
func (n *Neighbours) disturbed() (seconds int) {
	for _, s := range n.seconds {
		if s.share > crowded || s.flush > stalled {
			seconds++
		}
	}
	return seconds
}

// String is the figures in one line.
func (n *Neighbours) String() string {
	return fmt.Sprintf("other programs or the disk were in the way in %d of %d seconds", n.disturbed(), len(n.seconds))
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
			n.seconds = append(n.seconds, second{
				share: float64(others) / float64(now.all-last.all), flush: time.Duration(n.flush.Swap(0)),
			})
		}
		last = now
	}
}

// tryDisk writes a little and flushes it, again and again.
func (n *Neighbours) tryDisk(probe *os.File, stopped <-chan struct{}) {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		if _, err := probe.WriteAt([]byte{1}, 0); err != nil || probe.Sync() != nil {
			return // the test will hear of it by other ways
		}
		took := int64(time.Since(began))
		for seen := n.flush.Load(); took > seen && !n.flush.CompareAndSwap(seen, took); seen = n.flush.Load() {
		}
		select {
		case <-stopped:
			return
		case <-tick.C:
		}
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
