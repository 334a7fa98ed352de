package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/internal/logline"
)

const startLimit = 20 * time.Second

// Node is an admitd with one data directory. It may be killed and restarted; its
// address changes then, which connections made by Dial follow.
type Node struct {
	t      testing.TB
	binary string
	data   string
	log    string
	// settings are flags beside those that every node has.
	settings []string
	env      []string
	grpcAddr string
	process  *Process
	logged   int64 // the log's size when the process was started

	mu   sync.Mutex
	addr string
}

// NewNode returns an admitd, not started yet, whose data and log are in dir.
func NewNode(t testing.TB, dir string) *Node {
	t.Helper()
	return &Node{
		t: t, binary: Binary(t, "admitd"), data: filepath.Join(dir, "data"), log: filepath.Join(dir, "admitd.log"),
		grpcAddr: "127.0.0.1:0",
	}
}

// StartNode starts an admitd whose data and log are in dir, and waits until it
// serves.
func StartNode(t testing.TB, dir string) *Node {
	t.Helper()
	n := NewNode(t, dir)
	n.Restart()
	return n
}

// WrongClock has the node run a build whose clock can be made wrong, and returns the
// file that says how: internal/clock/wrong.go. Call it before the node is started.
func (n *Node) WrongClock() (file string) {
	n.t.Helper()
	n.binary = Binary(n.t, "admitd", "-tags", "admit_clock")
	file = filepath.Join(filepath.Dir(n.log), "clock")
	n.env = append(n.env, "ADMIT_WRONG_CLOCK="+file)
	return file
}

// Kill ends the node as kill -9 does.
func (n *Node) Kill() { n.process.Kill() }

// Stop shuts the node down in order.
func (n *Node) Stop() { n.process.Stop(15 * time.Second) }

// Freeze stops the node's process in its tracks, until Thaw.
func (n *Node) Freeze() { n.process.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process run on.
func (n *Node) Thaw() { n.process.signal(syscall.SIGCONT) }

// Running says whether the node's process has not ended.
func (n *Node) Running() bool { return n.process.Running() }

// Launch starts the node on its data directory and doesn't wait for it.
func (n *Node) Launch() {
	n.t.Helper()
	if err := os.MkdirAll(filepath.Dir(n.log), 0o755); err != nil {
		n.t.Fatalf("make the node's folder: %v", err)
	}
	n.logged = 0
	if info, err := os.Stat(n.log); err == nil {
		n.logged = info.Size()
	}
	if n.process == nil {
		n.t.Cleanup(n.Kill)
	}
	args := append([]string{
		"--data", n.data, "--grpc-addr", n.grpcAddr, "--http-addr", "127.0.0.1:0", "--log-format", "json",
	}, n.settings...)
	cmd := exec.Command(n.binary, args...)
	cmd.Env = append(os.Environ(), n.env...)
	n.process = start(n.t, n.log, cmd)
}

// Restart starts the node on its data directory and waits until it serves.
func (n *Node) Restart() {
	n.t.Helper()
	n.Launch()
	n.AwaitReady(startLimit)
}

// AwaitReady waits until the launched node serves.
func (n *Node) AwaitReady(limit time.Duration) {
	n.t.Helper()
	err := n.process.waitReady(limit, func() bool {
		addr := loggedAddr(n.log, n.logged, "grpc_addr")
		if addr == "" {
			return false
		}
		n.mu.Lock()
		n.addr = addr
		n.mu.Unlock()
		return serves(addr)
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// Log returns the log of the node, which must not run, from an index on.
func (n *Node) Log(from uint64) []logline.Line {
	n.t.Helper()
	var out, talk bytes.Buffer
	cmd := exec.Command(n.binary, "log", "--data", n.data, "--from", strconv.FormatUint(from, 10))
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("read the log in %s: %v\n%s", n.data, err, &talk)
	}
	var lines []logline.Line
	if err := logline.Read(&out, func(l logline.Line) error { lines = append(lines, l); return nil }); err != nil {
		n.t.Fatal(err)
	}
	return lines
}

// Addr is where the node serves gRPC at present.
func (n *Node) Addr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addr
}

// HTTPAddr is where the node serves the page and metrics at present.
func (n *Node) HTTPAddr() string { return loggedAddr(n.log, n.logged, "http_addr") }

// Dial returns a client that follows the node across restarts. It is closed at
// the test's end.
func (n *Node) Dial(opts ...client.Option) *client.Client {
	n.t.Helper()
	opts = append(opts, client.WithDialOptions(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", n.Addr())
	})))
	c, err := client.Dial("passthrough:///admitd", opts...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = c.Close() })
	return c
}

// loggedAddr reads an address that the node wrote to its log under that key, from the
// given offset on. It is empty as long as there is none.
func loggedAddr(log string, offset int64, key string) string {
	data, err := os.ReadFile(log)
	if err != nil || int64(len(data)) < offset {
		return ""
	}
	for line := range bytes.Lines(data[offset:]) {
		var entry map[string]any
		if json.Unmarshal(line, &entry) != nil {
			continue
		}
		if addr, ok := entry[key].(string); ok && addr != "" {
			return addr
		}
	}
	return ""
}

// serves says whether the node at addr is healthy.
func serves(addr string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := client.Dial(addr)
	if err != nil {
		return false
	}
	defer c.Close()
	resp, err := grpc_health_v1.NewHealthClient(c.Conn()).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err == nil && resp.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING
}
