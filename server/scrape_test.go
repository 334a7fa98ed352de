package server

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// gather returns the families of our own metrics, sorted by name.
func gather(t *testing.T, reg *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var ours []*dto.MetricFamily
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), "admit_") {
			ours = append(ours, f)
		}
	}
	return ours
}

// scrape returns what Prometheus would read of our own metrics, those aside that
// measure how fast this machine is.
func scrape(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	var out strings.Builder
	for _, f := range gather(t, reg) {
		if f.GetType() == dto.MetricType_HISTOGRAM {
			continue
		}
		if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
