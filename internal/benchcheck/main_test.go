package main

import (
	"io"
	"maps"
	"strings"
	"testing"
)

const output = `BenchmarkAcquire/tenants=100-2         	    2000	      4562 ns/op	    1170 B/op	       3 allocs/op
BenchmarkDigest-2 5000 10 ns/op 0 B/op 0 allocs/op
PASS
`

func TestReadsWhatGoPrintsAndTheBaseline(t *testing.T) {
	want := map[string]int{"BenchmarkAcquire/tenants=100": 3, "BenchmarkDigest": 0}
	for _, text := range []string{output, "BenchmarkAcquire/tenants=100 3 allocs/op\nBenchmarkDigest 0 allocs/op\n"} {
		if got, err := read(text); err != nil || !maps.Equal(got, want) {
			t.Errorf("read %v (%v), want %v", got, err, want)
		}
	}
	if _, err := read("PASS\n"); err == nil {
		t.Error("nothing was taken for benchmarks")
	}
}

func TestEveryDifferenceIsTold(t *testing.T) {
	err := compare(io.Discard, map[string]int{"same": 1, "more": 1, "gone": 1}, map[string]int{"same": 1, "more": 2, "new": 0})
	for _, name := range []string{"more", "gone", "new"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%q is not in %v", name, err)
		}
	}
	if err := compare(io.Discard, map[string]int{"same": 1}, map[string]int{"same": 1}); err != nil {
		t.Error(err)
	}
}
