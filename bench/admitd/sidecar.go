package admitd

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/admitd/admit/bench/system"
)

// Sidecar is a sidecar of admit on a Unix socket, beside what asks it.
type Sidecar struct {
	cluster   *Admit
	socket    string
	processes system.Processes
}

// NewSidecar returns a sidecar of a cluster that is started before it.
func NewSidecar(cluster *Admit) *Sidecar { return &Sidecar{cluster: cluster} }

func (s *Sidecar) Name() string     { return "admit, a sidecar" }
func (s *Sidecar) Version() string  { return s.cluster.commit }
func (s *Sidecar) Processes() []int { return s.processes.IDs() }

// Stop ends the sidecar, and forgets it.
func (s *Sidecar) Stop() error {
	err := s.processes.Stop()
	s.processes = nil
	return err
}

// Target is where it takes calls.
func (s *Sidecar) Target() string { return "unix:" + s.socket }

// Start runs it and waits until it says that the cluster decides.
func (s *Sidecar) Start(ctx context.Context, dir string) error {
	if len(s.cluster.api) == 0 {
		return errors.New("start a sidecar: its cluster does not run")
	}
	addrs, err := system.FreeAddrs(1)
	if err != nil {
		return err
	}
	s.socket = filepath.Join(dir, "sock")
	p, err := system.StartProcess(filepath.Join(dir, "sidecar.log"), s.cluster.command([]string{
		"sidecar", "--listen", "unix:" + s.socket, "--http-addr", addrs[0], "--upstream", strings.Join(s.cluster.api, ","),
	}))
	if err != nil {
		return err
	}
	s.processes = system.Processes{p}
	return p.Await(ctx, func(ctx context.Context) error { return ready(ctx, addrs[0]) })
}
