package sidecar

import (
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// metrics are what a sidecar counts. No label is chosen by a worker.
type metrics struct {
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	refused  *prometheus.CounterVec
	retries  prometheus.Counter
	orphans  prometheus.Gauge
	renewals *prometheus.CounterVec
	lapsed   prometheus.Counter
	returns  *prometheus.CounterVec
	serving  prometheus.Gauge

	// grants are of requests for tokens alone, the others are of grants.
	grants                               *prometheus.CounterVec
	fromShare, fromCluster, fromFallback prometheus.Counter
	fallbacks                            *prometheus.CounterVec
	leases, shareReturns                 *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_calls_total", Help: "Calls of workers that have ended.",
		}, []string{"call", "grpc_code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "admit_sidecar_call_seconds", Help: "How long calls of workers took, their waits included.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10, 60},
		}, []string{"call"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_refused_total",
			Help: "What was refused for a limit of the sidecar. limit is calls or permits; of a permit that a worker renewed, it was not kept; or shares, where the cluster was asked instead.",
		}, []string{"limit"}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_sidecar_retries_total", Help: "Tries of calls after the first.",
		}),
		orphans: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_sidecar_permits_orphaned", Help: "Permits that are kept whose workers have gone, until they are given back.",
		}),
		renewals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_renewals_total",
			Help: "Permits that the sidecar renewed by itself. result is renewed, lost, cancelled, released meanwhile, or failed, which is tried again.",
		}, []string{"result"}),
		lapsed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "admit_sidecar_lapsed_total", Help: "Permits that are not renewed any more because they have reached the maximum lifetime.",
		}),
		returns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_returns_total",
			Help: "Permits of gone workers that the sidecar gave back. outcome is FAILED or NOT_STARTED; result is what the cluster said, or failed, which is tried again.",
		}, []string{"outcome", "result"}),
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "admit_sidecar_upstream_serving", Help: "1 while a node is reached that says that the cluster decides.",
		}),
		grants: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_token_grants_total",
			Help: "Requests for tokens alone that were granted. source is SHARE, CLUSTER, or FALLBACK where no node decided.",
		}, []string{"source"}),
		fallbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_fallback_total",
			Help: "Requests for tokens of shared buckets that no node decided. on_loss is the policy's: CLOSED, OPEN or SAFE.",
		}, []string{"on_loss"}),
		leases: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_leases_total",
			Help: "Shares that were asked for. result is share, shed, not_shared, refused for another reason, or failed.",
		}, []string{"result"}),
		shareReturns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "admit_sidecar_share_returns_total",
			Help: "Shares that were given back. cause is spent, idle, ending, policy, crowded or stopping; result is what the cluster said, failed, which is tried again, or expired, which needs none.",
		}, []string{"cause", "result"}),
	}
	m.fromShare, m.fromCluster = m.grants.WithLabelValues("SHARE"), m.grants.WithLabelValues("CLUSTER")
	m.fromFallback = m.grants.WithLabelValues("FALLBACK")
	for _, limit := range []string{"calls", "permits", "shares"} {
		m.refused.WithLabelValues(limit)
	}
	return m
}

// register adds all to reg, with what is read when it is asked for.
func (m *metrics) register(reg prometheus.Registerer, l *limits) error {
	for _, c := range []prometheus.Collector{
		m.calls, m.seconds, m.refused, m.retries, m.orphans, m.renewals, m.lapsed, m.returns, m.serving,
		m.grants, m.fallbacks, m.leases, m.shareReturns,
		l,
	} {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("register the sidecar's metrics: %w", err)
		}
	}
	return nil
}

// ended counts a call.
func (m *metrics) ended(method string, began time.Time, err error) {
	call := method[strings.LastIndexByte(method, '/')+1:]
	m.calls.WithLabelValues(call, codeOf(err)).Inc()
	m.seconds.WithLabelValues(call).Observe(time.Since(began).Seconds())
}

var (
	usedDesc = prometheus.NewDesc("admit_sidecar_limit_used",
		"How much of a limit is used: calls under way, connections, permits that are kept or that calls under way may be granted, and keys for which tokens are held or were.", []string{"limit"}, nil)
	capacityDesc = prometheus.NewDesc("admit_sidecar_limit_capacity", "The most that a limit of the sidecar allows.", []string{"limit"}, nil)
	sharesDesc   = prometheus.NewDesc("admit_sidecar_shares", "Shares that are held.", nil, nil)
	tokensDesc   = prometheus.NewDesc("admit_sidecar_share_tokens", "Tokens of shares that are held and not spent.", nil, nil)
)

// limits shows how much of the sidecar's limits is used.
type limits struct {
	gate        *gate
	table       *table
	connections *connections
	book        *shareBook
}

// Describe implements prometheus.Collector.
func (l *limits) Describe(ch chan<- *prometheus.Desc) {
	ch <- usedDesc
	ch <- capacityDesc
	ch <- sharesDesc
	ch <- tokensDesc
}

// Collect implements prometheus.Collector.
func (l *limits) Collect(ch chan<- prometheus.Metric) {
	held, reserved := l.table.size()
	keys, shares, tokens := l.book.size()
	ch <- prometheus.MustNewConstMetric(sharesDesc, prometheus.GaugeValue, float64(shares))
	ch <- prometheus.MustNewConstMetric(tokensDesc, prometheus.GaugeValue, float64(tokens))
	for _, limit := range []struct {
		name       string
		used, most float64
	}{
		{"calls", float64(l.gate.open.Load()), float64(l.gate.most)},
		{"connections", float64(l.connections.open.Load()), maxConnections},
		{"permits", float64(held + reserved), float64(l.table.opts.MaxPermits)},
		{"shares", float64(keys), float64(l.book.most)},
	} {
		ch <- prometheus.MustNewConstMetric(usedDesc, prometheus.GaugeValue, limit.used, limit.name)
		ch <- prometheus.MustNewConstMetric(capacityDesc, prometheus.GaugeValue, limit.most, limit.name)
	}
}

// resultOf is what became of a permit that was given back.
func resultOf(r *admitv1.BatchReleaseResult) string {
	if e := r.GetError(); e != nil {
		return e.GetReason()
	}
	return strings.TrimPrefix(r.GetResponse().GetResult().String(), "LEASE_RESULT_")
}

func outcomeName(o admitv1.Outcome) string { return strings.TrimPrefix(o.String(), "OUTCOME_") }
