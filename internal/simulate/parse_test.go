package simulate

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

var update = flag.Bool("update", false, "write what tests compare with")

func loadPolicy(t testing.TB, data []byte) admission.Policy {
	t.Helper()
	_, core, err := policy.Load("policy.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Each file of testdata/invalid draws the errors in the .txt beside it.
func TestInvalidFiles(t *testing.T) {
	core := loadPolicy(t, readFile(t, "testdata/policy.yaml"))
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Parse("w.yaml", readFile(t, file), core)
			if err == nil {
				t.Fatal("parses, want errors")
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".txt", err.Error()+"\n")
		})
	}
}

// golden compares a text with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want := string(readFile(t, file)); got != want {
		t.Errorf("got\n%s\nwant as in %s\n%s", got, file, want)
	}
}
