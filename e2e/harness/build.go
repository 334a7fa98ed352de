package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var builds sync.Map // from the go command's arguments to func() (string, error), which builds once

// Binary returns the path of one of the module's programs, built once for each set
// of flags in a run of a test binary. RemoveBinaries removes it.
func Binary(t testing.TB, program string, flags ...string) string {
	t.Helper()
	return built(t, program, slices.Concat([]string{"build"}, flags, []string{"./cmd/" + program})...)
}

// TestBinary returns the path of the tests of one of the module's packages, built as
// programs are. They are to be run in the package's folder.
func TestBinary(t testing.TB, pkg string) string {
	t.Helper()
	return built(t, "test", "test", "-c", "./"+pkg)
}

func built(t testing.TB, name string, args ...string) string {
	t.Helper()
	build, _ := builds.LoadOrStore(strings.Join(args, " "), sync.OnceValues(func() (string, error) {
		root, err := findRoot()
		if err != nil {
			return "", err
		}
		dir, err := os.MkdirTemp("", "admit-build-")
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", slices.Concat(args[:1], []string{"-o", path}, args[1:])...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			return path, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return path, nil
	}))
	path, err := build.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// RemoveBinaries removes what was built for the tests of this run.
func RemoveBinaries() {
	builds.Range(func(_, build any) bool {
		if path, _ := build.(func() (string, error))(); path != "" {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		return true
	})
}
