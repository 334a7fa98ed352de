// Package redis is Redis with its log flushed before each answer, alone or with two
// replicas that do the same, of which each call waits for one; or one that keeps all in
// memory, for what is made of it. Snapshots are off, as
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
	inMemory  bool
	version   string
	dir       string
	addrs     []string // the first is asked
	processes system.Processes
}

// New returns Redis with so many replicas.
func New(replicas int) *Redis { return &Redis{replicas: replicas} }

// NewInMemory returns Redis without a log, whose data ends with it.
func NewInMemory() *Redis { return &Redis{inMemory: true} }

func (r *Redis) Name() string {
	if r.replicas == 0 {
		return "Redis, alone"
	}
	return fmt.Sprintf("Redis, %d replicas", r.replicas)
}

func (r *Redis) Version() string  { return r.version }
func (r *Redis) Processes() []int { return r.processes.IDs() }
func (r *Redis) Stop() error      { return r.processes.Stop() }

// Addr is where it is asked.
func (r *Redis) Addr() string { return r.addrs[0] }

// Kill ends the first server at once.
func (r *Redis) Kill() error { return r.processes[0].Kill() }

func (r *Redis) Start(ctx context.Context, dir string) error {
	addrs, err := system.FreeAddrs(1 + r.replicas)
	if err != nil {
		return err
	}
	r.dir, r.addrs = dir, addrs
	return r.Launch(ctx)
}

// Launch runs the servers where they were, with the data that they have.
func (r *Redis) Launch(ctx context.Context) error {
	program, err := exec.LookPath("redis-server")
	if err != nil {
		return fmt.Errorf("find Redis (Debian's package redis-server): %w", err)
	}
	r.processes = nil
	host, first, _ := net.SplitHostPort(r.addrs[0])
	for i, addr := range r.addrs {
		home := filepath.Join(r.dir, fmt.Sprint(i))
		if err := os.MkdirAll(home, 0o755); err != nil {
			return fmt.Errorf("make a directory: %w", err)
		}
		_, port, _ := net.SplitHostPort(addr)
		args := []string{"--bind", host, "--port", port, "--dir", home, "--save", ""}
		if !r.inMemory {
			args = append(args, "--appendonly", "yes", "--appendfsync", "always")
		}
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
		if err := p.Await(ctx, func(ctx context.Context) error { return r.ask(ctx, r.addrs[i], i > 0) }); err != nil {
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
