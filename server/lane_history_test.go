package server

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// lanesOf applies a policy of pools with two lanes each.
func lanesOf(f *fakeStore, pools int) {
	var p admission.Policy
	for i := range pools {
		p.Pools = append(p.Pools, admission.PoolPolicy{Name: fmt.Sprint("pool-", i), Lanes: []admission.LanePolicy{{Name: "high"}, {Name: "low"}}})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(raftstore.Request{Op: admission.ApplyPolicy{Policy: p, ExpectedRevision: admission.AnyRevision}})
}

func acquireIn(f *fakeStore, pool string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apply(raftstore.Request{Op: &admission.Acquire{Pool: pool, Tenant: "t", Cost: 1, TTL: time.Hour, Nonce: f.index}})
}

// remembering runs fn beside a history of a store with two pools, in a time of its own.
func remembering(t *testing.T, fn func(f *fakeStore, h *laneHistory)) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeStore()
		lanesOf(f, 2)
		h := newLaneHistory(f)
		h.start()
		defer h.close()
		fn(f, h)
	})
}

func valueOf(t *testing.T, g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue()
}

// pass lets time pass until the samples of it are taken.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func activeLow(samples []*admitv1.PoolSample) (out []int64) {
	for _, s := range samples {
		out = append(out, s.GetLanes()[1].GetActive())
	}
	return out
}

func TestHistoryShowsHowLanesStood(t *testing.T) {
	remembering(t, func(f *fakeStore, h *laneHistory) {
		for range 3 {
			acquireIn(f, "pool-1")
			pass(historyInterval)
		}
		pass(time.Second)
		got := h.of("pool-1", time.Now())
		if fmt.Sprint(activeLow(got)) != "[1 2 3]" || got[0].GetLanes()[0].GetLane() != "high" || got[0].GetLanes()[1].GetLane() != "low" {
			t.Errorf("got %v", got)
		}
		if first, last := got[0].GetAgo().AsDuration(), got[2].GetAgo().AsDuration(); first != 11*time.Second || last != time.Second {
			t.Errorf("the samples are %v and %v old", first, last)
		}
		if got := activeLow(h.of("pool-0", time.Now())); fmt.Sprint(got) != "[0 0 0]" {
			t.Errorf("of the other pool: %v", got)
		}
		if got := h.of("nowhere", time.Now()); got != nil {
			t.Errorf("of no pool: %v", got)
		}
	})
}

func TestHistoryIsOfTheLast15Minutes(t *testing.T) {
	remembering(t, func(f *fakeStore, h *laneHistory) {
		acquireIn(f, "pool-1")
		pass(historyInterval)
		acquireIn(f, "pool-1")
		pass(historySpan)
		got := h.of("pool-1", time.Now())
		if len(got) != historySamples || got[0].GetLanes()[1].GetActive() != 2 || got[0].GetAgo().AsDuration() != historySpan-historyInterval {
			t.Errorf("%d samples are left, the first is %v", len(got), got[0])
		}
		// While the node is not ready nothing is added, and what is there grows old.
		f.mu.Lock()
		f.ready = false
		f.mu.Unlock()
		pass(historySpan / 3)
		if got := len(h.of("pool-1", time.Now())); got != historySamples*2/3 {
			t.Errorf("%d samples are left of two thirds of the time", got)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	remembering(t, func(f *fakeStore, h *laneHistory) {
		lanesOf(f, historyLanes/2+1)
		pass(historyInterval)
		if got := len(h.of(fmt.Sprint("pool-", historyLanes/2-1), time.Now())); got != 1 {
			t.Errorf("%d samples of the last pool that has room", got)
		}
		if got := h.of(fmt.Sprint("pool-", historyLanes/2), time.Now()); got != nil {
			t.Errorf("beyond the bound: %v", got)
		}
		if kept, out := valueOf(t, h.kept), valueOf(t, h.leftOut); kept != historyLanes || out != 2 {
			t.Errorf("%v lanes are said to be remembered and %v left out", kept, out)
		}
	})
}

func TestLaneHistory(t *testing.T) {
	h, _ := startWithPolicy(t)
	h.server.past.sample(time.Now())
	got, err := h.status.LaneHistory(soon(t), &admitv1.LaneHistoryRequest{Pool: "email"})
	if err != nil || len(got.GetSamples()) != 1 || got.GetSamples()[0].GetLanes()[0].GetLane() != "transactional" {
		t.Errorf("got %v, %v", got, err)
	}
	for pool, want := range map[string]string{"nowhere": "POOL_NOT_FOUND", "": "INVALID_FIELD"} {
		_, err := h.status.LaneHistory(soon(t), &admitv1.LaneHistoryRequest{Pool: pool})
		if got := tell(t, err); got.reason != want {
			t.Errorf("%q: got %+v, want %s", pool, got, want)
		}
	}
}
