package server

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
)

// callMetrics count calls by gRPC's usual names. What belongs to a method is looked up
// when the server is made: the interceptor that go-grpc-middleware has for this does it
// by labels with each call, several times.
type callMetrics struct {
	started, handled *prometheus.CounterVec
	seconds          *prometheus.HistogramVec
	methods          map[string]*methodMetrics // by full name; not changed once calls come
}

// methodMetrics are those of one method.
type methodMetrics struct {
	started prometheus.Counter
	handled map[string]prometheus.Counter // by code
	seconds prometheus.Observer
}

func newCallMetrics() *callMetrics {
	method := []string{"grpc_type", "grpc_service", "grpc_method"}
	return &callMetrics{
		started: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grpc_server_started_total", Help: "Calls begun.",
		}, method),
		handled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grpc_server_handled_total", Help: "Calls ended.",
		}, append(slices.Clone(method), "grpc_code")),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Help: "How long calls took.", Buckets: prometheus.DefBuckets,
		}, method),
		methods: make(map[string]*methodMetrics),
	}
}

func (m *callMetrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.started, m.handled, m.seconds}
}

// know looks up what belongs to the methods of a server, all of which are told from
// then on.
func (m *callMetrics) know(services map[string]grpc.ServiceInfo) {
	for service, info := range services {
		for _, method := range info.Methods {
			labels := []string{callType(method), service, method.Name}
			all := &methodMetrics{
				started: m.started.WithLabelValues(labels...), seconds: m.seconds.WithLabelValues(labels...),
				handled: make(map[string]prometheus.Counter),
			}
			for _, code := range codeNames() {
				all.handled[code] = m.handled.WithLabelValues(append(labels, code)...)
			}
			m.methods["/"+service+"/"+method.Name] = all
		}
	}
}

func callType(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	}
	return "unary"
}

// began counts a call that begins. What it returns is told its end.
func (m *callMetrics) began(method string) *methodMetrics {
	all := m.methods[method]
	all.started.Inc()
	return all
}

func (m *methodMetrics) ended(began time.Time, code string) {
	m.handled[code].Inc()
	m.seconds.Observe(time.Since(began).Seconds())
}
