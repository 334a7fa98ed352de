// Command benchcheck compares what the hot path of the core allocates with what it did
// when baseline.txt was written. Allocations are the same on every machine, so a single
// one more is found; times are not, and instructions are not counted.
//
//	go run ./internal/benchcheck
//	go run ./internal/benchcheck -update
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// hot are the benchmarks looked at, few and small ones: it is done in seconds.
const hot = "^BenchmarkAcquire(Expire)?$/^tenants=100$|^BenchmarkDecideShed$/^tenants=100$|" +
	"^BenchmarkNextDue10$/^tenants=10$/^entries=1000$|^BenchmarkDigest$"

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
	// Averages over so many are whole: what is allocated once in a while is lost in them.
	out, err := exec.Command("go", "test", "-run", "^$", "-bench", hot, "-benchtime", "5000x", "-benchmem",
		"./admission", "./raftstore").CombinedOutput()
	if err != nil {
		return fmt.Errorf("run the benchmarks: %w\n%s", err, out)
	}
	now, err := read(string(out))
	if err != nil {
		return err
	}
	if update {
		return write(now)
	}
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		return fmt.Errorf("read the baseline: %w", err)
	}
	then, err := read(string(text))
	if err != nil {
		return err
	}
	return compare(os.Stdout, then, now)
}

// line is a benchmark's, less the processors in its name, or one of the baseline.
var line = regexp.MustCompile(`(?m)^(Benchmark\S+?)(?:-\d+)?\s.*?(\d+) allocs/op`)

// read returns the allocations of each benchmark.
func read(text string) (map[string]int, error) {
	allocs := make(map[string]int)
	for _, m := range line.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", m[0], err)
		}
		allocs[m[1]] = n
	}
	if len(allocs) == 0 {
		return nil, errors.New("no benchmark tells of allocations")
	}
	return allocs, nil
}

func write(allocs map[string]int) error {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(allocs)) {
		fmt.Fprintf(&text, "%s %d allocs/op\n", name, allocs[name])
	}
	if err := os.WriteFile(baselineFile, []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("write the baseline: %w", err)
	}
	return nil
}

// compare tells each benchmark's allocations, and returns an error where they are not
// those of the baseline: fewer are to be written down too.
func compare(out io.Writer, then, now map[string]int) error {
	var wrong error
	for _, name := range slices.Sorted(maps.Keys(now)) {
		fmt.Fprintf(out, "%-55s %d allocs/op\n", name, now[name])
		if was, ok := then[name]; !ok || was != now[name] {
			wrong = errors.Join(wrong, fmt.Errorf("%s allocates %d times, the baseline has %d", name, now[name], was))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(then)) {
		if _, ok := now[name]; !ok {
			wrong = errors.Join(wrong, fmt.Errorf("%s is in the baseline and was not run", name))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%w\nif that is meant: go run ./internal/benchcheck -update", wrong)
	}
	return nil
}
