package raftstore

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	commitSeconds   prometheus.Histogram
	batchSize       prometheus.Histogram
	writeSeconds    prometheus.Histogram
	snapshotSeconds prometheus.Histogram
	entries         prometheus.Counter
	appliedIndex    prometheus.Gauge
	leader          prometheus.Gauge
	refused         *prometheus.CounterVec
	depth           [classes]prometheus.Gauge
	parked          prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		commitSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "admit_commit_seconds",
			Help:    "Time from sealing a log entry until it was durable and applied, on the leader.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		batchSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "admit_batch_size",
			Help:    "Operations in each log entry that the leader proposed; 0 is a tick.",
			Buckets: append([]float64{0}, prometheus.ExponentialBuckets(1, 2, 12)...),
		}),
		writeSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "admit_raft_write_seconds",
			Help:    "Time of each append to the log, its fsync included.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
		}),
		snapshotSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "admit_snapshot_seconds",
			Help:    "Time to write each snapshot.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
		}),
		entries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_raft_entries_total",
			Help: "Log entries applied, replayed ones included.",
		}),
		appliedIndex: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_raft_applied_index",
			Help: "Index of the last log entry applied.",
		}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_raft_leader",
			Help: "1 while this node leads and is ready, else 0.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_queue_refused_total",
			Help: "Calls refused because a queue was full, by queue.",
		}, []string{"queue"}),
		parked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_polls_parked",
			Help: "NextDue calls that wait for work.",
		}),
	}
	depth := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "admit_queue_depth",
		Help: "Rows that waited to be proposed when the last entry was sealed, by queue: operations, or the tokens, entries or items of one.",
	}, []string{"queue"})
	for _, c := range []prometheus.Collector{
		m.commitSeconds, m.batchSize, m.writeSeconds, m.snapshotSeconds, m.entries, m.appliedIndex, m.leader,
		m.refused, depth, m.parked,
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register the store's metrics: %w", err)
		}
	}
	for k, name := range classNames {
		m.refused.WithLabelValues(name)
		m.depth[k] = depth.WithLabelValues(name)
	}
	m.refused.WithLabelValues(pollsQueue)
	return m, nil
}
