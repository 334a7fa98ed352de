package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/e2e/judge"
)

// noiseEvery is how often the machine is probed: seldom enough not to be the
// noise.
const noiseEvery = 50 * time.Millisecond

// Noise watches the machine itself while a test measures: how late a sleeper is
// woken and how long the disk takes to keep a few bytes. Figures that are bad
// where these are bad say little about admit.
type Noise struct {
	t       testing.TB
	file    *os.File
	stopped chan struct{}
	stop    func()
	running sync.WaitGroup
	late    []time.Duration
	sync    []time.Duration
}

// WatchNoise starts to watch the machine, with a file in dir.
func WatchNoise(t testing.TB, dir string) *Noise {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "noise"))
	if err != nil {
		t.Fatalf("make a file to probe the disk with: %v", err)
	}
	n := &Noise{t: t, file: f, stopped: make(chan struct{})}
	n.stop = sync.OnceFunc(func() { close(n.stopped) })
	n.running.Go(n.watch)
	t.Cleanup(n.end)
	return n
}

func (n *Noise) watch() {
	for {
		before := time.Now()
		timer := time.NewTimer(noiseEvery)
		select {
		case <-timer.C:
		case <-n.stopped:
			timer.Stop()
			return
		}
		woken := time.Now()
		n.late = append(n.late, woken.Sub(before)-noiseEvery)
		if _, err := n.file.WriteAt([]byte("noise"), 0); err != nil {
			n.t.Errorf("probe the disk: %v", err)
			return
		}
		if err := n.file.Sync(); err != nil {
			n.t.Errorf("probe the disk: %v", err)
			return
		}
		n.sync = append(n.sync, time.Since(woken))
	}
}

// end ends the watch, once or again.
func (n *Noise) end() {
	n.stop()
	n.running.Wait()
	_ = n.file.Close()
}

// Stop ends the watch and says what it saw.
func (n *Noise) Stop() NoiseFigures {
	n.end()
	if len(n.sync) == 0 {
		return NoiseFigures{}
	}
	return NoiseFigures{
		LateP99: judge.Percentile(n.late, 0.99), LateMost: judge.Percentile(n.late, 1),
		SyncP99: judge.Percentile(n.sync, 0.99), SyncMost: judge.Percentile(n.sync, 1),
	}
}

// NoiseFigures say how late the machine woke a sleeper, and how long its disk
// took to keep a few bytes.
type NoiseFigures struct {
	LateP99, LateMost, SyncP99, SyncMost time.Duration
}

// P99 is one number for how much the machine was disturbed.
func (f NoiseFigures) P99() time.Duration { return f.LateP99 + f.SyncP99 }

// String is the figures in one line.
func (f NoiseFigures) String() string {
	return fmt.Sprintf("the machine: wakes a sleeper late by p99 %v, most %v; keeps bytes within p99 %v, most %v",
		f.LateP99, f.LateMost, f.SyncP99, f.SyncMost)
}
