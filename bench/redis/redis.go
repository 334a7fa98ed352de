// Package redis is Redis with its log flushed before each answer, alone or with two
// replicas that do the same, of which each call waits for one. Snapshots are off, as
// its documentation on latency advises, and so are threads for I/O, which it advises
// for four cores and more. Each caller has a connection, as with redis-benchmark.
package redis

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/admitd/admit/bench/system"
)

// Redis is the system.
type Redis struct {
	replicas  int
	version   string
	addr      string
	processes system.Processes
}

// New returns Redis with so many replicas.
func New(replicas int) *Redis { return &Redis{replicas: replicas} }

func (r *Redis) Name() string {
	if r.replicas == 0 {
		return "Redis, alone"
	}
	return fmt.Sprintf("Redis, %d replicas", r.replicas)
}

func (r *Redis) Version() string  { return r.version }
func (r *Redis) Processes() []int { return r.processes.IDs() }
func (r *Redis) Stop() error      { return r.processes.Stop() }

func (r *Redis) Start(ctx context.Context, dir string) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("find Redis (Debian's package redis-server): %w", err)
	}
	addrs, err := system.FreeAddrs(1 + r.replicas)
	if err != nil {
		return err
	}
	r.addr, r.processes = addrs[0], nil
	host, first, _ := net.SplitHostPort(r.addr)
	for i, addr := range addrs {
		home := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
		_, port, _ := net.SplitHostPort(addr)
		args := []string{"--bind", host, "--port", port, "--dir", home,
			"--appendonly", "yes", "--appendfsync", "always", "--save", ""}
		if i > 0 {
			args = append(args, "--replicaof", host+" "+first, "--repl-diskless-sync-delay", "0")
		}
		p, err := system.StartProcess(home+".log", exec.Command(program, args...))
		if err != nil {
			return err
		}
		r.processes = append(r.processes, p)
	}
	for i, p := range r.processes {
		if err := p.Await(ctx, func(ctx context.Context) error { return r.ask(ctx, addrs[i], i > 0) }); err != nil {
			return err
		}
	}
	return nil
}

// ask asks a server how it is: a replica is ready when it has what the first has.
func (r *Redis) ask(ctx context.Context, addr string, replica bool) error {
	c := goredis.NewClient(&goredis.Options{Addr: addr})
	defer c.Close()
	told, err := c.Info(ctx, "server", "replication").Result()
	if err != nil {
		return err
	}
	info := make(map[string]string)
	for line := range strings.Lines(told) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[key] = value
		}
	}
	r.version = info["redis_version"]
	if replica && info["master_link_status"] != "up" {
		return fmt.Errorf("the replica's link is %s", info["master_link_status"])
	}
	return nil
}
