// Package admitd is admit as its users run it: real admitd processes with a log on
// disk, three of them with certificates between them as docs/operations.md has it,
// or one alone.
package admitd

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/admitd/admit/bench/system"
)

//go:embed policy.yaml
var policy []byte

// Programs are the built programs of admit.
type Programs struct{ dir string }

// Build builds them from the checkout at root into dir.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", dir+"/", "./cmd/admitd", "./cmd/admitctl")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build admit: %w\n%s", err, out)
	}
	return Programs{dir}, nil
}

func (p Programs) path(name string) string { return filepath.Join(p.dir, name) }

// Admit is the system.
type Admit struct {
	programs  Programs
	nodes     int
	commit    string
	core      string // to which the nodes are kept, or empty
	dir       string
	api       []string // where each node takes calls
	web       []string // where its metrics are
	peers     []string // where it hears the others
	leader    string
	processes system.Processes
}

// New returns admit with so many nodes. The commit is what its version is told as.
func New(programs Programs, nodes int, commit string) *Admit {
	return &Admit{programs: programs, nodes: nodes, commit: commit}
}

// OnCore keeps the nodes to that core.
func (a *Admit) OnCore(core int) *Admit {
	a.core = strconv.Itoa(core)
	return a
}

func (a *Admit) Name() string {
	if a.nodes == 1 {
		return "admit, one node"
	}
	return fmt.Sprintf("admit, %d nodes", a.nodes)
}

func (a *Admit) Version() string  { return a.commit }
func (a *Admit) Processes() []int { return a.processes.IDs() }
func (a *Admit) Stop() error      { return a.processes.Stop() }

// Target is where the leader takes calls.
func (a *Admit) Target() string { return a.leader }

// Web is where the first node's metrics are.
func (a *Admit) Web() string { return a.web[0] }

// Data is the first node's directory.
func (a *Admit) Data() string { return filepath.Join(a.dir, nodeName(0)) }

func (a *Admit) Start(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), policy, 0o644); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	addrs, err := system.FreeAddrs(3 * a.nodes)
	if err != nil {
		return err
	}
	a.dir, a.api, a.web, a.peers = dir, addrs[:a.nodes], addrs[a.nodes:2*a.nodes], addrs[2*a.nodes:]
	if a.nodes > 1 {
		if err := a.certificates(ctx); err != nil {
			return err
		}
	}
	return a.launch(ctx)
}

// Restart stops the nodes and starts them with the data that they have.
func (a *Admit) Restart(ctx context.Context) error {
	if err := a.Stop(); err != nil {
		return err
	}
	return a.launch(ctx)
}

// launch starts the nodes and waits until they serve.
func (a *Admit) launch(ctx context.Context) error {
	a.processes = nil
	for i := range a.nodes {
		p, err := a.startNode(i)
		if err != nil {
			return err
		}
		a.processes = append(a.processes, p)
	}
	for i, p := range a.processes {
		if err := p.Await(ctx, func(ctx context.Context) error { return ready(ctx, a.web[i]) }); err != nil {
			return err
		}
	}
	return a.findLeader(ctx)
}

func (a *Admit) startNode(i int) (*system.Process, error) {
	return system.StartProcess(filepath.Join(a.dir, nodeName(i)+".log"), a.command(a.settings(i)))
}

// settings are a node's flags.
func (a *Admit) settings(i int) []string {
	args := []string{
		"--data", filepath.Join(a.dir, nodeName(i)), "--grpc-addr", a.api[i], "--http-addr", a.web[i],
		"--policy-file", filepath.Join(a.dir, "policy.yaml"),
	}
	if a.nodes == 1 {
		return args
	}
	certs := filepath.Join(a.dir, "certs")
	return append(args, "--peer-addr", a.peers[i], "--join", strings.Join(a.peers, ","),
		"--bootstrap-expect", strconv.Itoa(a.nodes), "--peer-ca", filepath.Join(certs, "ca.crt"),
		"--peer-cert", filepath.Join(certs, nodeName(i)+".crt"), "--peer-key", filepath.Join(certs, nodeName(i)+".key"))
}

func (a *Admit) command(args []string) *exec.Cmd {
	program := a.programs.path("admitd")
	if a.core != "" {
		return exec.Command("taskset", append([]string{"-c", a.core, program}, args...)...)
	}
	return exec.Command(program, args...)
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }

// certificates makes those of the members, as an operator does.
func (a *Admit) certificates(ctx context.Context) error {
	args := []string{"certs", "init", "--dir", filepath.Join(a.dir, "certs")}
	for i := range a.nodes {
		args = append(args, nodeName(i))
	}
	if out, err := exec.CommandContext(ctx, a.programs.path("admitctl"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make certificates: %w\n%s", err, out)
	}
	return nil
}

func ready(ctx context.Context, addr string) error {
	_, err := system.Get(ctx, "http://"+addr+"/readyz")
	return err
}
