package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	// sidecarSends are due, all at once, and leaderDies once so many of them were sent.
	sidecarSends = 300
	leaderDies   = 80
)

// Workers in Python behind a sidecar know nothing of a cluster, not even that its leader
// is killed: all that is due is sent, nothing twice. What a worker holds that dies is free
// soon after, though its time has hardly begun.
func TestWorkersBehindASidecar(t *testing.T) {
	t.Parallel() // with the others that bound no time
	dir := harness.Folder(t)
	python := harness.NewPython(t, filepath.Join(dir, "python"))
	provider := harness.StartNGINX(t, filepath.Join(dir, "nginx"), 10*refill, 10*burst)
	cluster := harness.StartCluster(t, dir, members)
	var upstream []string
	for _, n := range cluster.Nodes {
		upstream = append(upstream, n.Addr())
	}
	sidecar := harness.StartSidecar(t, filepath.Join(dir, "sidecar"), upstream, "--grace", "1s")
	operator := cluster.Dial()
	if _, err := operator.Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: policy(false)}); err != nil {
		t.Fatalf("apply the policy: %v", err)
	}
	api, err := client.Dial(sidecar.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	due := scheduleBehind(t, api)
	python.StartWorker("--admit", sidecar.Addr(), "--provider", provider.Addr, "--pool", pool, "--threads", "8")
	harness.WaitFor(t, time.Minute, "some sends", func() bool { return len(provider.Requests()) >= leaderDies })
	cluster.Nodes[cluster.Leader()].Kill()
	killed := len(provider.Requests())
	health := func() *admitv1.PoolHealth {
		resp, err := api.Status().QueueHealth(background, &admitv1.QueueHealthRequest{Pool: pool})
		if err != nil {
			return nil // while nobody leads
		}
		return resp.GetPools()[0]
	}
	harness.WaitFor(t, time.Minute, "all to be sent", func() bool {
		h := health()
		return h != nil && h.GetEntries() == 0 && h.GetActive() == 0
	})
	if sends := judge.TallySends(provider.Requests(), due); len(sends.Lost)+len(sends.Doubled)+len(sends.Strange)+sends.Failed > 0 {
		t.Errorf("lost %v, doubled %v, strange %v, failed %d", sends.Lost, sends.Doubled, sends.Strange, sends.Failed)
	}
	harness.Figure(t, "%d of %d had been sent when the leader was killed", killed, sidecarSends)
	python.Stop()
	aWorkerDies(t, sidecar, health)
	sidecar.Stop()
}

// scheduleBehind makes sends due, by way of the sidecar, and returns their paths at the
// provider.
func scheduleBehind(t *testing.T, api *client.Client) map[string]time.Time {
	t.Helper()
	req, due := &admitv1.ScheduleRequest{Pool: pool}, map[string]time.Time{}
	for _, key := range keys("s", sidecarSends) {
		req.Entries = append(req.Entries, &admitv1.EntrySpec{Tenant: shop, Key: key, Category: "newsletter"})
		due["/"+shop+"/"+key] = time.Now()
	}
	if _, err := api.DueWork().Schedule(background, req); err != nil {
		t.Fatalf("schedule through the sidecar: %v", err)
	}
	return due
}

// aWorkerDies has one take a permit for an hour and end.
func aWorkerDies(t *testing.T, sidecar *harness.Sidecar, health func() *admitv1.PoolHealth) {
	t.Helper()
	out, err := exec.Command(harness.Binary(t, "admitctl"), "--addr", sidecar.Addr(), "acquire", pool, "--tenant", shop, "--ttl", "1h").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "granted") {
		t.Fatalf("acquire through the sidecar: %v\n%s", err, out)
	}
	harness.WaitFor(t, 20*time.Second, "its permit to be given back", func() bool {
		h := health()
		return h != nil && h.GetActive() == 0
	})
	resp, err := http.Get(fmt.Sprintf("http://%s/metrics", sidecar.HTTPAddr()))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(text), `admit_sidecar_returns_total{outcome="FAILED",result="RELEASED"}`) {
		t.Errorf("the sidecar does not tell that it gave a permit back (%v):\n%s", err, text)
	}
}
