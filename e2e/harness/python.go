package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// pythonEnv names the interpreter to use, one that has what
// e2e/python/requirements.txt lists.
const pythonEnv = "ADMIT_E2E_PYTHON"

// Python runs the worker of e2e/python, with stubs that are generated from the
// protos and nothing else.
type Python struct {
	t           testing.TB
	interpreter string
	worker      string
	dir         string
	workers     []*Process
}

// NewPython generates the stubs into dir. It ends the test if there is no Python
// with grpcio and grpcio-tools.
func NewPython(t testing.TB, dir string) *Python {
	t.Helper()
	root := Root(t)
	p := &Python{t: t, interpreter: FindPython(t), worker: filepath.Join(root, "e2e", "python", "worker.py"), dir: dir}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatalf("make a folder for the stubs: %v", err)
	}
	protos, err := filepath.Glob(filepath.Join(root, "proto", "admit", "v1", "*.proto"))
	if err != nil || len(protos) == 0 {
		t.Fatalf("find the protos: %v", err)
	}
	args := []string{"-m", "grpc_tools.protoc", "-I", filepath.Join(root, "proto"), "--python_out=" + dir, "--grpc_python_out=" + dir}
	if out, err := exec.Command(p.interpreter, append(args, protos...)...).CombinedOutput(); err != nil {
		t.Fatalf("generate Python stubs: %v\n%s", err, out)
	}
	return p
}

// FindPython returns the path of an interpreter that can generate and use stubs.
// It ends the test if there is none.
func FindPython(t testing.TB) string {
	t.Helper()
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import grpc, grpc_tools").CombinedOutput(); err != nil {
		Missing(t, "a Python with e2e/python/requirements.txt, named by %s: %s: %v\n%s", pythonEnv, python, err, out)
	}
	path, err := exec.LookPath(python)
	if err != nil {
		t.Fatalf("find %s: %v", python, err)
	}
	return path
}

// StartWorker starts a worker process with the given arguments.
func (p *Python) StartWorker(args ...string) {
	p.t.Helper()
	cmd := exec.Command(p.interpreter, append([]string{p.worker}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+p.dir)
	w := start(p.t, filepath.Join(p.dir, "worker.log"), cmd)
	p.t.Cleanup(w.Kill)
	p.workers = append(p.workers, w)
}

// Stop lets the workers finish what they have in hand, and waits for them.
func (p *Python) Stop() {
	p.t.Helper()
	for _, w := range p.workers {
		w.Stop(20 * time.Second)
	}
	p.workers = nil
}
