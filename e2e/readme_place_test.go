package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// linkModule makes a folder that looks like the module from inside, so that what
// the README's commands write is not written into the checkout. What is left
// there by somebody who followed the README, and thus is ignored, stays out.
func linkModule(t *testing.T, root, dir string, ignored []string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); !slices.Contains(ignored, name) && !strings.HasPrefix(name, ".") {
			if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ignoredNames returns what .gitignore names in the module's folder.
func ignoredNames(t *testing.T, root string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "/"); ok {
			names = append(names, strings.TrimSuffix(name, "/"))
		}
	}
	return names
}

// checkLeftovers wants what the README's commands left in dir to be ignored.
func checkLeftovers(t *testing.T, dir string, ignored []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Type() != os.ModeSymlink && !slices.Contains(ignored, e.Name()) {
			t.Errorf("git does not ignore %s", e.Name())
		}
	}
}

// The stand-in for go runs it in the checkout, where everything is built but for
// what changed, and writes into the folder it was called from.
const standInGo = `#!/bin/sh
here=$PWD
cd "$ADMIT_README_ROOT" || exit
if [ "$1 $2" = "build -o" ]; then
	out=$here/$3
	shift 3
	exec "$ADMIT_README_GO" build -o "$out" "$@"
fi
exec "$ADMIT_README_GO" "$@"
`

// installGo puts the stand-in for go into dir and returns the environment that
// finds it.
func installGo(t *testing.T, root, dir string) []string {
	t.Helper()
	program, err := exec.LookPath("go")
	if err != nil {
		t.Fatalf("find go: %v", err)
	}
	writeProgram(t, filepath.Join(dir, "go"), standInGo)
	return []string{"ADMIT_README_ROOT=" + root, "ADMIT_README_GO=" + program, "PATH=" + dir + ":" + os.Getenv("PATH")}
}

// The stand-ins for python3, and for python and pip of the environment that it
// makes, are the Python that the tests have; pip wants what it is to install to
// be there already.
const (
	standInPython3 = `#!/bin/sh
[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && cp "${0%/*}/python" "${0%/*}/pip" "$3/bin"
`
	standInPython = `#!/bin/sh
exec "$ADMIT_README_PYTHON" "$@"
`
	standInPip = `#!/bin/sh
[ "$1 $2" = "install -q" ] && shift 2 &&
exec "$ADMIT_README_PYTHON" -c 'import sys, importlib.metadata as m; [m.version(name) for name in sys.argv[1:]]' "$@"
`
)

// installPython puts the stand-ins for Python into dir, which is in the shell's
// path. It skips the test where there is no Python for them.
func installPython(t *testing.T, dir string, shell *terminal) {
	t.Helper()
	shell.export(t, "ADMIT_README_PYTHON="+harness.FindPython(t))
	writeProgram(t, filepath.Join(dir, "python3"), standInPython3)
	writeProgram(t, filepath.Join(dir, "python"), standInPython)
	writeProgram(t, filepath.Join(dir, "pip"), standInPip)
}

func writeProgram(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
