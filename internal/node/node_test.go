package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/internal/config"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testConfig is a node on free ports with its data in a directory of the test.
func testConfig(t *testing.T) config.Config {
	cfg := config.DefaultConfig()
	cfg.Data = filepath.Join(t.TempDir(), "data")
	cfg.GRPCAddr, cfg.HTTPAddr = "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func startNode(t *testing.T, cfg config.Config) *Node {
	t.Helper()
	n, err := Start(soon(t), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

func dial(t *testing.T, n *Node) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func get(t *testing.T, n *Node, path string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, "http://"+n.HTTPAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // keeps no connection that the leak check would see
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The sample policy lets a newcomer try what the product does; all of it is
// there again after a restart.
func TestAFreshNodeWorksAndRemembers(t *testing.T) {
	cfg := testConfig(t)
	n := startNode(t, cfg)
	conn := dial(t, n)
	due := admitv1.NewDueWorkServiceClient(conn)
	workers := admitv1.NewAdmissionServiceClient(conn)
	ask := &admitv1.AcquireRequest{Pool: "email", Tenant: "trial", RequestId: "r", Ttl: durationpb.New(time.Hour)}
	granted, err := workers.Acquire(soon(t), ask)
	if err != nil || granted.GetDecision().GetPermit() == nil {
		t.Fatalf("got %v, %v", granted, err)
	}
	if _, err := due.Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{
		{Tenant: "acme", Key: "k", Category: "otp"},
	}}); err != nil {
		t.Fatal(err)
	}
	n.Stop()

	n = startNode(t, cfg)
	if _, revision := n.Policy(); revision != 1 {
		t.Errorf("the policy has revision %d after a restart", revision)
	}
	workers = admitv1.NewAdmissionServiceClient(dial(t, n))
	again, err := workers.Acquire(soon(t), ask)
	if err != nil || !again.GetDecision().GetReplayed() || again.GetDecision().GetPermit().GetToken() != granted.GetDecision().GetPermit().GetToken() {
		t.Errorf("the permit is gone: %v, %v", again, err)
	}
	ask.RequestId = "other"
	other, err := workers.Acquire(soon(t), ask)
	if err != nil || other.GetDecision().GetShed().GetReason() != admitv1.Reason_REASON_TENANT_CAP {
		t.Errorf("the permit does not count: %v, %v", other, err)
	}
	poll, err := workers.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email"})
	if err != nil || len(poll.GetClaims()) != 1 || poll.GetClaims()[0].GetKey() != "k" {
		t.Errorf("the entry is gone: %v, %v", poll, err)
	}
}

func TestTheHTTPSideTellsWhatIsTrue(t *testing.T) {
	n := startNode(t, testConfig(t))
	if code, body := get(t, n, "/healthz"); code != http.StatusOK {
		t.Errorf("got %d %s", code, body)
	}
	if code, body := get(t, n, "/readyz"); code != http.StatusOK || body != "ready\n" {
		t.Errorf("got %d %s", code, body)
	}
	if code, body := get(t, n, "/metrics"); code != http.StatusOK || !strings.Contains(body, `admit_permits_active{lane="marketing",pool="email"} 0`) {
		t.Errorf("got %d %s", code, body)
	}
	if code, body := get(t, n, "/"); code != http.StatusOK || !strings.Contains(body, "<title>admit</title>") {
		t.Errorf("got %d %s", code, body)
	}
	asked, err := http.Post("http://"+n.HTTPAddr()+"/api/admit.v1.StatusService/QueueHealth", "application/json", strings.NewReader(`{"pool": "email"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Body.Close()
	if answer, err := io.ReadAll(asked.Body); err != nil || asked.StatusCode != http.StatusOK || !strings.Contains(string(answer), `"marketing"`) {
		t.Errorf("got %d %s, %v", asked.StatusCode, answer, err)
	}
	for _, path := range []string{"/other", "/api/", "/debug/pprof/"} {
		if code, _ := get(t, n, path); code != http.StatusNotFound {
			t.Errorf("got %d of %s", code, path)
		}
	}
}

func TestProfilesAreServedWhereWanted(t *testing.T) {
	cfg := testConfig(t)
	cfg.Profiles = true
	n := startNode(t, cfg)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap?debug=1"} {
		if code, body := get(t, n, path); code != http.StatusOK || !strings.Contains(body, "heap") {
			t.Errorf("got %d %s of %s", code, body, path)
		}
	}
}

func TestADrainingNodeAnswersButIsNotReady(t *testing.T) {
	cfg := testConfig(t)
	n, err := Start(soon(t), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn := dial(t, n)
	watch, err := grpc_health_v1.NewHealthClient(conn).Watch(soon(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Fatalf("got %v, %v", got, err)
	}
	stopped := make(chan struct{})
	hurry := make(chan time.Time)
	go func() { n.stop(hurry); close(stopped) }()
	if got, err := watch.Recv(); err != nil || got.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("got %v, %v", got, err)
	}
	if code, body := get(t, n, "/readyz"); code != http.StatusServiceUnavailable || body != "draining\n" {
		t.Errorf("got %d %s", code, body)
	}
	// Callers that have not noticed yet are still served.
	if _, err := admitv1.NewStatusServiceClient(conn).QueueHealth(soon(t), &admitv1.QueueHealthRequest{}); err != nil {
		t.Error(err)
	}
	close(hurry)
	<-stopped
}

func TestStopDoesNotWaitForPolls(t *testing.T) {
	n := startNode(t, testConfig(t))
	workers := admitv1.NewAdmissionServiceClient(dial(t, n))
	polled := make(chan error, 1)
	go func() {
		_, err := workers.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxWait: durationpb.New(15 * time.Second)})
		polled <- err
	}()
	awaitMetric(t, n, "admit_polls_parked 1")
	began := time.Now()
	n.Stop()
	if err := <-polled; err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
}

// awaitMetric waits until a scrape has a line.
func awaitMetric(t *testing.T, n *Node, line string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(t); ; {
		if _, body := get(t, n, "/metrics"); strings.Contains(body, line+"\n") {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%q did not come", line)
		}
	}
}

func TestThePolicyFileIsForTheFirstStart(t *testing.T) {
	cfg := testConfig(t)
	cfg.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
	write(t, cfg.PolicyFile, "pools:\n- name: mine\n")
	n := startNode(t, cfg)
	if p, revision := n.Policy(); revision != 1 || len(p.Pools) != 1 || p.Pools[0].Name != "mine" {
		t.Errorf("got %+v at %d", p, revision)
	}
	n.Stop()
	write(t, cfg.PolicyFile, "pools:\n- name: other\n")
	n = startNode(t, cfg)
	if p, revision := n.Policy(); revision != 1 || p.Pools[0].Name != "mine" {
		t.Errorf("got %+v at %d", p, revision)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatKeepsANodeFromStarting(t *testing.T) {
	running := startNode(t, testConfig(t))
	for _, c := range []struct {
		name   string
		change func(*config.Config)
		want   string
	}{
		{"port taken", func(c *config.Config) { c.GRPCAddr = running.GRPCAddr() }, "grpc_addr: listen tcp"},
		{"HTTP port taken", func(c *config.Config) { c.HTTPAddr = running.HTTPAddr() }, "http_addr: listen tcp"},
		{"data in use", func(c *config.Config) { c.Data = running.cfg.Data }, "data: the data directory is in use"},
		{"beyond loopback", func(c *config.Config) { c.GRPCAddr = "0.0.0.0:0" }, "is refused: beyond loopback"},
		{"no certificate", func(c *config.Config) { c.TLSCert, c.TLSKey = "none.crt", "none.key" }, "tls_cert: read the certificate none.crt"},
		{"no policy file", func(c *config.Config) { c.PolicyFile = filepath.Join(t.TempDir(), "none") }, "policy_file: open"},
		{"bad policy file", func(c *config.Config) {
			c.PolicyFile = filepath.Join(t.TempDir(), "bad.yaml")
			write(t, c.PolicyFile, "pools:\n- nme: x\n")
		}, "bad.yaml:2:3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := testConfig(t)
			c.change(&cfg)
			n, err := Start(soon(t), cfg, slog.New(slog.DiscardHandler))
			if err == nil {
				n.Stop()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAStartCanBeAborted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("changed my mind"))
	n, err := Start(ctx, testConfig(t), slog.New(slog.DiscardHandler))
	if err == nil {
		n.Stop()
	}
	if err == nil || !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "changed my mind") {
		t.Errorf("got %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(soon(t))
	if err := Run(ctx, testConfig(t), slog.New(slog.DiscardHandler), func(*Node) { cancel() }); err != nil {
		t.Errorf("got %v", err)
	}
	// A member without the others is never ready, and stops in order all the same.
	stopped, stop := context.WithCancelCause(soon(t))
	stop(errors.New("changed my mind"))
	if err := Run(stopped, newTrio(t).cfgs[0], slog.New(slog.DiscardHandler), func(*Node) { t.Error("it is ready") }); err != nil {
		t.Errorf("got %v before it was ready", err)
	}
	// What else keeps it from starting does so whether it is to stop or not.
	broken := testConfig(t)
	broken.TLSCert, broken.TLSKey = "none.crt", "none.key"
	if err := Run(stopped, broken, slog.New(slog.DiscardHandler), func(*Node) {}); err == nil {
		t.Error("it needs no certificate")
	}
}

// What breaks while the node runs ends it, with the reason.
func TestRunEndsWithAFailure(t *testing.T) {
	cfg := testConfig(t)
	cfg.DrainDelay = time.Minute // nothing is left to drain
	began := time.Now()
	err := Run(soon(t), cfg, slog.New(slog.DiscardHandler), func(n *Node) {
		if err := n.grpcListener.Close(); err != nil {
			t.Error(err)
		}
	})
	if !errors.Is(err, net.ErrClosed) || time.Since(began) > 10*time.Second {
		t.Errorf("got %v after %s", err, time.Since(began))
	}
}

func TestCheck(t *testing.T) {
	cfg := testConfig(t)
	if err := Check(cfg); err != nil {
		t.Error(err)
	}
	cfg.LogLevel = "loud"
	cfg.PolicyFile = filepath.Join(t.TempDir(), "bad.yaml")
	write(t, cfg.PolicyFile, "pools:\n- nme: x\n")
	err := Check(cfg)
	for _, want := range []string{"log_level: ", "bad.yaml:2:3"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	if _, err := os.Stat(cfg.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the check touched the data directory: %v", err)
	}
}
