package sidecar

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var update = flag.Bool("update", false, "write the scrape as it is now")

// What Prometheus reads after some of everything, how fast this machine is aside.
func TestTheScrape(t *testing.T) {
	onAMachine(t, Options{Grace: time.Second, MaxLifetime: 6 * time.Second, MaxPermits: 5, MaxShares: 5}, func(t *testing.T, m *machine) {
		w, leaves := m.worker(), m.worker()
		w.acquire(t, work)
		leaves.acquire(t, work)
		if _, err := w.Release(t.Context(), &admitv1.ReleaseRequest{Token: w.acquire(t, work)}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.NextDue(t.Context(), &admitv1.NextDueRequest{Pool: "email", MaxItems: 10}); err == nil {
			t.Error("more may be granted than is kept")
		}
		m.node.lends(lent(10, admitv1.TokenShare_CLOSED))
		for range 3 {
			w.take(t)
			synctest.Wait()
		}
		leaves.cut()
		goes(25 * time.Second)
		families, err := m.reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		if problems, err := promlint.NewWithMetricFamilies(families).Lint(); err != nil || len(problems) > 0 {
			t.Errorf("promlint says %v, %v", problems, err)
		}
		var out strings.Builder
		for _, f := range families {
			if f.GetType() == dto.MetricType_HISTOGRAM {
				continue
			}
			if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
				t.Fatal(err)
			}
		}
		compare(t, "scrape.txt", out.String())
	})
}

// compare compares with a golden file.
func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

var (
	described  = regexp.MustCompile(`fqName: "([^"]+)"`)
	documented = regexp.MustCompile("`(admit_sidecar_[a-z_]+)`")
)

// docs/metrics.md names the metrics that a sidecar has, and no other.
func TestEveryMetricIsDocumented(t *testing.T) {
	has, told := map[string]bool{}, map[string]bool{}
	onAMachine(t, Options{}, func(_ *testing.T, m *machine) {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			m.reg.Describe(descs)
		}()
		for d := range descs {
			has[described.FindStringSubmatch(d.String())[1]] = true
		}
	})
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range documented.FindAllStringSubmatch(string(page), -1) {
		told[found[1]] = true
	}
	if !maps.Equal(has, told) {
		t.Errorf("there are\n%v, and the page has\n%v", slices.Sorted(maps.Keys(has)), slices.Sorted(maps.Keys(told)))
	}
}
