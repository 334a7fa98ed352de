package scenario_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/admitd/admit/internal/scenario"
)

// Every test of every file passes.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 7 {
		t.Fatalf("found %d files, error %v", len(files), err)
	}
	for _, file := range files {
		for _, result := range read(t, file).Run() {
			t.Run(filepath.Base(file)+": "+result.Test, func(t *testing.T) {
				if len(result.Mismatches) > 0 {
					t.Error(lines(result.Mismatches))
				}
			})
		}
	}
}

// Each file of testdata/invalid begins with the errors it must draw, as comments
// without the file's name.
func TestInvalidFiles(t *testing.T) {
	for _, file := range golden(t, "testdata/invalid/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, want := commented(t, file)
			_, err := scenario.Parse("f.yaml", data)
			if err == nil {
				t.Fatal("parses, want errors")
			}
			compare(t, strings.Split(err.Error(), "\n"), want)
		})
	}
}

// Each file of testdata/mismatch begins with the lines it must draw when run.
func TestMismatches(t *testing.T) {
	for _, file := range golden(t, "testdata/mismatch/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, want := commented(t, file)
			f, err := scenario.Parse("f.yaml", data)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, result := range f.Run() {
				for _, m := range result.Mismatches {
					got = append(got, m.String())
				}
			}
			compare(t, got, want)
		})
	}
}

func golden(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s, error %v", pattern, err)
	}
	return files
}

func read(t *testing.T, file string) *scenario.File {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := scenario.Parse(filepath.Base(file), data)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func commented(t *testing.T, file string) (data []byte, want []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		expected, isComment := strings.CutPrefix(line, "# ")
		if !isComment {
			break
		}
		want = append(want, "f.yaml:"+strings.TrimSpace(expected))
	}
	return data, want
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func lines(mismatches []scenario.Mismatch) string {
	out := make([]string, len(mismatches))
	for i, m := range mismatches {
		out[i] = m.String()
	}
	return strings.Join(out, "\n")
}
