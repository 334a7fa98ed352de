package raftstore

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	commitSeconds   prometheus.Histogram
	applySeconds    prometheus.Histogram
	batchSize       prometheus.Histogram
	writeSeconds    prometheus.Histogram
	snapshotSeconds prometheus.Histogram
	entries         prometheus.Counter
	appliedIndex    prometheus.Gauge
	leader          prometheus.Gauge
	clockOffset     prometheus.Gauge
	parked          prometheus.Gauge
	waiting         prometheus.Gauge
	// refused and depth are by queue.
	refused *prometheus.CounterVec
	depth   [classes]prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	// From 100 µs, a fast disk's fsync, to 3 s.
	times := prometheus.ExponentialBuckets(0.0001, 2, 16)
	m := &metrics{
		commitSeconds: histogram("admit_commit_seconds",
			"Time from sealing a log entry until it was durable and applied, on the leader.", times),
		applySeconds: histogram("admit_apply_seconds",
			"Time to apply each log entry, its decoding and its answers included: others wait meanwhile.",
			[]float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}),
		batchSize: histogram("admit_batch_size",
			"Operations in each log entry that the leader proposed; 0 is a tick.",
			append([]float64{0}, prometheus.ExponentialBuckets(1, 2, 12)...)),
		writeSeconds: histogram("admit_raft_write_seconds",
			"Time of each append to the log, its fsync included.", times),
		snapshotSeconds: histogram("admit_snapshot_seconds",
			"Time to write each snapshot.", prometheus.ExponentialBuckets(0.01, 2, 14)),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_raft_entries_total", Help: "Log entries applied, replayed ones included.",
		}),
		appliedIndex: gauge("admit_raft_applied_index", "Index of the last log entry applied."),
		leader:       gauge("admit_raft_leader", "1 while this node leads and is ready, else 0."),
		clockOffset: gauge("admit_clock_offset_seconds",
			"How far this node's wall clock was before the leader's when it last applied an entry, the way of the entry included."),
		parked:  gauge("admit_polls_parked", "NextDue calls that wait for work."),
		waiting: gauge("admit_acquires_open", "Acquires that are in line and whose callers are held open."),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_queue_refused_total", Help: "Calls refused because a queue was full, by queue.",
		}, []string{"queue"}),
	}
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "admit_queue_depth",
		Help: "What was left waiting when the last entry was sealed, by queue: operations, or the tokens or entries that one has.",
	}, []string{"queue"})
	for k, name := range classNames {
		m.refused.WithLabelValues(name)
		m.depth[k] = depth.WithLabelValues(name)
	}
	m.refused.WithLabelValues(pollsQueue)
	for _, c := range []prometheus.Collector{
		m.commitSeconds, m.applySeconds, m.batchSize, m.writeSeconds, m.snapshotSeconds, m.entries, m.appliedIndex, m.leader, m.clockOffset,
		m.parked, m.waiting, m.refused, depth,
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the store's metrics: %w", err)
		}
	}
	return m, nil
}

func histogram(name, help string, buckets []float64) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}
