package harness

import (
	"os"
	"os/exec"
	"testing"
)

// FindChromium returns the path of Chromium. It ends the test if there is none.
func FindChromium(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		Missing(t, "chromium")
	}
	return program
}

// FindPlaywright returns the path of a Python that drives browsers. It ends the test if
// there is none.
func FindPlaywright(t testing.TB) string {
	t.Helper()
	python := os.Getenv(pythonEnv)
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import playwright").CombinedOutput(); err != nil {
		Missing(t, "a Python with e2e/python/requirements.txt, named by %s: %s: %v\n%s", pythonEnv, python, err, out)
	}
	return python
}
