package e2e

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitd/admit/e2e/harness"
)

// copyModule copies what a clone would have, so that nothing is written into the
// checkout.
func copyModule(t *testing.T, root, dir string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case name == ".":
			return os.Mkdir(dir, 0o755)
		case entry.IsDir() && (strings.HasPrefix(name, ".") || name == "bin" || name == "data"):
			return filepath.SkipDir
		case entry.IsDir():
			return os.Mkdir(filepath.Join(dir, name), 0o755)
		case filepath.Ext(name) == ".test":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), text, 0o600)
	})
	if err != nil {
		t.Fatalf("copy the module: %v", err)
	}
}

// The stand-ins for python3 and pip make an environment of the Python that the
// tests have, and want there what would have been installed.
const (
	python3 = `#!/bin/sh
[ "$1 $2" = "-m venv" ] && mkdir -p "$3/bin" && cp "${0%/*}/python" "${0%/*}/pip" "$3/bin"
`
	venvPython = `#!/bin/sh
exec "$ADMIT_README_PYTHON" "$@"
`
	venvPip = `#!/bin/sh
[ "$1 $2" = "install -q" ] && shift 2 &&
exec "$ADMIT_README_PYTHON" -c 'import sys, importlib.metadata as m; [m.version(name) for name in sys.argv[1:]]' "$@"
`
)

// installPython puts the stand-ins into the shell's path. It skips the test where
// there is no Python for them.
func (r *reader) installPython(t *testing.T) {
	interpreter := harness.FindPython(t)
	dir := filepath.Join(r.dir, "..", "stand-ins")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "python3"), python3, 0o755)
	writeFile(t, filepath.Join(dir, "python"), venvPython, 0o755)
	writeFile(t, filepath.Join(dir, "pip"), venvPip, 0o755)
	r.shell.export(t, "ADMIT_README_PYTHON="+interpreter, "PATH="+dir+":$PATH")
}

func writeFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}
