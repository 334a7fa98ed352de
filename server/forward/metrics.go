package forward

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
)

// Metrics counts what is forwarded, on both sides.
type Metrics struct {
	calls    *prometheus.CounterVec
	open     prometheus.Gauge
	received prometheus.Counter
	serving  prometheus.Gauge
}

// The ways in which a forwarded call can end.
const (
	answered = "answered"
	notSent  = "not_sent"
	lost     = "lost"
)

// NewMetrics returns metrics that count nothing yet.
func NewMetrics() *Metrics {
	m := &Metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_forwarded_total",
			Help: "Calls that this node took for the leader. result is answered, whatever the answer; not_sent, where nothing was done; " +
				"or lost, where that is not known or the caller left.",
		}, []string{"result"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_forwarded_open", Help: "Calls that this node took for the leader and that have no answer yet.",
		}),
		received: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_forward_received_total", Help: "Calls that other nodes took for this one.",
		}),
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_forward_received_open", Help: "Calls that other nodes took for this one and that have no answer yet.",
		}),
	}
	for _, result := range []string{answered, notSent, lost} {
		m.calls.WithLabelValues(result)
	}
	return m
}

// Collectors are to be registered.
func (m *Metrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.open, m.received, m.serving}
}

// count notes how a call ended.
func (m *Metrics) count(err error) {
	result := notSent
	if _, told := status.FromError(err); told {
		result = answered
	} else if errors.Is(err, ErrLost) {
		result = lost
	}
	m.calls.WithLabelValues(result).Inc()
}
