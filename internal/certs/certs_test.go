package certs

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// made returns a directory with an authority, two nodes and a client.
func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	if _, err := Init(dir, []Subject{
		{Name: "node-1", Hosts: []string{"10.0.0.1", "one.example.org"}}, {Name: "node-2"}, {Name: "ci", Client: true},
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// peersOf is Peers of a certificate in a directory.
func peersOf(dir, ca, name string) (*tls.Config, error) {
	return Peers(filepath.Join(dir, ca+".crt"), filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
}

func TestInitMakesWhatAClusterNeeds(t *testing.T) {
	dir := made(t)
	for name, mode := range map[string]os.FileMode{
		"ca.crt": 0o644, "ca.key": 0o600, "node-1.crt": 0o644, "node-1.key": 0o600, "ci.key": 0o600,
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: got %v, %v", name, info, err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: got %v, %v", info, err)
	}
	certs, err := readCerts(filepath.Join(dir, "node-1.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"10.0.0.1", "one.example.org", "localhost", "127.0.0.1", "::1"} {
		if err := certs[0].VerifyHostname(host); err != nil {
			t.Error(err)
		}
	}
	if name, ok := NodeName(certs[0]); !ok || name != "node-1" {
		t.Errorf("got %q, %t", name, ok)
	}
	if name, ok := ClientName(certs[0]); ok {
		t.Errorf("a node is the client %q", name)
	}
	if left := time.Until(certs[0].NotAfter); left < 364*24*time.Hour || left > 366*24*time.Hour {
		t.Errorf("holds for %s", left)
	}
}

func TestIssueAddsToTheAuthority(t *testing.T) {
	dir := made(t)
	written, err := Issue(dir, []Subject{{Name: "node-4"}}, time.Now())
	if err != nil || !slices.Equal(written, []string{filepath.Join(dir, "node-4.crt"), filepath.Join(dir, "node-4.key")}) {
		t.Fatalf("wrote %q, %v", written, err)
	}
	if err := meet(t, dir, "node-1", "node-4"); err != nil {
		t.Error(err)
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	dir := made(t)
	before, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	for what, write := range map[string]func() ([]string, error){
		"another authority": func() ([]string, error) { return Init(dir, []Subject{{Name: "new"}}, time.Now()) },
		"the same node":     func() ([]string, error) { return Issue(dir, []Subject{{Name: "new"}, {Name: "node-1"}}, time.Now()) },
	} {
		if written, err := write(); err == nil || len(written) > 0 || !strings.Contains(err.Error(), "is there already, nothing was written") {
			t.Errorf("%s: wrote %q, %v", what, written, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "new.crt")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: half of it was written: %v", what, err)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, "ca.key"))
	if err != nil || string(after) != string(before) {
		t.Errorf("the authority's key changed, %v", err)
	}
}

func TestSubjectsThatAreRefused(t *testing.T) {
	for want, subjects := range map[string][]Subject{
		"is no name":                {{Name: "Node 1"}},
		"../x\" is no name":         {{Name: "../x"}},
		"names the authority":       {{Name: "ca"}},
		"named twice":               {{Name: "a"}, {Name: "a", Client: true}},
		"can't have hosts":          {{Name: "a", Hosts: []string{"h"}, Client: true}},
		"no address that one can":   {{Name: "a", Hosts: []string{"0.0.0.0"}}},
		"neither the name of a hos": {{Name: "a", Hosts: []string{"one two"}}},
		"h:7421\" is neither":       {{Name: "a", Hosts: []string{"h:7421"}}},
	} {
		dir := filepath.Join(t.TempDir(), "certs")
		if _, err := Init(dir, subjects, time.Now()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: something was written: %v", want, err)
		}
	}
}

// meet makes a connection between two who have certificates of dir, and says how
// it went for either.
func meet(t *testing.T, dir, caller, called string) error {
	t.Helper()
	a, err := peersOf(dir, "ca", caller)
	if err != nil {
		t.Fatal(err)
	}
	b, err := peersOf(dir, "ca", called)
	if err != nil {
		t.Fatal(err)
	}
	return shake(t, a, b)
}

func shake(t *testing.T, client, server *tls.Config) error {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			answered <- err
			return
		}
		defer conn.Close()
		_, err = conn.Write([]byte("x"))
		answered <- err
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", l.Addr().String(), client)
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, 1)) // the server's refusal comes with the first byte
		conn.Close()
	}
	return errors.Join(err, <-answered)
}

func TestNodesKnowOneAnother(t *testing.T) {
	if err := meet(t, made(t), "node-1", "node-2"); err != nil {
		t.Error(err)
	}
}

// Who is no node of this cluster is turned away by either side, whatever it
// claims.
func TestStrangersAreTurnedAway(t *testing.T) {
	dir, elsewhere := made(t), made(t)
	good, err := peersOf(dir, "ca", "node-1")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := peersOf(elsewhere, "ca", "node-2")
	if err != nil {
		t.Fatal(err)
	}
	ci, err := Pair(filepath.Join(dir, "ci.crt"), filepath.Join(dir, "ci.key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		stranger *tls.Config
	}{
		{"a node of another authority", foreign},
		{"a client of the same authority", &tls.Config{Certificates: []tls.Certificate{ci}, InsecureSkipVerify: true}},
		{"nobody", &tls.Config{InsecureSkipVerify: true}},
		{"an old protocol", &tls.Config{Certificates: good.Certificates, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := shake(t, c.stranger, good); err == nil {
				t.Error("it was let in")
			}
			if len(c.stranger.Certificates) == 0 {
				return // it can't be called
			}
			if err := shake(t, good, c.stranger); err == nil {
				t.Error("it was spoken to")
			}
		})
	}
}

func TestPeersRefusesWhatWouldNotPass(t *testing.T) {
	dir, elsewhere, old := made(t), made(t), filepath.Join(t.TempDir(), "old")
	if _, err := Init(old, []Subject{{Name: "node-1"}}, time.Now().Add(-2*leafLife)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, ca, cert, key, want string }{
		{"another authority's", elsewhere + "/ca.crt", dir + "/node-1.crt", dir + "/node-1.key", "unknown authority"},
		{"a client's", dir + "/ca.crt", dir + "/ci.crt", dir + "/ci.key", "is not a node's"},
		{"an expired one", old + "/ca.crt", old + "/node-1.crt", old + "/node-1.key", "expired"},
		{"another's key", dir + "/ca.crt", dir + "/node-1.crt", dir + "/node-2.key", "does not match"},
		{"no file", dir + "/none.crt", dir + "/node-1.crt", dir + "/node-1.key", "no such file"},
		{"no certificate", dir + "/ca.key", dir + "/node-1.crt", dir + "/node-1.key", "has no certificate"},
	} {
		if _, err := Peers(c.ca, c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

// A certificate never outlives its authority, and an expired authority issues none.
func TestTheAuthoritysEnd(t *testing.T) {
	began := time.Now()
	a, err := newAuthority(began)
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.issue(Subject{Name: "late"}, began.Add(authorityLife-24*time.Hour))
	if err != nil || p.cert.NotAfter.After(a.cert.NotAfter) {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := a.issue(Subject{Name: "later"}, began.Add(authorityLife)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("got %v", err)
	}
}

func TestIssueWantsAnAuthority(t *testing.T) {
	dir := made(t)
	if _, err := Issue(t.TempDir(), []Subject{{Name: "a"}}, time.Now()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "node-1.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ca.key"), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Issue(dir, []Subject{{Name: "a"}}, time.Now()); err == nil || !strings.Contains(err.Error(), "not that of its certificate") {
		t.Errorf("got %v", err)
	}
}
