package server

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// How much a node remembers of how the lanes stood. A sample of a lane is 56 bytes, so
// that all take 10 MB at most.
const (
	historyInterval = 5 * time.Second
	historySpan     = 15 * time.Minute
	historySamples  = int(historySpan / historyInterval)
	historyLanes    = 1000
)

// laneHistory remembers how the lanes stood, as this node saw them. It is kept in memory
// alone: what a node did not see is missing, and while it is not ready it sees nothing.
type laneHistory struct {
	store         Store
	kept, leftOut prometheus.Gauge

	mu sync.Mutex
	// ring holds the samples, the oldest at next.
	ring [historySamples]historySample
	next int

	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
}

// historySample is one look at the lanes, in the order of the policy.
type historySample struct {
	at    time.Time // zero where none was taken yet
	lanes []laneSample
}

type laneSample struct {
	pool, lane    string
	depth, active int64
	oldest        time.Duration
}

func newLaneHistory(store Store) *laneHistory {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &laneHistory{
		store:   store,
		kept:    gauge("admit_history_lanes", "Lanes whose last 15 minutes this node remembers, 1000 at most."),
		leftOut: gauge("admit_history_lanes_left_out", "Lanes beyond those, of which it remembers nothing."),
		ctx:     ctx, cancel: cancel, done: make(chan struct{}),
	}
}

func (h *laneHistory) collectors() []prometheus.Collector {
	return []prometheus.Collector{h.kept, h.leftOut}
}

// start looks at the lanes until close.
func (h *laneHistory) start() {
	go func() {
		defer close(h.done)
		ticker := time.NewTicker(historyInterval)
		defer ticker.Stop()
		for {
			select {
			case now := <-ticker.C:
				if h.store.Ready() {
					h.sample(now)
				}
			case <-h.ctx.Done():
				return
			}
		}
	}()
}

// close ends what start began.
func (h *laneHistory) close() {
	h.cancel()
	<-h.done
}

// sample remembers how the lanes stand, in the place of what is oldest.
func (h *laneHistory) sample(now time.Time) {
	var pools []admission.PoolHealth
	h.store.ViewAt(raftstore.ReadPoint{}, func(st *admission.State, at admission.Instant, w admission.Wall) {
		pools = st.Health(at, w, "")
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.ring[h.next]
	h.next = (h.next + 1) % historySamples
	s.at = now
	// Another array, as long as what is in it: a policy that was large once does not
	// stay in memory.
	s.lanes = make([]laneSample, 0, min(countLanes(pools), historyLanes))
	for _, p := range pools {
		for _, l := range p.Lanes[:min(len(p.Lanes), historyLanes-len(s.lanes))] {
			s.lanes = append(s.lanes, laneSample{p.Pool, l.Lane, l.Depth, l.Active, l.OldestAge})
		}
	}
	h.kept.Set(float64(len(s.lanes)))
	h.leftOut.Set(float64(countLanes(pools) - len(s.lanes)))
}

func countLanes(pools []admission.PoolHealth) (n int) {
	for _, p := range pools {
		n += len(p.Lanes)
	}
	return n
}

// of returns what is remembered of a pool, the oldest first.
func (h *laneHistory) of(pool string, now time.Time) []*admitv1.PoolSample {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []*admitv1.PoolSample
	for i := range h.ring {
		s := &h.ring[(h.next+i)%historySamples]
		ago := now.Sub(s.at)
		if s.at.IsZero() || ago >= historySpan {
			continue
		}
		sample := &admitv1.PoolSample{Ago: durationpb.New(ago)}
		for _, l := range s.lanes {
			if l.pool == pool {
				sample.Lanes = append(sample.Lanes, l.write())
			}
		}
		if len(sample.Lanes) > 0 {
			out = append(out, sample)
		}
	}
	return out
}

func (l laneSample) write() *admitv1.LaneSample {
	return &admitv1.LaneSample{
		Lane: l.lane, Depth: l.depth, Active: l.active, OldestAge: oldestAge(admission.LaneState{Depth: l.depth, OldestAge: l.oldest}),
	}
}
