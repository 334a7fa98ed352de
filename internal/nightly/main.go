// Command nightly proves the core at length: it runs the heavy forms of all tests, and
// then the properties of the core in many random histories, over all processors.
// It fails if a test does, or if an operation or a reason occurred so seldom that
// the histories show little of it.
//
//	go run ./internal/nightly -histories 100000
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	histories := flag.Int("histories", 100_000, "how many random histories to run, over all properties")
	least := flag.Int("least", 1000, "how often each operation and each reason must occur")
	heavy := flag.Bool("heavy", true, "run the heavy tests first")
	flag.Parse()
	if err := run(*histories, *least, *heavy); err != nil {
		fmt.Fprintln(os.Stderr, "nightly:", err)
		os.Exit(1)
	}
}

func run(histories, least int, heavy bool) error {
	began := time.Now()
	if heavy {
		if err := runHeavy(); err != nil {
			return err
		}
		fmt.Printf("heavy tests passed in %s\n", time.Since(began).Round(time.Second))
	}
	dir, err := os.MkdirTemp("", "nightly")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "admission.test")
	if out, err := exec.Command("go", "test", "-c", "-o", binary, "./admission").CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests: %w\n%s", err, out)
	}
	r := &runner{binary: binary, total: histories, began: time.Now()}
	r.runAll(split(histories))
	seldom := r.report(os.Stdout, least)
	fmt.Printf("%d histories in %s\n", r.done, time.Since(r.began).Round(time.Second))
	switch {
	case len(r.failed) > 0:
		return fmt.Errorf("failed: %s", strings.Join(r.failed, ", "))
	case seldom > 0:
		return fmt.Errorf("%d operations and reasons occurred less than %d times", seldom, least)
	}
	return nil
}

// runHeavy runs every test but those of e2e, in the sizes that are too much for
// each change.
func runHeavy() error {
	out, err := exec.Command("go", "list", "./...").Output()
	if err != nil {
		return fmt.Errorf("listing the packages: %w", err)
	}
	args := []string{"test", "-count=1", "-timeout=60m"}
	for pkg := range strings.FieldsSeq(string(out)) {
		if !strings.Contains(pkg, "/e2e") {
			args = append(args, pkg)
		}
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "ADMIT_NIGHTLY=1")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the heavy tests: %w", err)
	}
	return nil
}
