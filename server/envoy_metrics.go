package server

import "github.com/prometheus/client_golang/prometheus"

// envoyMetrics count the descriptors of Envoy's requests. Labels come from the policy
// and from fixed lists.
type envoyMetrics struct {
	descriptors *prometheus.CounterVec
	unmatched   *prometheus.CounterVec
	overrides   prometheus.Counter
	known       *known[descriptorKind, prometheus.Counter]
}

// descriptorKind is what descriptors have in common that are counted together.
type descriptorKind struct{ pool, rule, decision string }

func newEnvoyMetrics() *envoyMetrics {
	m := &envoyMetrics{
		descriptors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_envoy_descriptors_total",
			Help: "Descriptors of Envoy's rate limit requests that a rule matched. decision is ok, over_limit, " +
				"shadow_over_limit where the rule only watches, or unlimited. Of a request that is refused the others " +
				"are ok, and take nothing.",
		}, []string{"pool", "rule", "decision"}),
		unmatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_envoy_unmatched_total",
			Help: "Descriptors of Envoy's rate limit requests that were let pass because no rule is for them: unknown is " +
				"domain where there is no such pool, else descriptor.",
		}, []string{"unknown"}),
		overrides: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_envoy_overrides_ignored_total",
			Help: "Descriptors of Envoy's rate limit requests that brought a limit of their own, which was ignored.",
		}),
	}
	m.known = newKnown(func(k descriptorKind) prometheus.Counter {
		return m.descriptors.WithLabelValues(k.pool, k.rule, k.decision)
	})
	m.unmatched.WithLabelValues("domain")
	m.unmatched.WithLabelValues("descriptor")
	return m
}

func (m *envoyMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.descriptors, m.unmatched, m.overrides}
}

// decided counts the descriptors of a request that was answered.
func (m *envoyMetrics) decided(q *rateLimitQuery, rows []judgedDescriptor) {
	for i := range rows {
		d := &rows[i]
		if q.descriptors[i].overridden {
			m.overrides.Inc()
		}
		decision := "ok"
		switch {
		case d.rule == nil && !q.known:
			m.unmatched.WithLabelValues("domain").Inc()
			continue
		case d.rule == nil:
			m.unmatched.WithLabelValues("descriptor").Inc()
			continue
		case d.rule.Unlimited:
			decision = "unlimited"
		case d.over():
			decision = "over_limit"
		case d.held != nil:
			decision = "shadow_over_limit"
		}
		m.known.of(descriptorKind{q.domain, d.rule.Name, decision}).Inc()
	}
}
