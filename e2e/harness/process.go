package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Process is a running program.
type Process struct {
	t      testing.TB
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // set when exited is closed
}

// start starts a program whose output is appended to the file log. Its owner ends
// it.
func start(t testing.TB, log string, cmd *exec.Cmd) *Process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("open the log of %s: %v", cmd.Path, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", cmd.Path, err)
	}
	p := &Process{t: t, name: filepath.Base(cmd.Path), log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p
}

// Kill ends the process at once, as kill -9 does, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// Stop asks the process to end and waits for it. It must end well.
func (p *Process) Stop(limit time.Duration) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("stop %s: %v", p.name, err)
		return
	}
	select {
	case <-p.exited:
		if p.err != nil {
			p.t.Errorf("%s did not end well: %v; its log is %s", p.name, p.err, p.log)
		}
	case <-time.After(limit):
		p.t.Errorf("%s did not end within %v; its log is %s", p.name, limit, p.log)
		p.Kill()
	}
}

func (p *Process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Errorf("send %v to %s: %v", s, p.name, err)
	}
}

// Running says whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// waitReady waits until ready holds or the process has ended.
func (p *Process) waitReady(limit time.Duration, ready func() bool) error {
	isReady := false
	Eventually(limit, func() bool {
		isReady = ready()
		return isReady || !p.Running()
	})
	switch {
	case isReady:
		return nil
	case p.Running():
		return fmt.Errorf("%s is not ready after %v; its log is %s", p.name, limit, p.log)
	default:
		return fmt.Errorf("%s ended before it was ready (%v); its log is %s", p.name, p.err, p.log)
	}
}
