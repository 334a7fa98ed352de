// Command benchmarks measures what the core costs and writes its part of
// docs/benchmarks.md from the figures. It wants an idle machine, and 6 GB of free memory for the
// largest backlog; with less it leaves that out and says so.
//
//	go run ./internal/benchmarks
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/admitd/admit/internal/pagepart"
)

// wantedMemory is what a backlog of ten million takes, in kB, with room to spare.
const wantedMemory = 6 << 20

func main() {
	out := flag.String("o", "docs/benchmarks.md", "the page to write")
	rounds := flag.Int("rounds", 5, "how often to measure each figure")
	skip := flag.String("skip", "", "benchmarks to leave out, as go test -skip has them")
	flag.Parse()
	if err := run(*out, *rounds, *skip); err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func run(out string, rounds int, skip string) error {
	m := machine()
	if m.free < wantedMemory && skip == "" {
		skip = "/entries=10000000"
	}
	cost, err := measure(rounds, "^BenchmarkCost$", "0.3s", skip)
	if err != nil {
		return err
	}
	long, err := measure(rounds, "^BenchmarkLongest", "1x", skip)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	writePage(&page, m, rounds, append(cost, long...))
	return pagepart.Write(out, "core", page.Bytes())
}

// figure is one benchmark's measurements of one unit.
type figure struct {
	name, unit string
	rounds     []float64
}

// measure runs benchmarks, so many rounds each.
func measure(rounds int, bench, benchtime, skip string) ([]*figure, error) {
	args := []string{"test", "-run=^$", "-bench=" + bench, "-benchtime=" + benchtime, "-timeout=3h", "-count=" + strconv.Itoa(rounds)}
	if skip != "" {
		args = append(args, "-skip="+skip)
	}
	cmd := exec.Command("go", append(args, "./admission")...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	os.Stdout.Write(out)
	if err != nil {
		return nil, fmt.Errorf("benchmarks %s: %w", bench, err)
	}
	return parse(string(out)), nil
}

var resultLine = regexp.MustCompile(`(?m)^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.+)$`)

// parse reads the lines of go test -bench.
func parse(out string) []*figure {
	var all []*figure
	for _, m := range resultLine.FindAllStringSubmatch(out, -1) {
		fields := strings.Fields(m[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				continue
			}
			f := find(all, m[1], fields[i+1])
			if f == nil {
				f = &figure{name: m[1], unit: fields[i+1]}
				all = append(all, f)
			}
			f.rounds = append(f.rounds, value)
		}
	}
	return all
}

func find(all []*figure, name, unit string) *figure {
	for _, f := range all {
		if f.name == name && f.unit == unit {
			return f
		}
	}
	return nil
}

// host is what the figures were measured on.
type host struct {
	cpu  string
	free int // kB
}

var (
	cpuModel  = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	freeSpace = regexp.MustCompile(`(?m)^MemAvailable:\s+(\d+) kB$`)
)

// machine looks at the machine, where it can: what is unknown stays empty.
func machine() host {
	m := host{cpu: runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := cpuModel.FindSubmatch(text); found != nil {
			m.cpu = string(found[1])
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if found := freeSpace.FindSubmatch(text); found != nil {
			m.free, _ = strconv.Atoi(string(found[1]))
		}
	}
	return m
}
