package node

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/admitd/admit/internal/certs"
	"github.com/admitd/admit/internal/config"
	"github.com/admitd/admit/internal/tokens"
)

// followed is a member whose files change. It is not a whole node.
type followed struct {
	*Node
	kit
	told *told
}

// told is what a log was told, while more comes.
type told struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *told) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// take returns what came since the last time.
func (l *told) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return l.text.String()
}

func follow(t *testing.T, k kit, cfg config.Config) *followed {
	t.Helper()
	s, err := loadSecurity(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := &told{}
	return &followed{kit: k, told: log, Node: &Node{
		cfg: cfg, log: slog.New(slog.NewTextHandler(log, nil)), security: s, stopping: make(chan struct{}), failures: make(chan error, 1),
	}}
}

func followMember(t *testing.T) *followed {
	t.Helper()
	k := newKit(t)
	cfg := config.DefaultConfig()
	k.protect(&cfg)
	cfg.PeerAddr = "127.0.0.1:0"
	cfg.PeerCA, cfg.PeerCert, cfg.PeerKey = k.file("ca.crt"), k.file("node-1.crt"), k.file("node-1.key")
	return follow(t, k, cfg)
}

// look lets the node look at its files, and returns what it says.
func (f *followed) look() string {
	f.followOnce()
	return f.told.take()
}

// renew issues another certificate, in dir.
func (f *followed) renew(t *testing.T, dir, name string) {
	t.Helper()
	for _, file := range []string{"ca.crt", "ca.key"} {
		data, err := os.ReadFile(f.file(file))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, file), string(data))
	}
	if _, err := certs.Issue(dir, []certs.Subject{{Name: name}}, time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
}

// take puts the file of another directory in the place of the node's.
func (f *followed) take(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, f.file(to)); err != nil {
		t.Fatal(err)
	}
}

func leafOf(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	pair, err := certs.Pair(file, strings.TrimSuffix(file, ".crt")+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// What the node shows callers and members, and when it says that it expires, are of the
// certificate that is there.
func TestCertificatesAreReplacedWhileTheNodeRuns(t *testing.T) {
	f := followMember(t)
	if said := f.look(); said != "" {
		t.Errorf("nothing is new, and it says %s", said)
	}
	dir := t.TempDir()
	f.renew(t, dir, "node-1")
	want := leafOf(t, filepath.Join(dir, "node-1.crt"))
	f.take(t, filepath.Join(dir, "node-1.crt"), "node-1.crt")
	if said := f.look(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "tls_cert: ") {
		t.Errorf("of a certificate with the key of another it says %q", said)
	}
	if said := f.look(); said != "" {
		t.Errorf("it says again %s", said)
	}
	if f.security.peerTLS().Certificates[0].Leaf.Equal(want) {
		t.Error("it took a certificate without its key")
	}
	f.take(t, filepath.Join(dir, "node-1.key"), "node-1.key")
	if said := f.look(); !strings.Contains(said, "level=INFO") {
		t.Errorf("of the whole pair it says %q", said)
	}
	for side, got := range map[string]*x509.Certificate{
		"members": f.security.peerTLS().Certificates[0].Leaf, "callers": f.security.now.Load().callers.Certificates[0].Leaf,
	} {
		if !got.Equal(want) {
			t.Errorf("%s see another certificate than the new one", side)
		}
	}
	if got := expiries(t, f.security); len(got) != 2 || got[0] != want.NotAfter.Unix() || got[1] != got[0] {
		t.Errorf("they expire at %v, want %d", got, want.NotAfter.Unix())
	}
}

func expiries(t *testing.T, s *security) (all []int64) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newMachineCollector(t.TempDir(), s))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "admit_certificate_expiry_timestamp_seconds" {
			for _, m := range f.GetMetric() {
				all = append(all, int64(m.GetGauge().GetValue()))
			}
		}
	}
	return all
}

func TestAMemberStaysWhoItIs(t *testing.T) {
	f := followMember(t)
	dir := t.TempDir()
	f.renew(t, dir, "node-3")
	f.take(t, filepath.Join(dir, "node-3.key"), "node-1.key")
	f.take(t, filepath.Join(dir, "node-3.crt"), "node-1.crt")
	if said := f.look(); !strings.Contains(said, "peer_cert: it is that of node-3, and this node is node-1") {
		t.Errorf("it says %q", said)
	}
	if name, _ := certs.NodeName(f.security.peerTLS().Certificates[0].Leaf); name != "node-1" {
		t.Errorf("it is %s", name)
	}
}

// A token that is taken out is refused, one that is put in is known. Secrets that
// are mounted change by a link.
func TestTokensAreReplacedWhileTheNodeRuns(t *testing.T) {
	k, next, dir := newKit(t), tokens.New(), t.TempDir()
	write(t, filepath.Join(dir, "tokens"), tokens.Line("worker", next))
	synctest.Test(t, func(t *testing.T) {
		cfg := config.DefaultConfig()
		cfg.TokensFile = k.file("tokens")
		f := follow(t, k, cfg)
		if err := f.followFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
		holds := func(token string) bool {
			_, ok := f.security.guard.Identify(nil, token)
			return ok
		}
		pass := func() {
			time.Sleep(reloadInterval)
			synctest.Wait()
		}
		if err := os.Remove(f.file("tokens")); err != nil {
			t.Fatal(err)
		}
		pass()
		if said := f.told.take(); !strings.Contains(said, "tokens_file: ") || !holds(f.token) {
			t.Errorf("without the file it says %q", said)
		}
		if err := os.Symlink(filepath.Join(dir, "tokens"), f.file("tokens")); err != nil {
			t.Fatal(err)
		}
		if pass(); holds(f.token) || !holds(next) {
			t.Error("the token from before holds, or the next does not")
		}
		close(f.stopping)
		f.served.Wait()
	})
}

// Two members whose authority is replaced on both sides know each other still.
func TestNodesCallEachOtherWithWhatTheyHaveNow(t *testing.T) {
	k, next := newKit(t), newKit(t)
	one, two := members(t, k)
	calls := two.nodeCredentials()
	for _, name := range []string{"ca.crt", "node-1.crt", "node-1.key", "node-2.crt", "node-2.key"} {
		if err := os.Rename(next.file(name), k.file(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.reload(); err != nil {
		t.Fatal(err)
	}
	if _, ok := identify(t, one, calls, certs.NodeServerName); ok {
		t.Error("a node is known by the authority from before")
	}
	if err := two.reload(); err != nil {
		t.Fatal(err)
	}
	if id, ok := identify(t, one, calls, certs.NodeServerName); !ok || id.Name != "node-2" {
		t.Errorf("a node is %+v, %t", id, ok)
	}
	if _, ok := identify(t, one, credentials.NewTLS(k.caller(t, "ci")), "127.0.0.1"); ok {
		t.Error("a caller of the authority from before is known")
	}
}
