// Package etcd is three etcd members on one machine. Their settings are the defaults,
// which etcd's tuning guide calls right for a local network, with the quota that its
// documentation calls the greatest sensible one, so that a long run does not end at
// it. The members speak to one another in plain text. Callers ask the leader over two
// connections.
package etcd

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/admitd/admit/bench/system"
)

const members = 3

// Etcd is the system.
type Etcd struct {
	version   string
	leader    string
	processes system.Processes
}

func (e *Etcd) Name() string     { return "etcd, 3 nodes" }
func (e *Etcd) Version() string  { return e.version }
func (e *Etcd) Processes() []int { return e.processes.IDs() }
func (e *Etcd) Stop() error      { return e.processes.Stop() }

func (e *Etcd) Start(ctx context.Context, dir string) error {
	program := filepath.Join(dir, "etcd")
	if err := system.Build(ctx, "etcd/server", "go.etcd.io/etcd/server/v3", program); err != nil {
		return err
	}
	addrs, err := system.FreeAddrs(2 * members)
	if err != nil {
		return err
	}
	api, peers := addrs[:members], addrs[members:]
	var cluster []string
	for i, p := range peers {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, p))
	}
	for i := range members {
		name := fmt.Sprintf("m%d", i)
		p, err := system.StartProcess(filepath.Join(dir, name+".log"), exec.Command(program,
			"--name", name, "--data-dir", filepath.Join(dir, name), "--log-level", "warn",
			"--listen-client-urls", "http://"+api[i], "--advertise-client-urls", "http://"+api[i],
			"--listen-peer-urls", "http://"+peers[i], "--initial-advertise-peer-urls", "http://"+peers[i],
			"--initial-cluster", strings.Join(cluster, ","), "--quota-backend-bytes", fmt.Sprint(8<<30)))
		if err != nil {
			return err
		}
		e.processes = append(e.processes, p)
	}
	for i, p := range e.processes {
		if err := p.Await(ctx, func(ctx context.Context) error { return e.ask(ctx, api[i]) }); err != nil {
			return err
		}
	}
	return nil
}

func dial(addr string) (*clientv3.Client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return c, nil
}

// ask asks a member how it is, and notes whether it leads.
func (e *Etcd) ask(ctx context.Context, addr string) error {
	c, err := dial(addr)
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Status(ctx, addr)
	if err != nil {
		return err
	}
	if s.Leader == 0 {
		return errors.New("there is no leader")
	}
	e.version = s.Version
	if s.Leader == s.Header.MemberId {
		e.leader = addr
	}
	return nil
}
