package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
)

// tally counts answers. It is as large however many there are.
type tally struct {
	asked, granted, unreleased atomic.Int64
	latency                    latencies

	mu           sync.Mutex
	shed, failed map[string]int64 // by reason, and by code
	last         error
}

func newTally() *tally { return &tally{shed: map[string]int64{}, failed: map[string]int64{}} }

func (t *tally) count(d client.Decision, err error, took time.Duration) {
	if err == nil {
		t.latency.add(took)
		if d.Permit != nil {
			t.granted.Add(1)
			return
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.shed[apiName(d.Shed.GetReason(), "REASON_")]++
		return
	}
	t.failed[status.Code(err).String()]++
	t.last = err
}

// latencyBits are those of a duration that are kept: it is known to a 32nd.
const latencyBits = 5

// latencies count durations in buckets whose width grows with them.
type latencies struct {
	buckets [(64 - latencyBits) << latencyBits]atomic.Int64
	longest atomic.Int64
}

func (l *latencies) add(d time.Duration) {
	n := max(int64(d), 0)
	for seen := l.longest.Load(); n > seen && !l.longest.CompareAndSwap(seen, n); seen = l.longest.Load() {
	}
	l.buckets[latencyBucket(n)].Add(1)
}

// latencyBucket is where a duration is counted: each power of two has 32 buckets.
func latencyBucket(n int64) int {
	shift := max(bits.Len64(uint64(n))-latencyBits-1, 0)
	return shift<<latencyBits + int(n>>shift)
}

// bucketEnd is the longest duration of a bucket.
func bucketEnd(i int) int64 {
	shift := max(i>>latencyBits-1, 0)
	return (int64(i-shift<<latencyBits)+1)<<shift - 1
}

func (l *latencies) count() (n int64) {
	for i := range l.buckets {
		n += l.buckets[i].Load()
	}
	return n
}

// quantile is how long so many of a thousand took at most; no more than 3% are added.
func (l *latencies) quantile(perMille int64) time.Duration {
	rank := (l.count()*perMille + 999) / 1000
	for i := range l.buckets {
		if rank -= l.buckets[i].Load(); rank <= 0 {
			return time.Duration(min(bucketEnd(i), l.longest.Load()))
		}
	}
	return 0
}

// benchReport is what a bench measured. Times are seconds.
type benchReport struct {
	Seconds    float64      `json:"seconds" yaml:"seconds"`
	Asked      int64        `json:"asked" yaml:"asked"`
	Unsent     int64        `json:"unsent" yaml:"unsent"`
	Unreleased int64        `json:"unreleased" yaml:"unreleased"`
	Outcomes   []benchCount `json:"outcomes" yaml:"outcomes"`
	Latency    benchLatency `json:"latency" yaml:"latency"`
}

// benchCount is how many requests ended one way: GRANTED, SHED with a reason, or ERROR
// with a gRPC code.
type benchCount struct {
	Outcome   string  `json:"outcome" yaml:"outcome"`
	Why       string  `json:"why,omitempty" yaml:"why,omitempty"`
	Count     int64   `json:"count" yaml:"count"`
	PerSecond float64 `json:"per_second" yaml:"per_second"`
}

// benchLatency is how long answers took, errors not among them.
type benchLatency struct {
	P50  float64 `json:"p50" yaml:"p50"`
	P99  float64 `json:"p99" yaml:"p99"`
	P999 float64 `json:"p99_9" yaml:"p99_9"`
	Max  float64 `json:"max" yaml:"max"`
}

// report is what was counted in a time; all callers have ended.
func (t *tally) report(took time.Duration) *benchReport {
	r := &benchReport{
		Seconds: took.Seconds(), Asked: t.asked.Load(), Unreleased: t.unreleased.Load(),
		Latency: benchLatency{
			P50: t.latency.quantile(500).Seconds(), P99: t.latency.quantile(990).Seconds(),
			P999: t.latency.quantile(999).Seconds(), Max: time.Duration(t.latency.longest.Load()).Seconds(),
		},
	}
	add := func(outcome, why string, n int64) {
		r.Outcomes = append(r.Outcomes, benchCount{outcome, why, n, float64(n) / took.Seconds()})
	}
	add("GRANTED", "", t.granted.Load())
	for _, of := range []struct {
		outcome string
		by      map[string]int64
	}{{"SHED", t.shed}, {"ERROR", t.failed}} {
		most := func(a, b string) int { return cmp.Or(cmp.Compare(of.by[b], of.by[a]), cmp.Compare(a, b)) }
		for _, why := range slices.SortedFunc(maps.Keys(of.by), most) {
			add(of.outcome, why, of.by[why])
		}
	}
	return r
}

// printBench writes a report in the format asked for.
func (a *app) printBench(r *benchReport) error {
	var data []byte
	var err error
	switch a.output {
	case outputJSON:
		data, err = json.MarshalIndent(r, "", "  ")
		data = append(data, '\n')
	case outputYAML:
		data, err = yaml.Marshal(r)
	default:
		a.benchText(r)
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	_, err = a.stdout.Write(data)
	return err
}

func (a *app) benchText(r *benchReport) {
	table(a.stdout, "OUTCOME WHY COUNT PER_SECOND", func(row func(...any)) {
		for _, c := range r.Outcomes {
			row(c.Outcome, c.Why, c.Count, fmt.Sprintf("%.1f", c.PerSecond))
		}
	})
	if r.Unsent > 0 {
		fmt.Fprintf(a.stdout, "unsent: %d were due and no caller was free\n", r.Unsent)
	}
	seconds := func(s float64) string { return rough(durationpb.New(time.Duration(s * float64(time.Second)))) }
	fmt.Fprintf(a.stdout, "answers took: p50 %s, p99 %s, p99.9 %s, at most %s\n",
		seconds(r.Latency.P50), seconds(r.Latency.P99), seconds(r.Latency.P999), seconds(r.Latency.Max))
}
