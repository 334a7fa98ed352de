package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// trial runs the tests on a core with one line broken, or on the sound one.
type trial struct {
	dir, id string
	mutant  *mutant
	limit   time.Duration // for each stage
}

// stage is a part of the tests. The cheap ones go first: most mutants die there.
type stage struct {
	pkg    string
	checks string // random histories of each property
}

var stages = []stage{
	{"admission", "20"},
	{"internal/scenario", ""},
	{"admission", "150"},
}

// run returns the test that failed first, or "" if none did.
func (t trial) run() (killer string, err error) {
	overlay, err := t.overlay()
	if err != nil {
		return "", err
	}
	for _, s := range stages {
		binary, err := t.build(s.pkg, overlay)
		if err != nil {
			return "", err
		}
		args := []string{"-test.failfast", "-test.timeout=" + t.limit.String(), "-test.v"}
		if s.checks != "" {
			args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.seed=1", "-rapid.checks="+s.checks)
		}
		cmd := exec.Command(binary, args...)
		cmd.Dir = s.pkg
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		switch {
		case errors.As(err, &failed):
			return killerIn(string(out)), nil
		case err != nil:
			return "", err
		}
	}
	return "", nil
}

// overlay writes the broken file and the go command's list of replaced files. It
// returns the list's path, or "" for the sound core.
func (t trial) overlay() (string, error) {
	if t.mutant == nil {
		return "", nil
	}
	source, err := os.ReadFile(t.mutant.file)
	if err != nil {
		return "", err
	}
	broken, err := t.mutant.apply(string(source))
	if err != nil {
		return "", err
	}
	instead := filepath.Join(t.dir, t.id+".go")
	if err := os.WriteFile(instead, []byte(broken), 0o600); err != nil {
		return "", err
	}
	original, err := filepath.Abs(t.mutant.file)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: instead}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.dir, t.id+".json")
	return path, os.WriteFile(path, text, 0o600)
}

// build builds the tests of a package once.
func (t trial) build(pkg, overlay string) (string, error) {
	binary := filepath.Join(t.dir, t.id+"-"+filepath.Base(pkg))
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	args := []string{"test", "-c", "-vet=off", "-ldflags=-w", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Env = append(os.Environ(), "GOGC=800") // building is most of a trial
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

var (
	failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	runLine  = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
)

// killerIn names the test that failed, by its output.
func killerIn(out string) string {
	if m := failLine.FindStringSubmatch(out); m != nil {
		return m[1]
	}
	how := "a crash in "
	if strings.Contains(out, "panic: test timed out") {
		how = "the time limit of "
	}
	if all := runLine.FindAllStringSubmatch(out, -1); len(all) > 0 {
		return how + all[len(all)-1][1]
	}
	return how + "an unknown test"
}
