// Package gubernator is three gubernator nodes with their default settings: they keep
// all in memory, each key on one of them, and put what they pass on to its owner
// together. Callers ask two of them, over a connection each.
package gubernator

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/admitd/admit/bench/system"
)

const nodes = 3

const (
	// server is the module of the program, which pins module.
	server = "gubernator/server"
	module = "github.com/gubernator-io/gubernator/v2"
)

// Gubernator is the system.
type Gubernator struct {
	version   string
	api       []string
	processes system.Processes
}

func (g *Gubernator) Name() string     { return "gubernator, 3 nodes" }
func (g *Gubernator) Version() string  { return g.version }
func (g *Gubernator) Processes() []int { return g.processes.IDs() }
func (g *Gubernator) Stop() error      { return g.processes.Stop() }

func (g *Gubernator) Start(ctx context.Context, dir string) error {
	program := filepath.Join(dir, "gubernator")
	if err := system.Build(ctx, server, ".", program); err != nil {
		return err
	}
	var err error
	if g.version, err = system.ModuleVersion(ctx, server, module); err != nil {
		return err
	}
	addrs, err := system.FreeAddrs(2 * nodes)
	if err != nil {
		return err
	}
	g.api = addrs[:nodes]
	web := addrs[nodes:]
	for i := range nodes {
		cmd := exec.Command(program, g.api...)
		cmd.Env = append(os.Environ(), "GUBER_GRPC_ADDRESS="+g.api[i], "GUBER_ADVERTISE_ADDRESS="+g.api[i],
			"GUBER_HTTP_ADDRESS="+web[i], "GUBER_PEER_DISCOVERY_TYPE=none", "GUBER_LOG_LEVEL=error")
		p, err := system.StartProcess(filepath.Join(dir, fmt.Sprintf("node-%d.log", i)), cmd)
		if err != nil {
			return err
		}
		g.processes = append(g.processes, p)
	}
	for i, p := range g.processes {
		if err := p.Await(ctx, func(ctx context.Context) error { return complete(ctx, web[i]) }); err != nil {
			return err
		}
	}
	return nil
}

// complete returns an error unless the node knows all others.
func complete(ctx context.Context, addr string) error {
	shown, err := system.Get(ctx, "http://"+addr+"/v1/HealthCheck")
	if err != nil {
		return err
	}
	var health struct {
		Status string `json:"status"`
		Peers  int    `json:"peer_count"`
	}
	if err := json.Unmarshal(shown, &health); err != nil {
		return fmt.Errorf("read the node's health: %w", err)
	}
	if health.Status != "healthy" || health.Peers != nodes {
		return fmt.Errorf("the node is %s and knows %d of %d", health.Status, health.Peers, nodes)
	}
	return nil
}
