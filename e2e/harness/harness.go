// Package harness starts the real programs that the end-to-end tests run
// against, on free ports of the loopback interface: admitd, nginx as a provider
// with a rate limit, and the Python worker.
//
// Every test has a folder for data and logs. It is removed when the test passes;
// when it fails the folder is kept and its path printed. Processes are ended by
// their own pid when the test ends.
package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Folder returns a folder for the data and the logs of the test.
func Folder(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == os.PathSeparator {
			return '-'
		}
		return r
	}, t.Name())
	dir, err := os.MkdirTemp("", "admit-"+name+"-")
	if err != nil {
		t.Fatalf("make a folder for the test: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("data and logs are kept in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the test's folder: %v", err)
		}
	})
	return dir
}

// WaitFor waits until cond holds, and ends the test if it doesn't within limit.
func WaitFor(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	if !Eventually(limit, cond) {
		t.Fatalf("waited %v in vain for %s", limit, what)
	}
}

// Eventually waits until cond holds and says whether it did within limit. It
// looks a thousand times within the limit, but at most every 10 ms.
func Eventually(limit time.Duration, cond func() bool) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(max(limit/1000, 10*time.Millisecond))
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			return cond()
		}
	}
	return true
}

// figuresEnv names a file to which figures are appended, for runs whose tests
// are silent when they pass.
const figuresEnv = "ADMIT_E2E_FIGURES"

// Figure tells a figure that the test measured.
func Figure(t testing.TB, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	t.Log(line)
	path := os.Getenv(figuresEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatalf("open the file of figures: %v", err)
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s: %s\n", t.Name(), line); err != nil {
		t.Fatalf("write a figure: %v", err)
	}
}

// Missing ends a test that needs a program which the machine lacks. On a
// developer's machine the test is skipped; in CI, which installs everything, it
// fails.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing in CI: "+format, args...)
	}
	t.Skipf("skipped: "+format+" (.ci/run installs it)", args...)
}

// Root is the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	return root
}

func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
		dir = parent
	}
}
