// Package ratelimit is Envoy's reference rate limit service: one server, with its
// counters in one Redis that keeps them in memory. Redis's writes are buffered for as
// long as its documentation advises where much is asked; its cache of what is over the
// limit is off, as by default, and so are statistics.
package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/admitd/admit/bench/redis"
	"github.com/admitd/admit/bench/system"
)

//go:embed limits.yaml
var limits []byte

const (
	// server is the module that pins the program.
	server  = "ratelimit/server"
	module  = "github.com/envoyproxy/ratelimit"
	program = module + "/src/service_cmd"
	// window is how long writes to Redis are buffered.
	window = "150us"
)

// Ratelimit is the system.
type Ratelimit struct {
	redis     *redis.Redis
	version   string
	addr      string
	processes system.Processes
}

// New returns the service with its Redis.
func New() *Ratelimit { return &Ratelimit{redis: redis.NewInMemory()} }

func (r *Ratelimit) Name() string     { return "envoyproxy/ratelimit, Redis" }
func (r *Ratelimit) Version() string  { return r.version }
func (r *Ratelimit) Processes() []int { return append(r.processes.IDs(), r.redis.Processes()...) }

// Stop kills the service, which would wait for calls that never return since its Redis
// was killed. It has nothing to lose.
func (r *Ratelimit) Stop() error {
	var all error
	for _, p := range r.processes {
		all = errors.Join(all, p.Kill())
	}
	return errors.Join(all, r.redis.Stop())
}

// Targets are where it takes calls.
func (r *Ratelimit) Targets() []string { return []string{r.addr} }

// KillRedis ends Redis at once, and with it what was counted.
func (r *Ratelimit) KillRedis() error { return r.redis.Kill() }

// ReviveRedis starts Redis where it was.
func (r *Ratelimit) ReviveRedis(ctx context.Context) error { return r.redis.Launch(ctx) }

func (r *Ratelimit) Start(ctx context.Context, dir string) error {
	built := filepath.Join(dir, "ratelimit")
	if err := system.Build(ctx, server, program, built); err != nil {
		return err
	}
	version, err := system.ModuleVersion(ctx, server, module)
	if err != nil {
		return err
	}
	home := filepath.Join(dir, "redis")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if err := r.redis.Start(ctx, home); err != nil {
		return err
	}
	r.version = version + " with Redis " + r.redis.Version()
	config := filepath.Join(dir, "limits", "config")
	if err := os.MkdirAll(config, 0o755); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	if err := os.WriteFile(filepath.Join(config, "limits.yaml"), limits, 0o644); err != nil {
		return fmt.Errorf("write the limits: %w", err)
	}
	addrs, err := system.FreeAddrs(3)
	if err != nil {
		return err
	}
	r.addr = addrs[0]
	cmd := exec.Command(built)
	cmd.Env = append(os.Environ(), "RUNTIME_ROOT="+dir, "RUNTIME_SUBDIRECTORY=limits", "RUNTIME_WATCH_ROOT=false",
		"REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+r.redis.Addr(), "REDIS_PIPELINE_WINDOW="+window,
		"LOG_LEVEL=error", "USE_STATSD=false", "DISABLE_STATS=true")
	for i, listener := range []string{"GRPC_", "", "DEBUG_"} {
		host, port, _ := net.SplitHostPort(addrs[i])
		cmd.Env = append(cmd.Env, listener+"HOST="+host, listener+"PORT="+port)
	}
	p, err := system.StartProcess(built+".log", cmd)
	if err != nil {
		return err
	}
	r.processes = system.Processes{p}
	return p.Await(ctx, func(ctx context.Context) error {
		_, err := system.Get(ctx, "http://"+addrs[1]+"/healthcheck")
		return err
	})
}
