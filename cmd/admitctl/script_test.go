package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"go.uber.org/goleak"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func TestMain(m *testing.M) {
	testscript.Main(suite{m}, map[string]func(){"admitctl": main})
}

// suite is the tests with what is theirs all together.
type suite struct{ m *testing.M }

// binaries is where admitd is built.
var binaries string

func (s suite) Run() int {
	dir, err := os.MkdirTemp("", "admitctl-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binaries = dir
	code := s.m.Run()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Each script runs admitctl as a user would. One that begins with `node` talks to
// a real admitd of its own.
func TestScripts(t *testing.T) {
	profiles, err := filepath.Abs("../../docs/profiles")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PROFILES", profiles)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"node":     startNode,
			"code":     runForCode,
			"save":     saveStdout,
			"stopnode": stopNode,
			"await":    awaitFile,
			"examples": writeExamples,
			"fail":     failDue,
		},
	})
}

// admitd is the path of the real binary, built once.
var admitd = sync.OnceValues(func() (string, error) {
	path := filepath.Join(binaries, "admitd")
	out, err := exec.Command("go", "build", "-o", path, "github.com/admitd/admit/cmd/admitd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building admitd: %w\n%s", err, out)
	}
	return path, nil
})

// nodes holds what stops each script's node.
var nodes sync.Map // from *testscript.TestScript to func()

// stopNode stops the script's node: `stopnode`.
func stopNode(ts *testscript.TestScript, _ bool, _ []string) {
	stop, ok := nodes.Load(ts)
	if !ok {
		ts.Fatalf("there is no node")
	}
	stop.(func())()
}

// awaitFile waits until a file is there: `await FILE`.
func awaitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	path := ts.MkAbs(args[0])
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for giveUp := time.After(20 * time.Second); ; {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-poll.C:
		case <-giveUp:
			ts.Fatalf("%s did not appear", args[0])
		}
	}
}

// startNode starts an admitd on a free port and points ADMIT_ADDR at it:
// `node [policy file]`. The file config.yaml, if there is one, is its configuration.
func startNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: node [policy file]")
	}
	path, err := admitd()
	ts.Check(err)
	argv := []string{"--data", ts.MkAbs("data"), "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0"}
	if len(args) == 1 {
		argv = append(argv, "--policy-file", ts.MkAbs(args[0]))
	}
	if _, err := os.Stat(ts.MkAbs("config.yaml")); err == nil {
		argv = append(argv, "--config", "config.yaml")
	}
	cmd := exec.Command(path, argv...)
	cmd.Dir = ts.MkAbs(".")
	var log strings.Builder
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			ts.Logf("admitd: %v\n%s", err, log.String())
		}
	})
	ts.Defer(stop)
	nodes.Store(ts, stop)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		_, rest, ok := strings.Cut(lines.Text(), "admitd is ready: gRPC on ")
		if addr, _, found := strings.Cut(rest, ","); ok && found {
			ts.Setenv("ADMIT_ADDR", addr)
			go func() { // so that admitd never waits for a reader; ends with it
				for lines.Scan() {
				}
			}()
			return
		}
	}
	ts.Fatalf("admitd did not become ready:\n%s", log.String())
}

// runForCode runs admitctl and wants an exit code: `code 3 acquire …`.
func runForCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: code N [argument...]")
	}
	err := ts.Exec("admitctl", args[1:]...)
	got := "0"
	if exit, ok := err.(*exec.ExitError); ok {
		got = fmt.Sprint(exit.ExitCode())
	} else {
		ts.Check(err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// failDue claims what is due in a pool as a worker would, and fails it: `fail POOL`.
func failDue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: fail POOL")
	}
	c, err := client.Dial(ts.Getenv("ADMIT_ADDR"))
	ts.Check(err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		resp, err := c.Admission().NextDue(ctx, &admitv1.NextDueRequest{Pool: args[0], MaxItems: 1000, WorkerId: "w1"})
		ts.Check(err)
		if len(resp.GetClaims()) == 0 {
			return
		}
		for _, claim := range resp.GetClaims() {
			_, err := c.Admission().Release(ctx, &admitv1.ReleaseRequest{
				Token: claim.GetPermit().GetToken(), Outcome: admitv1.Outcome_OUTCOME_FAILED,
			})
			ts.Check(err)
		}
	}
}

// writeExamples writes the examples of all commands, a line each: `examples FILE`.
func writeExamples(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: examples FILE")
	}
	var all strings.Builder
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			fmt.Fprintln(&all, strings.TrimSpace(line))
		}
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	add((&app{}).root())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(all.String()), 0o600))
}

// saveStdout keeps the last output, without the newline at its end, in a variable:
// `save NAME`.
func saveStdout(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: save NAME")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}
