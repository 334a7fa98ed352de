package system

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Process is a running server.
type Process struct {
	name   string
	log    string
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // set when exited is closed
}

// StartProcess runs a server whose output is appended to the file log. It does not
// outlive this process.
func StartProcess(log string, cmd *exec.Cmd) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", cmd.Path, err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &Process{name: filepath.Base(cmd.Path), log: log, cmd: cmd, exited: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// ID is the process's id.
func (p *Process) ID() int { return p.cmd.Process.Pid }

// stopLimit is how long a server may take to end in order.
const stopLimit = 15 * time.Second

// Stop asks the server to end and waits for it, and ends it if it doesn't.
func (p *Process) Stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-p.exited:
		return nil
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not end within %v; its log is %s", p.name, stopLimit, p.log)
	}
}

// Kill ends the server at once, as a lack of memory does.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.exited
	return nil
}

// readyLimit is how long a server may take until it serves.
const readyLimit = 60 * time.Second

// Await waits until ready says nil, the server has ended, or it has taken too long.
func (p *Process) Await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	ask := time.NewTicker(50 * time.Millisecond)
	defer ask.Stop()
	var err error
	for {
		said := ready(ctx)
		if said == nil {
			return nil
		}
		if ctx.Err() == nil || err == nil {
			err = said // and not that there was no time to ask once more
		}
		select {
		case <-ask.C:
		case <-p.exited:
			return fmt.Errorf("%s ended before it served (%v); its log is %s", p.name, p.err, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve (%w); its log is %s", p.name, err, p.log)
		}
	}
}

// Processes are servers that run together.
type Processes []*Process

// IDs are their ids.
func (ps Processes) IDs() []int {
	var ids []int
	for _, p := range ps {
		ids = append(ids, p.ID())
	}
	return ids
}

// Stop ends them, the last first.
func (ps Processes) Stop() error {
	var first error
	for i := len(ps) - 1; i >= 0; i-- {
		if err := ps[i].Stop(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// FreeAddrs returns so many addresses on loopback on which nobody listens now, all
// different.
func FreeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
