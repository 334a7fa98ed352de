package e2e

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// The page in a real Chromium, served by a node that does not lead: it shows what the
// API says, goes on by itself, can be used with the keyboard and on a phone, and bears
// the leader's death.
func TestPage(t *testing.T) {
	t.Parallel()
	chromium, python := harness.FindChromium(t), harness.FindPlaywright(t)
	dir := harness.Folder(t)
	cluster := harness.StartCluster(t, dir, 3)
	leader := cluster.Leader()
	node := cluster.Nodes[(leader+1)%len(cluster.Nodes)]
	holdSomeBack(t, cluster.Dial())

	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	look := exec.CommandContext(ctx, python, filepath.Join(harness.Root(t), "e2e", "python", "page.py"),
		chromium, harness.Binary(t, "admitctl"), node.Addr(), "http://"+node.HTTPAddr()+"/", dir)
	look.Stderr = os.Stderr
	in, err := look.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := look.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := look.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "kill" {
			cluster.Nodes[leader].Kill()
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Error(err)
			}
		}
	}
	if err := look.Wait(); err != nil {
		t.Errorf("looking at the page: %v", err)
	}
}

// holdSomeBack makes a pool of which there is something to see.
func holdSomeBack(t *testing.T, c *client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ask := func(tenant, category string) {
		req := &admitv1.AcquireRequest{Pool: "email", Tenant: tenant, Category: category, WorkerId: "worker of " + tenant}
		if resp, err := c.Admission().Acquire(ctx, req); err != nil || resp.GetDecision().GetPermit() == nil {
			t.Fatalf("%s: got %v, %v", tenant, resp, err)
		}
	}
	policy, err := c.Policy().GetPolicy(ctx, &admitv1.GetPolicyRequest{})
	if err != nil {
		t.Fatal(err)
	}
	policy.Policy.Pools[0].PermitTtl = durationpb.New(time.Hour)
	if _, err := c.Policy().ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{Policy: policy.GetPolicy()}); err != nil {
		t.Fatal(err)
	}
	ask("acme", "otp")
	ask("acme", "")
	ask("trial", "")
	req := &admitv1.ScheduleRequest{Pool: "email"}
	for _, key := range []string{"a", "b", "c"} {
		req.Entries = append(req.Entries, &admitv1.EntrySpec{Tenant: "trial", Key: key})
	}
	if _, err := c.DueWork().Schedule(ctx, req); err != nil {
		t.Fatal(err)
	}
}
