package main

import (
	"reflect"
	"strings"
	"testing"
)

func TestTheBaselineIsReadAsItIsWritten(t *testing.T) {
	want := costs{place: "go1.26 linux/amd64 on a processor", of: map[string]cost{
		"BenchmarkAcquire/tenants=100": {allocs: 3, instructions: 25_000},
		"BenchmarkDigest":              {instructions: 300_000},
	}}
	if got, err := parse(want.String()); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %v (%v), want %v", got, err, want)
	}
	for _, text := range []string{"", "# go1.26\n", "BenchmarkDigest 3\n"} {
		if got, err := parse(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

func TestEveryDifferenceIsTold(t *testing.T) {
	then := costs{place: "here", of: map[string]cost{
		"same": {1, 1000}, "allocates": {1, 1000}, "slower": {1, 1000}, "faster": {1, 1000}, "gone": {1, 1000},
		"nearly": {1, 1000},
	}}
	now := costs{place: "here", of: map[string]cost{
		"same": {1, 1000}, "allocates": {2, 1000}, "slower": {1, 1051}, "faster": {1, 949}, "new": {1, 1000},
		"nearly": {1, 1050},
	}}
	told := compare(then, now)
	for _, name := range []string{"allocates", "slower", "faster", "gone", "new"} {
		if told == nil || !strings.Contains(told.Error(), name) {
			t.Errorf("%q is not in %v", name, told)
		}
	}
	for _, name := range []string{"same", "nearly"} {
		if told != nil && strings.Contains(told.Error(), name) {
			t.Errorf("%q is in %v", name, told)
		}
	}
}

func TestInstructionsOfAnotherPlaceAreNotCompared(t *testing.T) {
	then := costs{place: "here", of: map[string]cost{"b": {1, 1000}}}
	for place, why := range map[string]string{"there": "here", "": "valgrind"} {
		now := costs{place: place, of: map[string]cost{"b": {1, 9000}}}
		if got := incomparable(then, now); !strings.Contains(got, why) {
			t.Errorf("from %q, %q is told and not %q", place, got, why)
		}
		if err := compare(then, now); err != nil {
			t.Errorf("from %q: %v", place, err)
		}
		now.of["b"] = cost{2, 9000}
		if compare(then, now) == nil {
			t.Errorf("from %q, another allocation is not told", place)
		}
	}
}

func TestNumbersAreReadFromWhatIsPrinted(t *testing.T) {
	const out = "BenchmarkAcquire/tenants=100-2  2000  4562 ns/op  1170 B/op  3 allocs/op\n==17== Collected : 5046\n"
	if n, err := number(allocsLine, []byte(out), "b"); n != 3 || err != nil {
		t.Errorf("%d allocations (%v), want 3", n, err)
	}
	if n, err := number(collectedLine, []byte(out), "b"); n != 5046 || err != nil {
		t.Errorf("%d instructions (%v), want 5046", n, err)
	}
	if n, err := number(allocsLine, []byte("PASS\n"), "b"); err == nil {
		t.Errorf("nothing was taken for %d allocations", n)
	}
}
