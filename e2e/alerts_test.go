package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// The rules are right by promtool, which has them fire and not fire on series of its
// own.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	promtool := harness.FindProm(t, "promtool")
	alerts := filepath.Join(harness.Root(t), "docs", "alerts")
	for _, args := range [][]string{
		{"check", "rules", "admit.rules.yaml"},
		{"test", "rules", "admit.rules.test.yaml"},
	} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = alerts
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

var alertDelay = regexp.MustCompile(`(?m)^    for: .*$`)

// A real Prometheus that scrapes a real node fires an alert, and takes it back. Only
// the rules' delays are shorter.
func TestAnAlertFires(t *testing.T) {
	t.Parallel() // with the others that bound no time
	rules, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "alerts", "admit.rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := harness.Folder(t)
	node := harness.StartNode(t, filepath.Join(dir, "node"))
	prom := harness.StartPrometheus(t, dir, node.HTTPAddr(), alertDelay.ReplaceAll(rules, []byte("    for: 1s")))
	const alert = "AdmitProviderPaused"
	operate := node.Dial().Policy()
	paused := &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Bucket{Bucket: "provider"}}
	if _, err := operate.Pause(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, time.Minute, alert+" to fire", func() bool { return prom.Firing(alert) })
	if prom.Firing("AdmitNoLeader") || prom.Firing("AdmitDeadLetters") {
		t.Error("an alert fires without a cause")
	}
	resumed := &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Bucket{Bucket: "provider"}}
	if _, err := operate.Resume(t.Context(), resumed); err != nil {
		t.Fatal(err)
	}
	harness.WaitFor(t, time.Minute, alert+" to end", func() bool { return !prom.Firing(alert) })
}
