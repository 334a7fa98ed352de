package node

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

var (
	described  = regexp.MustCompile(`fqName: "([^"]+)"`)
	watched    = regexp.MustCompile(`\badmit_[a-z_]+`)
	documented = regexp.MustCompile("`((?:admit|grpc_server)_[a-z_]+)`")
)

// docs/metrics.md names the metrics that a node has, and no other but a sidecar's.
func TestEveryMetricIsDocumented(t *testing.T) {
	n := startNode(t, testConfig(t))
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		n.reg.Describe(descs)
	}()
	has := map[string]bool{}
	for d := range descs {
		name := described.FindStringSubmatch(d.String())[1]
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			has[name] = true
		}
	}
	data, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, m := range documented.FindAllStringSubmatch(string(data), -1) {
		if !strings.HasPrefix(m[1], "admit_sidecar_") {
			told[m[1]] = true
		}
	}
	rules, err := os.ReadFile("../../docs/alerts/admit.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range watched.FindAllStringSubmatch(string(rules), -1) {
		if name := strings.TrimSuffix(m[0], "_bucket"); !has[name] {
			t.Errorf("an alert watches %s, and there is no such metric", name)
		}
	}
	families, err := n.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("promlint says %v, %v", problems, err)
	}
	for _, name := range slices.Sorted(maps.Keys(has)) {
		if !told[name] {
			t.Errorf("%s is not documented", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(told)) {
		if !has[name] {
			t.Errorf("%s is documented, but there is no such metric", name)
		}
	}
}
