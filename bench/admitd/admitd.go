// Package admitd is admit as its users run it: real admitd processes with a log on
// disk, three of them with certificates between them as docs/operations.md has it,
// or one alone.
package admitd

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
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
	core      string   // to which the nodes are kept, or empty
	api       []string // addresses of the nodes
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

func (a *Admit) Start(ctx context.Context, dir string) error {
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), policy, 0o644); err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	addrs, err := system.FreeAddrs(3 * a.nodes)
	if err != nil {
		return err
	}
	a.api, a.processes = addrs[:a.nodes], nil
	web, peers := addrs[a.nodes:2*a.nodes], addrs[2*a.nodes:]
	if a.nodes > 1 {
		if err := a.certificates(ctx, dir); err != nil {
			return err
		}
	}
	for i := range a.nodes {
		data := filepath.Join(dir, nodeName(i))
		args := []string{
			"--data", data, "--grpc-addr", a.api[i], "--http-addr", web[i],
			"--policy-file", filepath.Join(dir, "policy.yaml"),
		}
		if a.nodes > 1 {
			certs := filepath.Join(dir, "certs")
			args = append(args, "--peer-addr", peers[i], "--join", strings.Join(peers, ","),
				"--bootstrap-expect", strconv.Itoa(a.nodes), "--peer-ca", filepath.Join(certs, "ca.crt"),
				"--peer-cert", filepath.Join(certs, nodeName(i)+".crt"), "--peer-key", filepath.Join(certs, nodeName(i)+".key"))
		}
		p, err := system.StartProcess(data+".log", a.command(args))
		if err != nil {
			return err
		}
		a.processes = append(a.processes, p)
	}
	for i, p := range a.processes {
		if err := p.Await(ctx, func(ctx context.Context) error { return ready(ctx, web[i]) }); err != nil {
			return err
		}
	}
	return a.findLeader(ctx)
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
func (a *Admit) certificates(ctx context.Context, dir string) error {
	args := []string{"certs", "init", "--dir", filepath.Join(dir, "certs")}
	for i := range a.nodes {
		args = append(args, nodeName(i))
	}
	if out, err := exec.CommandContext(ctx, a.programs.path("admitctl"), args...).CombinedOutput(); err != nil {
		return fmt.Errorf("make certificates: %w\n%s", err, out)
	}
	return nil
}

func ready(ctx context.Context, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", resp.Status)
	}
	return nil
}
