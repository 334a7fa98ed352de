package server

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/raftstore"
)

// metrics counts decisions. Labels come from the policy and from fixed lists:
// a decision about an unknown pool is an error and is not counted here.
type metrics struct {
	decisions *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	waits     *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_decisions_total",
			Help: "Decisions answered: each Acquire, dry runs aside, and each claim of NextDue. decision is granted, replayed, shed " +
				"or would_shed, of a pool that only watches; reason is why it was shed or would have been.",
		}, []string{"pool", "lane", "decision", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "admit_decision_seconds",
			Help: "Time from a valid Acquire or BatchAcquire to its decision, the log included; one observation for each decision " +
				"that did not wait. In a session, the time to its answer.",
			// A shed answer from memory takes microseconds, a grant one fsync, and
			// beyond a second something is wrong.
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"pool", "decision"}),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "admit_wait_seconds",
			Help: "Time that each Acquire with max_wait was in line, until it was granted or shed.",
			// No wait is longer than a minute.
			Buckets: []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60},
		}, []string{"pool", "decision"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.decisions, m.seconds, m.waits}
}

// timer measures the decisions of one call.
type timer struct {
	m     *metrics
	began time.Time
}

func (m *metrics) start() timer { return timer{m: m, began: time.Now()} }

// acquired counts the decision of one Acquire.
func (t timer) acquired(a raftstore.Answer, pool string, d admission.Decision) {
	if a.DryRun {
		return
	}
	decision, lane, reason := "granted", d.Permit.Lane, ""
	switch {
	case d.Shed != nil:
		decision, lane, reason = "shed", d.Shed.Lane, d.Shed.Reason.String()
	case d.Replayed:
		decision = "replayed"
	case d.WouldShed != nil:
		decision, reason = "would_shed", d.WouldShed.Reason.String()
	}
	t.m.decisions.WithLabelValues(pool, lane, decision, reason).Inc()
	if a.Waited > 0 {
		t.m.waits.WithLabelValues(pool, decision).Observe(a.Waited.Seconds())
		return
	}
	t.m.seconds.WithLabelValues(pool, decision).Observe(time.Since(t.began).Seconds())
}

// claimed counts the claims of one NextDue.
func (m *metrics) claimed(pool string, r *admission.NextDueResult) {
	decision := "granted"
	if r.Replayed {
		decision = "replayed"
	}
	for _, c := range r.Claims {
		m.decisions.WithLabelValues(pool, c.Permit.Lane, decision, "").Inc()
	}
}

// sessionMetrics count the sessions that are open, and the calls on them.
type sessionMetrics struct {
	open, calls prometheus.Gauge
	answered    *prometheus.CounterVec
}

func newSessionMetrics() *sessionMetrics {
	return &sessionMetrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "admit_sessions_open", Help: "Sessions that are open."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_session_calls_open", Help: "Calls of sessions that have no answer yet.",
		}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_session_calls_total", Help: "Calls of sessions that were answered. call is Acquire, Renew or Release, empty where none was asked.",
		}, []string{"call", "grpc_code"}),
	}
}

// ended counts a call that was answered.
func (m *sessionMetrics) ended(method string, err error) {
	code, _ := ending(err)
	m.answered.WithLabelValues(method[strings.LastIndex(method, "/")+1:], code).Inc()
}

func (m *sessionMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.calls, m.answered}
}
