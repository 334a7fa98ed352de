package e2e

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/e2e/harness"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// envoyBucket is a bucket that each value of a key has for itself.
func envoyBucket(name string, capacity, refill int64, period time.Duration) *admitv1.Bucket {
	return &admitv1.Bucket{
		Name: name, Scope: admitv1.Bucket_TENANT, Capacity: &capacity, Refill: &refill, Period: durationpb.New(period),
	}
}

// The limits of the test: what an hour brings is too little to matter.
const (
	envoyFew  = 50
	envoyMany = 400
)

func envoyPolicy() *admitv1.Policy {
	return &admitv1.Policy{Pools: []*admitv1.Pool{{
		Name: "edge",
		Buckets: []*admitv1.Bucket{
			envoyBucket("few", envoyFew, 1, time.Hour), envoyBucket("many", envoyMany, 1, time.Hour), envoyBucket("soon", 2, 1, time.Second),
		},
		Envoy: &admitv1.Envoy{Rules: []*admitv1.EnvoyRule{
			{Name: "few", Match: map[string]string{"limit": "few*"}, Buckets: []string{"few"}},
			{Name: "many", Match: map[string]string{"limit": "many*"}, Buckets: []string{"many"}},
			{Name: "login", Match: map[string]string{"path": "/login", "user": "*"}, Buckets: []string{"soon"}},
		}},
	}}}
}

// edgeTrial is an Envoy before an upstream that counts, and a cluster that it asks.
type edgeTrial struct {
	*testing.T
	cluster *harness.Cluster
	envoy   *harness.Envoy
	http    *http.Client
	mu      sync.Mutex
	// upstream counts the requests that came through, by path and limit.
	upstream map[string]int
}

// startEdgeTrial has Envoy ask the nodes, or by way of a sidecar.
func startEdgeTrial(t *testing.T, bySidecar bool) *edgeTrial {
	t.Helper()
	harness.FindEnvoy(t)
	dir := harness.Folder(t)
	tr := &edgeTrial{T: t, upstream: map[string]int{}, http: &http.Client{Timeout: 10 * time.Second}}
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		tr.upstream[r.URL.Path+r.Header.Get("X-Limit")]++
	}))
	t.Cleanup(up.Close)
	t.Cleanup(tr.http.CloseIdleConnections)
	tr.cluster = harness.StartCluster(t, dir, members)
	if _, err := tr.cluster.Dial().Policy().ApplyPolicy(background, &admitv1.ApplyPolicyRequest{Policy: envoyPolicy()}); err != nil {
		t.Fatal(err)
	}
	var nodes []string
	for _, n := range tr.cluster.Nodes {
		nodes = append(nodes, n.Addr())
	}
	if bySidecar {
		nodes = []string{harness.StartSidecar(t, filepath.Join(dir, "sidecar"), nodes, "--listen", "127.0.0.1:0").Addr()}
	}
	tr.envoy = harness.StartEnvoy(t, filepath.Join(dir, "envoy"), "edge", strings.TrimPrefix(up.URL, "http://"), nodes...)
	return tr
}

// get sends a request through a listener and returns its status and headers.
func (tr *edgeTrial) get(listener, path string, header ...string) (int, http.Header) {
	req, err := http.NewRequestWithContext(background, http.MethodGet, "http://"+listener+path, nil)
	if err != nil {
		tr.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := tr.http.Do(req)
	if err != nil {
		tr.Errorf("ask Envoy: %v", err)
		return 0, nil
	}
	defer resp.Body.Close()
	return resp.StatusCode, resp.Header
}

func (tr *edgeTrial) came(key string) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.upstream[key]
}

// callers is from how many sides a crowd comes.
const callers = 8

// crowd sends requests for a limit from several sides at once while more says so of
// those that were sent and what they got, and counts them by status.
func (tr *edgeTrial) crowd(listener, limit string, more func(sent int, counts map[int]int) bool) map[int]int {
	var (
		mu   sync.Mutex
		sent int
		all  sync.WaitGroup
	)
	counts := map[int]int{}
	next := func(status int) bool {
		mu.Lock()
		defer mu.Unlock()
		if status != 0 {
			counts[status]++
		}
		if !more(sent, counts) {
			return false
		}
		sent++
		return true
	}
	for range callers {
		all.Go(func() {
			for status := 0; next(status); {
				if status, _ = tr.get(listener, "/", "x-limit", limit); status >= http.StatusInternalServerError {
					pause(10 * time.Millisecond) // nobody leads at present
				}
			}
		})
	}
	all.Wait()
	return counts
}

// TestEnvoy runs a real Envoy before an upstream that counts, with its rate limit
// filter asking a cluster.
func TestEnvoy(t *testing.T) {
	tr := startEdgeTrial(t, false)
	tr.exact()
	tr.comeBack()
	tr.killLeader()
	tr.noQuorum()
}

// TestEnvoyThroughASidecar has it ask a sidecar on a port of the machine: the limit is as
// exact, and what it tells as true.
func TestEnvoyThroughASidecar(t *testing.T) {
	tr := startEdgeTrial(t, true)
	tr.exact()
	tr.comeBack()
}

// exact lets a crowd come: as many pass as the limit says, to the last one.
func (tr *edgeTrial) exact() {
	counts := tr.crowd(tr.envoy.Shut, "few", func(sent int, _ map[int]int) bool { return sent < 3*envoyFew })
	if counts[http.StatusOK] != envoyFew || counts[http.StatusTooManyRequests] != 2*envoyFew || tr.came("/few") != envoyFew {
		tr.Errorf("with a limit of %d: %v, and %d came through", envoyFew, counts, tr.came("/few"))
	}
	if status, _ := tr.get(tr.envoy.Open, "/", "x-limit", "few-others"); status != http.StatusOK {
		tr.Errorf("another value is refused: %d", status)
	}
	if status, _ := tr.get(tr.envoy.Open, "/", "x-limit", "none"); status != http.StatusOK {
		tr.Errorf("what no rule is for is refused: %d", status)
	}
}

// comeBack believes a Retry-After: whoever comes then passes, and who comes before does not.
func (tr *edgeTrial) comeBack() {
	ask := func() (int, http.Header) { return tr.get(tr.envoy.Open, "/login", "x-user", "ann") }
	for range 2 {
		if status, h := ask(); status != http.StatusOK || !strings.HasPrefix(h.Get("Ratelimit"), `"login";r=`) {
			tr.Errorf("within the limit: %d, %v", status, h)
		}
	}
	// A token comes each second: the two took less than that.
	began := time.Now()
	status, h := ask()
	after, err := strconv.Atoi(h.Get("Retry-After"))
	if status == http.StatusOK && time.Since(began) < time.Second {
		tr.Logf("a token came meanwhile")
		status, h = ask()
		after, err = strconv.Atoi(h.Get("Retry-After"))
	}
	if status != http.StatusTooManyRequests || err != nil || after != 1 || h.Get("X-Ratelimit-Remaining") != "0" {
		tr.Fatalf("beyond the limit: %d, %v", status, h)
	}
	pause(time.Duration(after) * time.Second)
	if status, h := ask(); status != http.StatusOK {
		tr.Errorf("after %d s: %d, %v", after, status, h)
	}
}

// killLeader kills the leader under way: never more pass than the limit says, and when
// another leads no fewer but those that nobody was told of.
func (tr *edgeTrial) killLeader() {
	leader := tr.cluster.Leader()
	var killed time.Time
	counts := tr.crowd(tr.envoy.Shut, "many", func(sent int, counts map[int]int) bool {
		if sent == envoyMany/4 && killed.IsZero() {
			killed = time.Now()
			tr.cluster.Nodes[leader].Kill()
		}
		return counts[http.StatusTooManyRequests] == 0 && (killed.IsZero() || time.Since(killed) < 30*time.Second)
	})
	passed := tr.came("/many")
	harness.Figure(tr, "with the leader killed, %d of %d passed: %v", passed, envoyMany, counts)
	// One of each caller's may have been granted by the leader that died.
	if passed > envoyMany || passed != counts[http.StatusOK] || passed < envoyMany-callers || counts[http.StatusTooManyRequests] == 0 {
		tr.Errorf("with a limit of %d: %v, and %d came through", envoyMany, counts, passed)
	}
}

// noQuorum kills a second member: what nobody can decide passes the one listener, and
// not the other.
func (tr *edgeTrial) noQuorum() {
	leader := tr.cluster.Leader()
	tr.cluster.Nodes[leader].Kill()
	for listener, want := range map[string]int{tr.envoy.Open: http.StatusOK, tr.envoy.Shut: http.StatusInternalServerError} {
		harness.WaitFor(tr, 10*time.Second, "an answer without a quorum", func() bool {
			status, _ := tr.get(listener, "/", "x-limit", "few")
			return status == want
		})
		for _, limit := range []string{"few", "none", "few-fresh"} {
			if status, _ := tr.get(listener, "/", "x-limit", limit); status != want {
				tr.Errorf("without a quorum %s is answered %d, want %d", limit, status, want)
			}
		}
	}
}

// The configuration of Envoy that docs/envoy.md shows is one.
func TestTheEnvoyPageIsTrue(t *testing.T) {
	program, dir := harness.FindEnvoy(t), t.TempDir()
	page, err := os.ReadFile(filepath.Join(harness.Root(t), "docs", "envoy.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```yaml\nhttp_filters:\n")
	shown, _, _ = strings.Cut(shown, "```")
	filters, clusters, ok := strings.Cut(shown, "clusters:\n")
	if !ok {
		t.Fatal("the page shows no filter and cluster")
	}
	indented := func(text, by string) string {
		return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by) + "\n"
	}
	config := `static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: 10000}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: page
          route_config: {virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: admit}}]}]}
          http_filters:
` + indented(filters, "          ") + `          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
  clusters:
` + indented(clusters, "  ")
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, "--mode", "validate", "--config-path", file, "--disable-hot-restart").CombinedOutput(); err != nil {
		t.Errorf("Envoy does not take it: %v\n%s", err, out)
	}
}
