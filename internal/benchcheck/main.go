// Command benchcheck compares what the hot path of the core costs with what it did when
// baseline.txt was written. Times are too noisy for that. Counted instead are allocations,
// which are the same on every machine, so that a single one more is found, and
// instructions, which valgrind counts and which are nearly the same each time with the
// same Go on the same processor (see tolerance).
//
//	go run ./internal/benchcheck
//	go run ./internal/benchcheck -update
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
)

const baselineFile = "internal/benchcheck/baseline.txt"

func main() {
	update := flag.Bool("update", false, "write the baseline")
	flag.Parse()
	if err := run(*update); err != nil {
		fmt.Fprintln(os.Stderr, "benchcheck:", err)
		os.Exit(1)
	}
}

func run(update bool) error {
	_, err := exec.LookPath("valgrind")
	valgrind := err == nil
	if !valgrind && (update || os.Getenv("CI") == "true") {
		return fmt.Errorf("count instructions: %w", err)
	}
	now, err := measure(valgrind)
	if err != nil {
		return err
	}
	if update {
		if err := os.WriteFile(baselineFile, []byte(now.String()), 0o644); err != nil {
			return fmt.Errorf("write the baseline: %w", err)
		}
		return nil
	}
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		return fmt.Errorf("read the baseline: %w", err)
	}
	then, err := parse(string(text))
	if err != nil {
		return err
	}
	fmt.Print(now)
	if why := incomparable(then, now); why != "" {
		fmt.Println("instructions were not compared:", why)
	}
	if err := compare(then, now); err != nil {
		return fmt.Errorf("%w\nif that is meant: go run ./internal/benchcheck -update", err)
	}
	return nil
}

// incomparable tells why the instructions of two costs say nothing about each other.
func incomparable(then, now costs) string {
	switch {
	case now.place == "":
		return "valgrind is not installed"
	case now.place != then.place:
		return "the baseline is of " + then.place
	}
	return ""
}

// tolerance is by how many percent instructions may differ. In five runs of one program
// on a busy machine the most and the fewest were 2.0 % apart, those of BenchmarkDigest
// 2.9 %: hashes are seeded anew in each process, and the threads of the runtime look
// round now and then.
const tolerance = 5

// compare returns every difference. One for the better is to be written down too.
func compare(then, now costs) error {
	var wrong []error
	for _, name := range now.names() {
		was, is := then.of[name], now.of[name]
		if _, ok := then.of[name]; !ok {
			wrong = append(wrong, fmt.Errorf("%s is not in the baseline", name))
			continue
		}
		if was.allocs != is.allocs {
			wrong = append(wrong, fmt.Errorf("%s allocates %d times, the baseline has %d", name, is.allocs, was.allocs))
		}
		if off := is.instructions - was.instructions; incomparable(then, now) == "" && max(off, -off)*100 > was.instructions*tolerance {
			wrong = append(wrong, fmt.Errorf("%s takes %d instructions, the baseline has %d", name, is.instructions, was.instructions))
		}
	}
	for _, name := range then.names() {
		if _, ok := now.of[name]; !ok {
			wrong = append(wrong, fmt.Errorf("%s is in the baseline and was not run", name))
		}
	}
	return errors.Join(wrong...)
}
