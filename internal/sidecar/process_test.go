package sidecar

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/node"
	"github.com/admitd/admit/internal/tokens"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// policy has a pool for most, one with a few slots and nothing else that limits, and one
// whose tokens may be held.
const policy = "pools: [{name: mail}, {name: wide, max_active: 10}, {name: lent, buckets: " +
	"[{name: tokens, scope: POOL, capacity: 1000000000, refill: 1000000, period: 1s, share: {max: 500000000}}]}]"

// realNode starts a node, with settings of its own where there are some.
func realNode(t testing.TB, settings ...func(*config.Config)) *node.Node {
	t.Helper()
	cfg, dir := config.DefaultConfig(), t.TempDir()
	cfg.Data, cfg.PolicyFile = filepath.Join(dir, "data"), filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(cfg.PolicyFile, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg.GRPCAddr, cfg.HTTPAddr = "127.0.0.1:0", "127.0.0.1:0"
	for _, set := range settings {
		set(&cfg)
	}
	n, err := node.Start(soon(t), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

// runs starts a sidecar of a node as a process would, and stops it at the test's end or
// before.
func runs(t *testing.T, n *node.Node, cfg Config) (p *Process, stop func()) {
	t.Helper()
	cfg.Upstream, cfg.HTTPAddr = []string{n.GRPCAddr()}, "127.0.0.1:0"
	cfg.MaxPermits, cfg.ShutdownTimeout, cfg.SocketMode = 1000, 10*time.Second, 0o600
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan *Process, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, slog.New(slog.DiscardHandler), func(p *Process) { ready <- p }) }()
	select {
	case p = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return p, stop
}

func calls(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx := soon(t); !cond(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func fetch(t *testing.T, url string) (code int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Close = true // keeps no connection that the leak check would see
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// active is how many permits are live in a pool.
func active(t *testing.T, status admitv1.StatusServiceClient, pool string) int64 {
	t.Helper()
	resp, err := status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{Pool: pool})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetPools()[0].GetActive()
}

// A worker does all that it does through a sidecar on a Unix socket, beside a real node,
// and what it leaves when it dies is free soon after.
func TestBesideARealNode(t *testing.T) {
	n := realNode(t)
	path := filepath.Join(t.TempDir(), "sock")
	p, stop := runs(t, n, Config{Listen: "unix:" + path, Options: Options{Grace: 50 * time.Millisecond}})
	eventually(t, "the sidecar to be ready", func() bool {
		code, _ := fetch(t, "http://"+p.HTTPAddr()+"/readyz")
		return code == http.StatusOK
	})
	conn := calls(t, p.Addr())
	admission, health := admitv1.NewAdmissionServiceClient(conn), admitv1.NewStatusServiceClient(conn)
	got, err := admission.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "mail", Tenant: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	token := got.GetDecision().GetPermit().GetToken()
	renewed, err := admission.Renew(soon(t), &admitv1.RenewRequest{Tokens: []string{token}})
	if err != nil || renewed.GetResults()[0].GetResult() != admitv1.LeaseResult_LEASE_RESULT_RENEWED {
		t.Fatalf("a Renew ended with %v, %v", renewed, err)
	}
	if n := active(t, health, "mail"); n != 1 {
		t.Errorf("%d permits are live", n)
	}
	released, err := admission.Release(soon(t), &admitv1.ReleaseRequest{Token: token})
	if err != nil || released.GetResult() != admitv1.LeaseResult_LEASE_RESULT_RELEASED {
		t.Fatalf("a Release ended with %v, %v", released, err)
	}
	dies := calls(t, p.Addr())
	if _, err := admitv1.NewDueWorkServiceClient(dies).Schedule(soon(t), &admitv1.ScheduleRequest{Pool: "mail", Entries: []*admitv1.EntrySpec{{Tenant: "acme", Key: "k"}}}); err != nil {
		t.Fatal(err)
	}
	claimed, err := admitv1.NewAdmissionServiceClient(dies).NextDue(soon(t), &admitv1.NextDueRequest{Pool: "mail"})
	if err != nil || len(claimed.GetClaims()) != 1 {
		t.Fatalf("a poll ended with %v, %v", claimed, err)
	}
	if err := dies.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim to be given back", func() bool { return active(t, health, "mail") == 0 })
	entry, err := admitv1.NewDueWorkServiceClient(conn).GetEntry(soon(t), &admitv1.GetEntryRequest{Pool: "mail", Tenant: "acme", Key: "k"})
	if err != nil || len(entry.GetEntry().GetHistory()) != 1 || entry.GetEntry().GetHistory()[0].GetOutcome() != admitv1.Outcome_OUTCOME_FAILED {
		t.Errorf("the entry is %v, %v", entry, err)
	}
	if _, metrics := fetch(t, "http://"+p.HTTPAddr()+"/metrics"); !strings.Contains(metrics, `admit_sidecar_returns_total{outcome="FAILED",result="RELEASED"} 1`) {
		t.Errorf("the metrics are\n%s", metrics)
	}
	stop()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// A sidecar takes calls before the cluster is there, and says that it is not.
func TestWithoutACluster(t *testing.T) {
	n := realNode(t)
	p, stop := runs(t, n, Config{Listen: "127.0.0.1:0"})
	defer stop()
	eventually(t, "the sidecar to be ready", func() bool {
		code, _ := fetch(t, "http://"+p.HTTPAddr()+"/readyz")
		return code == http.StatusOK
	})
	n.Stop()
	eventually(t, "the sidecar to know", func() bool {
		code, _ := fetch(t, "http://"+p.HTTPAddr()+"/readyz")
		return code == http.StatusServiceUnavailable
	})
	if code, _ := fetch(t, "http://"+p.HTTPAddr()+"/healthz"); code != http.StatusOK {
		t.Errorf("the process is said to be gone: %d", code)
	}
}

// Many callers of one client, with a session of its own to the sidecar, share few slots:
// nobody is left out, no slot is given twice, and all are free in the end.
func TestManyCallersOnASession(t *testing.T) {
	const slots, callers = 10, 200
	p, _ := runs(t, realNode(t), Config{Listen: "127.0.0.1:0"})
	cl, err := client.Dial(p.Addr(), client.WithSession())
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.Policy().GetPolicy(soon(t), &admitv1.GetPolicyRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a policy was answered: %v", err)
	}
	var at, most, done atomic.Int32
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() {
			w := client.Work{Pool: "wide", Tenant: fmt.Sprintf("t%d", i%10), MaxWait: 15 * time.Second}
			err := cl.Do(soon(t), w, func(context.Context, *client.Permit) error {
				now := at.Add(1)
				defer at.Add(-1)
				for seen := most.Load(); now > seen && !most.CompareAndSwap(seen, now); seen = most.Load() {
				}
				done.Add(1)
				return nil
			})
			if err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	running.Wait()
	if most.Load() > slots || done.Load() != callers {
		t.Errorf("%d were done, %d at once", done.Load(), most.Load())
	}
	if n := active(t, cl.Status(), "wide"); n != 0 {
		t.Errorf("%d permits are live in the end", n)
	}
	if err := cl.Close(); err != nil {
		t.Error(err)
	}
}

// A cluster that wants to know who calls knows the sidecar, by a certificate or a token;
// workers show neither.
func TestASecuredCluster(t *testing.T) {
	dir := t.TempDir()
	if _, err := certs.Init(dir, []certs.Subject{{Name: "node-1"}, {Name: "mailer", Client: true}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	secret := tokens.New()
	for name, text := range map[string]string{"tokens": tokens.Line("mailer", secret), "secret": secret + "\n"} {
		if err := os.WriteFile(at(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := realNode(t, func(c *config.Config) {
		c.TLSCert, c.TLSKey, c.TLSClientCA, c.TokensFile = at("node-1.crt"), at("node-1.key"), at("ca.crt"), at("tokens")
	})
	for name, cfg := range map[string]Config{
		"a certificate": {CACert: at("ca.crt"), Cert: at("mailer.crt"), Key: at("mailer.key")},
		"a token":       {CACert: at("ca.crt"), TokenFile: at("secret")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Listen = "127.0.0.1:0"
			p, _ := runs(t, n, cfg)
			conn := calls(t, p.Addr())
			got, err := admitv1.NewAdmissionServiceClient(conn).Acquire(soon(t), &admitv1.AcquireRequest{Pool: "mail", Tenant: "acme"})
			if err != nil || got.GetDecision().GetPermit() == nil {
				t.Errorf("an Acquire ended with %v, %v", got, err)
			}
			active(t, admitv1.NewStatusServiceClient(conn), "mail")
		})
	}
	p, _ := runs(t, n, Config{Listen: "127.0.0.1:0", CACert: at("ca.crt")})
	_, err := admitv1.NewAdmissionServiceClient(calls(t, p.Addr())).Acquire(soon(t), &admitv1.AcquireRequest{Pool: "mail", Tenant: "acme"})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("a sidecar that shows nothing was told %v", err)
	}
}
