package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// terminal is a shell whose output and errors come in one stream, as on a
// screen. It and all that it runs are one process group, so that it can be
// interrupted and leaves nothing behind.
type terminal struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

// patience is how long a terminal may be open; its first commands build the
// programs.
const patience = 5 * time.Minute

func openTerminal(t *testing.T, dir string, env ...string) *terminal {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	cmd := exec.CommandContext(ctx, "bash", "--noprofile", "--norc")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatalf("open a terminal: %v", err)
	}
	s := &terminal{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
	return s
}

// prompt stands where a shell's next prompt would, with the code of the last
// command.
const prompt = "-- prompt --"

// enter types a command. What it reads is not what is typed next.
func (s *terminal) enter(t *testing.T, command string) {
	t.Helper()
	if _, err := fmt.Fprintf(s.in, "{ %s\n} </dev/null\nprintf '\\n%s%%d\\n' $?\n", command, prompt); err != nil {
		t.Fatalf("type %q: %v", command, err)
	}
}

func (s *terminal) readLine(t *testing.T) string {
	t.Helper()
	line, err := s.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the terminal closed after %q: %v", line, err)
	}
	line = strings.TrimSuffix(line, "\n")
	if strings.HasPrefix(line, prompt) {
		t.Fatalf("the command ended early: %s", line)
	}
	return line
}

// finish waits for the command's end and returns what was printed and not read
// yet, and the command's code.
func (s *terminal) finish(t *testing.T) (lines []string, code int) {
	t.Helper()
	for {
		line, err := s.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the terminal closed: %v, after:\n%s", err, strings.Join(lines, "\n"))
		}
		line = strings.TrimSuffix(line, "\n")
		rest, ended := strings.CutPrefix(line, prompt)
		if !ended {
			lines = append(lines, line)
			continue
		}
		if code, err = strconv.Atoi(rest); err != nil {
			t.Fatalf("a code is %q", rest)
		}
		// The prompt's own line break ends a last line or makes an empty one.
		if n := len(lines); n > 0 && lines[n-1] == "" {
			lines = lines[:n-1]
		}
		return lines, code
	}
}

// export sets environment variables for the commands that follow.
func (s *terminal) export(t *testing.T, variables ...string) {
	t.Helper()
	for _, v := range variables {
		name, value, _ := strings.Cut(v, "=")
		s.enter(t, fmt.Sprintf("export %s=\"%s\"", name, value))
		s.finish(t)
	}
}

// interrupt does what Ctrl-C does.
func (s *terminal) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatalf("interrupt the terminal: %v", err)
	}
}
