package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/admitd/admit/client"
)

// child is a command that is run under a permit.
type child struct {
	*app
	argv   []string
	bucket string
	// keep lets it go on when the permit is lost.
	keep bool

	// process is set while the command runs.
	process atomic.Pointer[os.Process]
}

// run runs the command, with env on top of this program's. The error is the outcome of
// the work; the code is the command's, and 128 + n if signal n ended it.
func (c *child) run(ctx context.Context, env ...string) (code int, err error) {
	if ctx.Err() != nil {
		return exitFailure, client.NotStarted{Err: context.Cause(ctx)}
	}
	life := ctx
	if c.keep {
		life = context.WithoutCancel(ctx)
	}
	cmd := exec.CommandContext(life, c.argv[0], c.argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = append(os.Environ(), env...)
	// What the command started may hold its output open for longer than it lives.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		code = exitNotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = exitNotFound
		}
		c.say("admitctl: %v", err)
		return code, client.NotStarted{Err: err}
	}
	c.process.Store(cmd.Process)
	err = cmd.Wait()
	c.process.Store(nil)
	code, err = c.outcome(cmd.ProcessState, err)
	if errors.Is(context.Cause(ctx), client.ErrPermitLost) {
		err = errors.Join(err, client.ErrPermitLost)
	}
	return code, err
}

// outcome is what the command's end means for the permit.
func (c *child) outcome(state *os.ProcessState, err error) (int, error) {
	code := state.ExitCode()
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		code = 128 + int(ws.Signal())
	}
	switch code {
	case 0:
		return code, nil
	case exitTempFail:
		return code, client.Throttled{Bucket: c.bucket, Err: err}
	case exitNotRun, exitNotFound:
		return code, client.NotStarted{Err: err}
	}
	return code, fmt.Errorf("command ended with %d: %w", code, err)
}
