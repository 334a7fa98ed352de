package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMutantBreaksOneLine(t *testing.T) {
	const source = "\tif a >= b {\n\t\tc()\n\t}\n\tc()\n"
	for _, test := range []struct {
		was, is, want, err string
	}{
		{"if a >= b {", "if a > b {", "if a > b {\n\t\tc()\n\t}\n\tc()\n", ""},
		{"c()", "", "", "there 2 times"},
		{"d()", "", "", "there 0 times"},
		{"if a >= b {", "if a >= b {", "", "there 1 times"},
	} {
		m := mutant{"name", "file.go", test.was, test.is}
		got, err := m.apply(source)
		switch {
		case test.err == "" && (err != nil || got != test.want):
			t.Errorf("%q: %q, %v", test.was, got, err)
		case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
			t.Errorf("%q: %v, want %q", test.was, err, test.err)
		}
	}
}

// The list names lines that are there, under names that differ.
func TestListFitsTheCore(t *testing.T) {
	all, err := readMutants("mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		seen[m.name] = true
		source, err := os.ReadFile(filepath.Join("../..", m.file))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := m.apply(string(source)); err != nil {
			t.Error(err)
		}
	}
	if len(all) < 20 {
		t.Errorf("%d mutants, want at least 20", len(all))
	}
}

func TestKillerIsNamed(t *testing.T) {
	for out, want := range map[string]string{
		"=== RUN   TestA\n--- PASS: TestA\n=== RUN   TestB\n    --- FAIL: TestB/x (0.00s)\n": "TestB/x",
		"=== RUN   TestA\npanic: runtime error\n":                                            "a crash in TestA",
		"=== RUN   TestA\npanic: test timed out after 3m\n":                                  "the time limit of TestA",
	} {
		if got := killerIn(out); got != want {
			t.Errorf("%q: %q, want %q", out, got, want)
		}
	}
}
