package server

import (
	"flag"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

var update = flag.Bool("update", false, "write the scrape as it is now")

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

// countsOf returns what each counter and histogram counted, by name and decision.
func countsOf(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	reg := prometheus.NewRegistry()
	if err := register(reg, m.collectors()...); err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range gather(t, reg) {
		for _, series := range f.GetMetric() {
			decision := ""
			for _, l := range series.GetLabel() {
				if l.GetName() == "decision" {
					decision = l.GetValue()
				}
			}
			counts[f.GetName()+" "+decision] += series.GetCounter().GetValue() + float64(series.GetHistogram().GetSampleCount())
		}
	}
	return counts
}
