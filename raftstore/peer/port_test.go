package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/admitd/admit/internal/certs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority makes the certificates of a test.
type authority struct {
	t   *testing.T
	dir string
}

func newAuthority(t *testing.T, nodes ...string) authority {
	t.Helper()
	a := authority{t, filepath.Join(t.TempDir(), "certs")}
	subjects := []certs.Subject{{Name: "caller", Client: true}}
	for _, name := range nodes {
		subjects = append(subjects, certs.Subject{Name: name})
	}
	if _, err := certs.Init(a.dir, subjects, time.Now()); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a authority) node(name string) *tls.Config {
	a.t.Helper()
	path := func(file string) string { return filepath.Join(a.dir, file) }
	c, err := certs.Peers(path("ca.crt"), path(name+".crt"), path(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// fake is a node with nothing behind it.
type fake struct {
	id string

	mu      sync.Mutex
	cluster string
	// adopts says that it becomes a member of any cluster that takes it for one.
	adopts bool
	calls  []Request
}

func (f *fake) Hello() Hello {
	f.mu.Lock()
	defer f.mu.Unlock()
	return Hello{NodeID: f.id, ClusterID: f.cluster}
}

func (f *fake) Admit(from Hello) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.adopts && f.cluster == "" {
		f.cluster = from.ClusterID
	}
	return nil
}

func (f *fake) Answer(_ context.Context, _ Hello, r Request) Reply {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, r)
	return Reply{Info: Info{NodeID: f.id, ClusterID: f.cluster}}
}

// open opens a port for a node on a free port of the loopback interface.
func open(t *testing.T, c *tls.Config, n *fake, change ...func(*Port)) *Port {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newPort(Config{
		Listener: l, Advertise: l.Addr().String(), GRPCAddr: "grpc." + n.id, TLS: func() *tls.Config { return c }, Node: n,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	for _, ch := range change {
		ch(p)
	}
	p.loops.Go(p.listen)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p *Port) addr() string { return p.cfg.Advertise }

func TestACallIsAnswered(t *testing.T) {
	ca := newAuthority(t, "n1", "n2")
	n2 := &fake{id: "n2-b", cluster: "c"}
	p1, p2 := open(t, ca.node("n1"), &fake{id: "n1-a"}), open(t, ca.node("n2"), n2)
	r, err := p1.Call(t.Context(), "", p2.addr(), Request{Join: true})
	if err != nil {
		t.Fatal(err)
	}
	if r.Info.NodeID != "n2-b" || len(n2.calls) != 1 || !n2.calls[0].Join {
		t.Errorf("answer %+v to %+v", r, n2.calls)
	}
	for p, want := range map[*Port]Address{
		p1: {"n2-b", p2.addr(), "grpc.n2-b"}, p2: {"n1-a", p1.addr(), "grpc.n1-a"},
	} {
		if a, ago, ok := p.Book().Find(want.NodeID); !ok || a != want || ago > 10*time.Second {
			t.Errorf("the book has %+v of %v ago, want %+v", a, ago, want)
		}
	}
}

func TestStrangersAreTurnedAway(t *testing.T) {
	ca := newAuthority(t, "n1", "n2")
	foreign := newAuthority(t, "n1")
	p2 := open(t, ca.node("n2"), &fake{id: "n2-b", cluster: "c"})
	caller, err := tls.LoadX509KeyPair(filepath.Join(ca.dir, "caller.crt"), filepath.Join(ca.dir, "caller.key"))
	if err != nil {
		t.Fatal(err)
	}
	asCaller := ca.node("n1").Clone()
	asCaller.Certificates = []tls.Certificate{caller}
	for name, c := range map[string]struct {
		tls  *tls.Config
		node *fake
		to   string
		want string
	}{
		"of another authority": {tls: foreign.node("n1"), node: &fake{id: "n1-a", cluster: "c"}, want: "authority"},
		"a client":             {tls: asCaller, node: &fake{id: "n1-a", cluster: "c"}, want: ""},
		"with another's id":    {tls: ca.node("n1"), node: &fake{id: "n3-a", cluster: "c"}, want: "not one of n3-a"},
		"of another cluster":   {tls: ca.node("n1"), node: &fake{id: "n1-a", cluster: "d"}, want: "this is cluster c, not d"},
		"for another":          {tls: ca.node("n1"), node: &fake{id: "n1-a", cluster: "c"}, to: "n2-old", want: "this is node n2-b, not n2-old"},
	} {
		t.Run(name, func(t *testing.T) {
			p1 := open(t, c.tls, c.node)
			for _, want := range []byte{wantCall, wantRaft} {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				conn, _, err := p1.dial(ctx, want, c.to, p2.addr())
				cancel()
				if err == nil {
					conn.Close()
				}
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("was told %v, want %q", err, c.want)
				}
			}
		})
	}
}

// A node without a cluster is open for calls, but raft's bytes reach it only once
// it is a member.
func TestRaftIsForMembers(t *testing.T) {
	ca := newAuthority(t, "n1", "n2")
	n2 := &fake{id: "n2-b"}
	p1, p2 := open(t, ca.node("n1"), &fake{id: "n1-a", cluster: "c"}), open(t, ca.node("n2"), n2)
	if _, _, err := p1.dial(t.Context(), wantRaft, "n2-b", p2.addr()); !errors.As(err, new(*RefusedError)) {
		t.Fatalf("raft was told %v", err)
	}
	n2.adopts = true
	c, w, err := p1.dial(t.Context(), wantRaft, "n2-b", p2.addr())
	if err != nil {
		t.Fatal(err)
	}
	if w.ClusterID != "c" {
		t.Errorf("the member says that it is of %q", w.ClusterID)
	}
	accepted := <-p2.raft
	if _, err := c.Write([]byte("raft")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(accepted, b); err != nil || string(b) != "raft" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestWhatIsNoGreetingIsCutOff(t *testing.T) {
	ca := newAuthority(t, "n1", "n2")
	brief := func(p *Port) { p.greeting = 500 * time.Millisecond }
	p2 := open(t, ca.node("n2"), &fake{id: "n2-b"}, brief)
	client := clientTLS(ca.node("n1"))
	for name, bytes := range map[string][]byte{
		"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
		"an old version":   {'A', 'D', 'M', 'T', 0, wantCall},
		"too long":         {'A', 'D', 'M', 'T', version, wantCall, 0xFF, 0xFF, 0xFF, 0xFF},
		"nothing":          {},
	} {
		conn, err := tls.Dial("tcp", p2.addr(), client)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(bytes); err != nil {
			t.Fatal(err)
		}
		mustEnd(t, name, conn)
	}
	plain, err := net.Dial("tcp", p2.addr())
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, "no TLS", plain)
}

// mustEnd waits until the other end closes a connection without a word.
func mustEnd(t *testing.T, name string, c net.Conn) {
	t.Helper()
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); errors.Is(err, context.DeadlineExceeded) || len(b) > 0 {
		t.Errorf("%s: read %q, %v", name, b, err)
	}
}

func TestAFloodLeavesNothingOpen(t *testing.T) {
	ca := newAuthority(t, "n1", "n2")
	few := func(p *Port) { p.room = make(chan struct{}, 2) }
	p1, p2 := open(t, ca.node("n1"), &fake{id: "n1-a"}), open(t, ca.node("n2"), &fake{id: "n2-b"}, few)
	var silent []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", p2.addr())
		if err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	third, err := net.Dial("tcp", p2.addr())
	if err != nil {
		t.Fatal(err)
	}
	mustEnd(t, "a third", third)
	for _, c := range silent {
		c.Close()
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := p1.Call(t.Context(), "", p2.addr(), Request{}); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatalf("after the flood: %v", err)
		}
	}
}

func TestTLSIsRequired(t *testing.T) {
	ca := newAuthority(t, "n1")
	noAuthority, noCertificate := ca.node("n1").Clone(), ca.node("n1").Clone()
	noAuthority.ClientCAs, noCertificate.Certificates = nil, nil
	for name, c := range map[string]*tls.Config{"none": nil, "no authority": noAuthority, "no certificate": noCertificate} {
		if _, err := Open(Config{TLS: func() *tls.Config { return c }}); err == nil {
			t.Errorf("%s: a port opened", name)
		}
	}
}

// Members are told from others by the address that they dial from.
func TestMembersDialFromWhereTheyListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if from := (&Port{cfg: Config{Listener: l}}).dialer("127.0.0.1:7421").LocalAddr; from.String() != "127.0.0.2:0" {
		t.Errorf("a member dials from %v", from)
	}
}
