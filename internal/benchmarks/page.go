package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/admitd/admit/internal/pagepart"
)

// The loads of admission/cost_bench_test.go, in the order of their tables.
var (
	backlogs = []int{1e3, 1e4, 1e5, 1e6, 1e7}
	crowds   = []int{10, 100, 1e3, 1e4, 1e5}
)

func loadName(entries, tenants int, blocked bool) string {
	return fmt.Sprintf("Cost/entries=%d/tenants=%d/blocked=%v", entries, tenants, blocked)
}

// page is what is written, with the figures that it is written from.
type page struct {
	io.Writer
	figures []*figure
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func writePage(w io.Writer, m host, rounds int, figures []*figure) {
	p := &page{w, figures}
	p.say("# What the core costs\n")
	p.say("Written by `make benchmarks`; nothing here is typed by hand. %s, %d cores, %s, %s/%s.", m.cpu, runtime.NumCPU(),
		runtime.Version(), runtime.GOOS, runtime.GOARCH)
	p.say("Each figure is the median of %d rounds of one run, with the least and the greatest in brackets. The core alone is", rounds)
	p.say("measured: no log, no disk, no network. What is measured stands in `admission/cost_bench_test.go`.\n")
	p.say("A pool with two lanes, a provider's bucket and a TENANT bucket. *Acquire + Release* is one log entry for each;")
	p.say("*NextDue of 10* one entry that claims ten due entries of the low lane. *Growth* is the cost by that of the")
	p.say("table's first row; *bar* is how much the logarithm of the size has grown, the most that is promised.\n")

	p.say("## Grants against the backlog\n\nAll entries are due, of 1000 tenants.\n")
	p.table("entries", backlogs, func(n int) string { return loadName(n, 1000, false) })
	p.say("\n## Grants against the tenants\n\n100,000 entries are due, dealt out evenly.\n")
	p.table("tenants", crowds, func(n int) string { return loadName(1e5, n, false) })
	p.say("\n## Grants with 99 %% of the tenants blocked\n\nThe same, but 99 of 100 tenants are at their cap, with entries due.\n")
	p.table("tenants", crowds[1:], func(n int) string { return loadName(1e5, n, true) })

	p.say("\n## The longest entry\n\nThe longest `Apply` of all that it takes, each with a NextDue and an Acquire beside where that is said.\n")
	p.say("| what happens | longest | bar | |\n|---|---|---|---|")
	for _, row := range []struct {
		what, name string
		bar        float64
	}{
		{"1,000,000 entries of one route come due at one instant, polled meanwhile", "LongestDue/one-route", 5},
		{"the same in 10,000 routes of one tenant", "LongestDue/many-routes", 5},
		{"the same of 100,000 tenants", "LongestDue/many-tenants", 5},
		{"10,000 permits expire at one instant", "LongestExpiry/claims=false", 10},
		{"the same with claims, whose entries return", "LongestExpiry/claims=true", 10},
		{"10,000 waits for a slot end at one instant", "LongestWait/locks=false", 10},
		{"the same behind locks of their tenants", "LongestWait/locks=true", 10},
	} {
		p.bar(row.what, p.figure(row.name, "longest-ms"), 1, row.bar)
	}
	for _, n := range backlogs[3:] {
		p.bar(fmt.Sprintf("`Snapshot()` of %s entries", pagepart.Thousands(float64(n))), p.figure(loadName(n, 1000, false)+"/snapshot", "ns/op"), 1e-6, 5)
	}
	p.say("\n## Allocations\n")
	if f := p.figure(loadName(1e3, 1000, false)+"/acquire", "allocs/op"); f != nil {
		p.say("An uncontended Acquire and its Release make %.0f allocations together. `TestAcquireAllocatesLittle` fails if an", f.median())
		p.say("Acquire alone makes more than 4.")
	}
}

// table writes the costs for each size.
func (p *page) table(what string, sizes []int, name func(int) string) {
	p.say("| %s | Acquire + Release | growth | NextDue of 10 | growth | bar | |\n|---|---|---|---|---|---|---|", what)
	for _, n := range sizes {
		acquire, poll := p.figure(name(n)+"/acquire", "ns/op"), p.figure(name(n)+"/nextdue10", "ns/op")
		first, firstPoll := p.figure(name(sizes[0])+"/acquire", "ns/op"), p.figure(name(sizes[0])+"/nextdue10", "ns/op")
		if acquire == nil || poll == nil || first == nil || firstPoll == nil {
			p.say("| %s | not measured | | | | | |", pagepart.Thousands(float64(n)))
			continue
		}
		growth, growthPoll := acquire.median()/first.median(), poll.median()/firstPoll.median()
		bar := math.Log(float64(n)) / math.Log(float64(sizes[0]))
		p.say("| %s | %s | %.2f | %s | %.2f | %.2f | %s |", pagepart.Thousands(float64(n)), acquire.in(1e-3, "µs"), growth,
			poll.in(1e-3, "µs"), growthPoll, bar, verdict(max(growth, growthPoll) <= bar))
	}
}

// bar writes a figure beside what it may be, both in milliseconds.
func (p *page) bar(what string, f *figure, scale, most float64) {
	if f == nil {
		p.say("| %s | not measured | %.0f ms | |", what, most)
		return
	}
	p.say("| %s | %s | %.0f ms | %s |", what, f.in(scale, "ms"), most, verdict(f.median()*scale <= most))
}

func verdict(met bool) string {
	if met {
		return "met"
	}
	return "**missed**"
}

func (p *page) figure(name, unit string) *figure { return find(p.figures, name, unit) }

func (f *figure) median() float64 {
	sorted := slices.Sorted(slices.Values(f.rounds))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// in prints the median and the spread in another unit.
func (f *figure) in(scale float64, unit string) string {
	return fmt.Sprintf("%.3g %s (%.3g–%.3g)", f.median()*scale, unit, slices.Min(f.rounds)*scale, slices.Max(f.rounds)*scale)
}
