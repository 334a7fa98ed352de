package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// benchmark is one that is looked at.
type benchmark struct {
	pkg, name string
	// counted is how often it is run while instructions are counted, which makes it some
	// thirty times slower.
	counted int
}

// hot are few and small ones: all is done in seconds.
var hot = []benchmark{
	{"admission", "BenchmarkAcquire/tenants=100", 2000},
	{"admission", "BenchmarkAcquireExpire/tenants=100", 2000},
	{"admission", "BenchmarkDecideShed/tenants=100", 10_000},
	{"admission", "BenchmarkNextDue10/tenants=10/entries=1000", 150},
	{"raftstore", "BenchmarkDigest", 150},
}

// measure runs the hot benchmarks, all at a time: neither figure minds company.
func measure(valgrind bool) (costs, error) {
	dir, err := os.MkdirTemp("", "benchcheck")
	if err != nil {
		return costs{}, fmt.Errorf("make room for the benchmarks: %w", err)
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("go", "test", "-c", "-o", dir+"/", "./admission", "./raftstore").CombinedOutput(); err != nil {
		return costs{}, fmt.Errorf("build the benchmarks: %w\n%s", err, out)
	}
	var (
		of     = make([]cost, len(hot))
		places = make([]string, len(hot))
		errs   = make([]error, len(hot))
		wg     sync.WaitGroup
	)
	for i, b := range hot {
		wg.Go(func() {
			if of[i].allocs, errs[i] = b.allocs(dir); errs[i] == nil && valgrind {
				of[i].instructions, places[i], errs[i] = b.instructions(dir)
			}
		})
	}
	wg.Wait()
	c := costs{place: places[0], of: make(map[string]cost)}
	for i, b := range hot {
		c.of[b.name] = of[i]
	}
	return c, errors.Join(errs...)
}

// command runs the benchmark a number of times.
func (b benchmark) command(dir string, times int) []string {
	return []string{filepath.Join(dir, b.pkg+".test"), "-test.run", "^$", "-test.benchmem",
		"-test.bench", "^" + strings.ReplaceAll(b.name, "/", "$/^") + "$", "-test.benchtime", strconv.Itoa(times) + "x"}
}

var allocsLine = regexp.MustCompile(`(\d+) allocs/op`)

// allocs returns how often the benchmark allocates per operation.
func (b benchmark) allocs(dir string) (int, error) {
	// Averages over so many are whole: what is allocated once in a while is lost in them.
	args := b.command(dir, 5000)
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w\n%s", b.name, err, out)
	}
	return number(allocsLine, out, b.name)
}

var (
	collectedLine = regexp.MustCompile(`Collected : (\d+)`)
	cpuLine       = regexp.MustCompile(`(?m)^cpu: (.*)$`)
)

// instructions returns how many instructions the benchmark takes per operation, and where
// that holds. They are what many runs take more than few, which leaves out the start and
// what a benchmark prepares; what it does while its clock stands still is counted.
func (b benchmark) instructions(dir string) (perOp int, place string, err error) {
	const few = 2 // of a single one, go makes no second round
	less, _, err := b.count(dir, few)
	if err != nil {
		return 0, "", err
	}
	more, place, err := b.count(dir, few+b.counted)
	return (more - less) / b.counted, place, err
}

// count returns the instructions of a whole run. The collector of garbage is off, whose
// work comes when it comes, and so are the signals by which the runtime halts
// goroutines: callgrind, which follows calls, does not always survive them.
func (b benchmark) count(dir string, times int) (n int, place string, err error) {
	args := append([]string{"--tool=callgrind", "--callgrind-out-file=" + os.DevNull}, b.command(dir, times)...)
	cmd := exec.Command("valgrind", args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, "", fmt.Errorf("count the instructions of %s: %w\n%s", b.name, err, out)
	}
	if n, err = number(collectedLine, out, b.name); err != nil {
		return 0, "", err
	}
	cpu := cpuLine.FindSubmatch(out)
	if cpu == nil {
		return 0, "", fmt.Errorf("%s does not tell its processor:\n%s", b.name, out)
	}
	return n, fmt.Sprintf("%s %s/%s on %s", runtime.Version(), runtime.GOOS, runtime.GOARCH, cpu[1]), nil
}

// number returns the only number of its kind in what a benchmark printed.
func number(kind *regexp.Regexp, out []byte, name string) (int, error) {
	found := kind.FindAllSubmatch(out, -1)
	if len(found) != 1 {
		return 0, fmt.Errorf("%s printed %d times %s:\n%s", name, len(found), kind, out)
	}
	n, err := strconv.Atoi(string(found[0][1]))
	if err != nil {
		return 0, fmt.Errorf("read what %s printed: %w", name, err)
	}
	return n, nil
}
