package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestCoreIsPure(t *testing.T) {
	root := moduleRoot(t)
	listed, err := goList(root, "./admission")
	if err != nil {
		t.Fatal(err)
	}
	p := listed[0]
	if len(p.IgnoredGoFiles) > 0 {
		t.Errorf("%q are for some machines only: every replica must run the same core", p.IgnoredGoFiles)
	}
	exports, err := listExports(root, p.Imports...)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, name := range p.GoFiles {
		files = append(files, filepath.Join(p.Dir, name))
	}
	found, err := checkPurity(p.ImportPath, files, exports)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

// want is the comment in testdata that says what a line breaks, in the order of
// the rules' names.
var want = regexp.MustCompile(`want "([^"]+)"`)

// TestPurityBites feeds the rules sources that break them: exactly the lines
// that say so, and for the reason that they say.
func TestPurityBites(t *testing.T) {
	files, err := filepath.Glob("testdata/impure/*.go")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < len(rules) {
		t.Fatalf("%d sources for %d rules", len(files), len(rules))
	}
	exports, err := listExports(".", append(slices.Sorted(maps.Keys(pureImports)),
		"context", "crypto/rand", "hash/maphash", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net",
		"os", "reflect", "regexp", "runtime", "sync", "sync/atomic", "unsafe",
		"google.golang.org/protobuf/proto")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".go"), func(t *testing.T) {
			found, err := checkPurity("bad", []string{file}, exports)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, file, found)
		})
	}
}

func compare(t *testing.T, file string, found []violation) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[int][]string)
	for _, v := range found {
		told[v.pos.Line] = append(told[v.pos.Line], v.rule+": "+v.why)
	}
	for i, line := range strings.Split(string(text), "\n") {
		var wanted []string
		for _, w := range want.FindAllStringSubmatch(line, -1) {
			wanted = append(wanted, w[1])
		}
		if got := told[i+1]; !slices.EqualFunc(got, wanted, strings.Contains) {
			t.Errorf("line %d: got %q, want %q", i+1, got, wanted)
		}
	}
}
