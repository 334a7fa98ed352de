package main

import (
	"bytes"
	"strings"
	"testing"
)

const output = `goos: linux
BenchmarkCost/entries=1000/tenants=1000/blocked=false/acquire-2 	 10	 1000 ns/op	 1969 B/op	 22 allocs/op
BenchmarkCost/entries=1000/tenants=1000/blocked=false/acquire-2 	 10	 3000 ns/op	 1969 B/op	 22 allocs/op
BenchmarkCost/entries=1000/tenants=1000/blocked=false/acquire-2 	 10	 2000 ns/op	 1969 B/op	 22 allocs/op
BenchmarkCost/entries=1000/tenants=1000/blocked=false/nextdue10-2 	 10	 4000 ns/op
BenchmarkCost/entries=10000/tenants=1000/blocked=false/acquire-2 	 10	 2400 ns/op
BenchmarkCost/entries=10000/tenants=1000/blocked=false/nextdue10-2 	 10	 6000 ns/op
BenchmarkLongestDue/one-route-2 	 1	 4.5 longest-ms
BenchmarkLongestDue/many-routes-2 	 1	 5.5 longest-ms
PASS
`

func TestPageSaysWhatWasMeasured(t *testing.T) {
	var page bytes.Buffer
	writePage(&page, host{cpu: "some CPU"}, 3, parse(output))
	for _, want := range []string{
		"some CPU",
		"| 1,000 | 2 µs (1–3) | 1.00 | 4 µs (4–4) | 1.00 | 1.00 | met |",
		"| 10,000 | 2.4 µs (2.4–2.4) | 1.20 | 6 µs (6–6) | 1.50 | 1.33 | **missed** |",
		"| 100,000 | not measured |",
		"one route come due at one instant, polled meanwhile | 4.5 ms (4.5–4.5) | 5 ms | met |",
		"10,000 routes of one tenant | 5.5 ms (5.5–5.5) | 5 ms | **missed** |",
		"make 22 allocations together",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.String())
		}
	}
}

func TestMedianOfEvenRounds(t *testing.T) {
	f := figure{rounds: []float64{4, 1, 2, 10}}
	if got := f.median(); got != 3 {
		t.Errorf("median %v, want 3", got)
	}
}
