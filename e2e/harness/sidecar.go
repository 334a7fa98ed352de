package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Sidecar is an admitd sidecar that serves on a Unix socket, unless it is told otherwise.
type Sidecar struct {
	log     string
	process *Process
}

// StartSidecar starts a sidecar whose socket and log are in dir, and waits until it says
// that the cluster decides.
func StartSidecar(t testing.TB, dir string, upstream []string, settings ...string) *Sidecar {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make the sidecar's folder: %v", err)
	}
	s := &Sidecar{log: filepath.Join(dir, "sidecar.log")}
	args := append([]string{
		"sidecar", "--listen", "unix:" + filepath.Join(dir, "sock"), "--http-addr", "127.0.0.1:0",
		"--upstream", strings.Join(upstream, ","), "--log-format", "json",
	}, settings...)
	s.process = start(t, s.log, exec.Command(Binary(t, "admitd"), args...))
	t.Cleanup(s.process.Kill)
	err := s.process.waitReady(startLimit, func() bool {
		return s.Addr() != "" && serves(s.Addr())
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Addr is where workers call it.
func (s *Sidecar) Addr() string { return loggedAddr(s.log, 0, "listen") }

// HTTPAddr is where its metrics are.
func (s *Sidecar) HTTPAddr() string { return loggedAddr(s.log, 0, "http_addr") }

// Kill kills it as with kill -9.
func (s *Sidecar) Kill() { s.process.Kill() }

// Stop shuts it down in order.
func (s *Sidecar) Stop() { s.process.Stop(15 * time.Second) }
