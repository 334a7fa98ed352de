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
	counts    *known[decisionKind, prometheus.Counter]
	took      *known[tookKind, prometheus.Observer]
}

// decisionKind is what decisions have in common that are counted together.
type decisionKind struct{ pool, lane, decision, reason string }

// tookKind is the same of how long they took; waited says that they were in line.
type tookKind struct {
	pool, decision string
	waited         bool
}

func newMetrics() *metrics {
	m := &metrics{
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
	m.counts = newKnown(func(k decisionKind) prometheus.Counter {
		return m.decisions.WithLabelValues(k.pool, k.lane, k.decision, k.reason)
	})
	m.took = newKnown(func(k tookKind) prometheus.Observer {
		if k.waited {
			return m.waits.WithLabelValues(k.pool, k.decision)
		}
		return m.seconds.WithLabelValues(k.pool, k.decision)
	})
	return m
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
	kind := decisionKind{pool: pool, lane: d.Permit.Lane, decision: "granted"}
	switch {
	case d.Shed != nil:
		kind.decision, kind.lane, kind.reason = "shed", d.Shed.Lane, d.Shed.Reason.String()
	case d.Replayed:
		kind.decision = "replayed"
	case d.WouldShed != nil:
		kind.decision, kind.reason = "would_shed", d.WouldShed.Reason.String()
	}
	t.m.counts.of(kind).Inc()
	took := a.Waited
	if took == 0 {
		took = time.Since(t.began)
	}
	t.m.took.of(tookKind{pool, kind.decision, a.Waited > 0}).Observe(took.Seconds())
}

// claimed counts the claims of one NextDue.
func (m *metrics) claimed(pool string, r *admission.NextDueResult) {
	decision := "granted"
	if r.Replayed {
		decision = "replayed"
	}
	for _, c := range r.Claims {
		m.counts.of(decisionKind{pool: pool, lane: c.Permit.Lane, decision: decision}).Inc()
	}
}

// sessionMetrics count the sessions that are open, and the calls on them.
type sessionMetrics struct {
	open, calls prometheus.Gauge
	answered    *prometheus.CounterVec
	known       *known[sessionKind, prometheus.Counter]
}

// sessionKind is a call's method and how it ended.
type sessionKind struct{ method, code string }

func newSessionMetrics() *sessionMetrics {
	m := &sessionMetrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "admit_sessions_open", Help: "Sessions that are open."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_session_calls_open", Help: "Calls of sessions that have no answer yet.",
		}),
		answered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_session_calls_total", Help: "Calls of sessions that were answered. call is Acquire, Renew or Release, empty where none was asked.",
		}, []string{"call", "grpc_code"}),
	}
	m.known = newKnown(func(k sessionKind) prometheus.Counter {
		return m.answered.WithLabelValues(k.method[strings.LastIndex(k.method, "/")+1:], k.code)
	})
	return m
}

// ended counts a call that was answered.
func (m *sessionMetrics) ended(method, code string) {
	m.known.of(sessionKind{method, code}).Inc()
}

func (m *sessionMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.calls, m.answered}
}
