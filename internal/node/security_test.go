package node

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tokens"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/server"
)

// kit is the certificates of a cluster of two, and a caller's token.
type kit struct{ dir, token string }

func newKit(t *testing.T) kit {
	t.Helper()
	k := kit{dir: t.TempDir(), token: tokens.New()}
	subjects := []certs.Subject{{Name: "node-1"}, {Name: "node-2"}, {Name: "ci", Client: true}}
	if _, err := certs.Init(k.dir, subjects, time.Now()); err != nil {
		t.Fatal(err)
	}
	write(t, k.file("tokens"), tokens.Line("worker", k.token))
	return k
}

func (k kit) file(name string) string { return filepath.Join(k.dir, name) }

// protect lets a node take calls from beyond loopback.
func (k kit) protect(cfg *config.Config) {
	cfg.TLSCert, cfg.TLSKey = k.file("node-1.crt"), k.file("node-1.key")
	cfg.TokensFile, cfg.TLSClientCA = k.file("tokens"), k.file("ca.crt")
}

// caller trusts the kit's authority, and shows the certificate of name if there
// is one.
func (k kit) caller(t *testing.T, name string) *tls.Config {
	t.Helper()
	roots, err := certs.Pool(k.file("ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &tls.Config{RootCAs: roots}
	if name != "" {
		own, err := certs.Pair(k.file(name+".crt"), k.file(name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		cfg.Certificates = []tls.Certificate{own}
	}
	return cfg
}

func dialWith(t *testing.T, n *Node, creds credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	_, port, err := net.SplitHostPort(n.GRPCAddr())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func bearing(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

func TestCallersProveWhoTheyAre(t *testing.T) {
	k, other := newKit(t), newKit(t)
	cfg := testConfig(t)
	k.protect(&cfg)
	cfg.GRPCAddr = "0.0.0.0:0" // protected, it may be
	n := startNode(t, cfg)
	for _, c := range []struct {
		name, cert, token string
		want              codes.Code
	}{
		{"nothing", "", "", codes.Unauthenticated},
		{"a token", "", k.token, codes.OK},
		{"another node's token", "", other.token, codes.Unauthenticated},
		{"a certificate", "ci", "", codes.OK},
		{"a certificate and a wrong token", "ci", other.token, codes.Unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dialWith(t, n, credentials.NewTLS(k.caller(t, c.cert)))
			_, err := admitv1.NewStatusServiceClient(conn).QueueHealth(bearing(soon(t), c.token), &admitv1.QueueHealthRequest{})
			if status.Code(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if _, err := grpc_health_v1.NewHealthClient(conn).Check(soon(t), &grpc_health_v1.HealthCheckRequest{}); err != nil {
				t.Errorf("health: %v", err)
			}
			if got := fetchMetrics(t, n, k.caller(t, c.cert), c.token); (got == http.StatusOK) != (c.want == codes.OK) {
				t.Errorf("the metrics answer %d", got)
			}
			if got := askOverHTTP(t, n, k.caller(t, c.cert), c.token); (got == http.StatusOK) != (c.want == codes.OK) {
				t.Errorf("the API answers %d over HTTP", got)
			}
		})
	}
	t.Run("a stranger's certificate", func(t *testing.T) {
		stranger := other.caller(t, "ci")
		stranger.RootCAs = k.caller(t, "").RootCAs
		_, err := admitv1.NewStatusServiceClient(dialWith(t, n, credentials.NewTLS(stranger))).
			QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
	t.Run("plain text", func(t *testing.T) {
		_, err := admitv1.NewStatusServiceClient(dial(t, n)).QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
		if status.Code(err) != codes.Unavailable {
			t.Errorf("got %v", err)
		}
	})
}

// askOverHTTP returns the status with which a node answers who reads over HTTP.
func askOverHTTP(t *testing.T, n *Node, caller *tls.Config, token string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: caller, DisableKeepAlives: true}}
	url := "https://" + n.HTTPAddr() + "/api/admit.v1.StatusService/QueueHealth"
	req, err := http.NewRequestWithContext(soon(t), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// fetchMetrics returns the status with which a node answers who wants its metrics.
func fetchMetrics(t *testing.T, n *Node, caller *tls.Config, token string) int {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: caller, DisableKeepAlives: true}}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/metrics": 0} {
		req, err := http.NewRequestWithContext(soon(t), http.MethodGet, "https://"+n.HTTPAddr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if want == 0 {
			return resp.StatusCode
		}
		if resp.StatusCode != want {
			t.Errorf("%s answers %d", path, resp.StatusCode)
		}
	}
	return 0
}

// members are two nodes' ports as they face each other, without the nodes.
func members(t *testing.T, k kit) (one, two *security) {
	t.Helper()
	load := func(name string) *security {
		cfg := config.DefaultConfig()
		k.protect(&cfg)
		cfg.PeerAddr = "127.0.0.1:0"
		cfg.PeerCA, cfg.PeerCert, cfg.PeerKey = k.file("ca.crt"), k.file(name+".crt"), k.file(name+".key")
		s, err := loadSecurity(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	return load("node-1"), load("node-2")
}

// A node is known as one by its certificate, and only where it calls as a node:
// a client's certificate of the same authority opens nothing there.
func TestNodesAreKnownOnTheAPIsPort(t *testing.T) {
	k := newKit(t)
	one, two := members(t, k)
	if id, ok := identify(t, one, two.nodeCredentials(), certs.NodeServerName); !ok || id != (server.Identity{Name: "node-2", Node: true}) {
		t.Errorf("a node is %+v, %t", id, ok)
	}
	if id, ok := identify(t, one, credentials.NewTLS(k.caller(t, "node-2")), "127.0.0.1"); !ok || id.Node {
		t.Errorf("a node that calls as a client is %+v, %t", id, ok)
	}
	posing := k.caller(t, "ci")
	posing.ServerName, posing.InsecureSkipVerify = certs.NodeServerName, true
	if id, ok := identify(t, one, credentials.NewTLS(posing), certs.NodeServerName); ok {
		t.Errorf("a client that calls as a node is %+v", id)
	}
	// A lone node gives the name no meaning.
	cfg := config.DefaultConfig()
	k.protect(&cfg)
	alone, err := loadSecurity(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if id, _ := identify(t, alone, credentials.NewTLS(posing), certs.NodeServerName); id.Node {
		t.Errorf("a lone node takes a caller for %+v", id)
	}
}

// Nobody is a member on the HTTP side: the name that nodes ask for means nothing there.
func TestNobodyIsAMemberOnTheHTTPSide(t *testing.T) {
	k := newKit(t)
	one, _ := members(t, k)
	for _, c := range []struct {
		cert, token string
		want        int
	}{
		{"", "", http.StatusUnauthorized},
		{"", k.token, http.StatusOK},
		{"ci", "", http.StatusOK},
	} {
		n := &Node{security: one}
		side := httptest.NewUnstartedServer(n.guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "seen") })))
		side.Listener = tls.NewListener(side.Listener, one.httpTLS())
		side.Start()
		defer side.Close()
		caller := k.caller(t, c.cert)
		caller.ServerName, caller.InsecureSkipVerify = certs.NodeServerName, true
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: caller, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(soon(t), http.MethodGet, "https://"+side.Listener.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.token != "" {
			req.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Errorf("with certificate %q and token %q: %v", c.cert, c.token, err)
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("with certificate %q and token %q: got %d, want %d", c.cert, c.token, resp.StatusCode, c.want)
		}
	}
}

// identify says whom a port's guard sees behind the connection of a caller that asks
// for a server by that name; nobody if there is no connection.
func identify(t *testing.T, s *security, caller credentials.TransportCredentials, asked string) (server.Identity, bool) {
	t.Helper()
	served := s.grpcTLS().Clone()
	served.NextProtos = []string{"h2"} // as gRPC does
	l, err := tls.Listen("tcp", "127.0.0.1:0", served)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	type seen struct {
		id server.Identity
		ok bool
	}
	saw := make(chan seen, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			saw <- seen{}
			return
		}
		defer conn.Close()
		secured := conn.(*tls.Conn)
		if err := secured.HandshakeContext(soon(t)); err != nil {
			saw <- seen{}
			return
		}
		state := secured.ConnectionState()
		id, ok := s.guard.Identify(&state, "")
		saw <- seen{id, ok}
	}()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if secured, _, err := caller.ClientHandshake(soon(t), asked, conn); err == nil {
		defer secured.Close()
	}
	got := <-saw
	return got.id, got.ok
}

func TestCheckReadsTheFiles(t *testing.T) {
	k := newKit(t)
	cfg := testConfig(t)
	k.protect(&cfg)
	cfg.PeerAddr, cfg.PeerCA, cfg.PeerCert, cfg.PeerKey = "127.0.0.1", k.file("ca.crt"), k.file("ci.crt"), k.file("ci.key")
	if err := os.Truncate(k.file("tokens"), 0); err != nil {
		t.Fatal(err)
	}
	err := Check(cfg)
	for _, want := range []string{"peer_cert: ", "is not a node's", "tokens_file: ", "has 0 tokens"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
}
