package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/internal/policy"
)

// Each file of testdata/invalid begins with the errors it must draw, as
// comments without the file's name; comments beside are `#:`.
func TestInvalidFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/invalid/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(data)) {
				expected, isComment := strings.CutPrefix(line, "# ")
				if !isComment {
					break
				}
				want = append(want, "f.yaml:"+strings.TrimSpace(expected))
			}
			_, _, err = policy.Load("f.yaml", data)
			if err == nil {
				t.Fatal("loads, want errors")
			}
			if got := err.Error(); got != strings.Join(want, "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

func TestValidFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/valid/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			msg, core, err := policy.Load(file, data)
			if err != nil {
				t.Fatal(err)
			}
			if back := policy.ToProto(core); !proto.Equal(back, msg) {
				t.Errorf("the core's form stands for %v, the file for %v", back, msg)
			}
		})
	}
}

func TestLoadReadsWhatIsWritten(t *testing.T) {
	const file = `{pools: [{name: p, max_active: 4, permit_ttl: 1h30m, buckets: [{name: b, scope: TENANT, capacity: 3, one_shot: true, charge: PERMIT}]}]}`
	_, core, err := policy.Load("p.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	p := core.Pools[0]
	if p.MaxActive != 4 || p.PermitTTL != 90*time.Minute || !p.Buckets[0].PerPermit || !p.Buckets[0].OneShot || p.Buckets[0].Capacity != 3 {
		t.Errorf("got %+v", p)
	}
}

func TestAFileThatIsTooLarge(t *testing.T) {
	data := []byte("pools: []\n#" + strings.Repeat("x", policy.MaxFileBytes))
	_, _, err := policy.Load("big.yaml", data)
	var file *policy.FileError
	if !errors.As(err, &file) || !strings.Contains(err.Error(), "big.yaml:1:1: expected at most 262144 bytes") {
		t.Errorf("got %v", err)
	}
}

// yamlBreak is what YAML takes for the end of a line.
var yamlBreak = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

// Whatever the bytes, Load returns a policy that keeps the rules, or errors that
// have a place in the file.
func FuzzLoad(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*")
	if err != nil || len(files) == 0 {
		f.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		msg, core, err := policy.Load("f.yaml", data)
		if err != nil {
			var file *policy.FileError
			if !errors.As(err, &file) || len(file.Problems) == 0 {
				t.Fatalf("got %v, want a FileError", err)
			}
			lines := len(yamlBreak.FindAllIndex(data, -1)) + 1
			for _, p := range file.Problems {
				if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
					t.Errorf("problem %+v has no place in %d lines", p, lines)
				}
			}
			return
		}
		if found := core.Validate(); len(found) != 0 {
			t.Errorf("loads although %v", found)
		}
		back, violations := policy.FromProto(policy.ToProto(core))
		if len(violations) != 0 || !proto.Equal(policy.ToProto(back), policy.ToProto(core)) {
			t.Errorf("%v does not survive the round trip", msg)
		}
	})
}

// What is hidden by what can't be read is looked for once, not once for each.
func TestAFileOfMistakesIsReadInTime(t *testing.T) {
	const mistakes = 20_000
	file := "pools:\n- &p {name: a}\n" + strings.Repeat("- *p\n", mistakes)
	read := make(chan error, 1)
	go func() {
		_, _, err := policy.Load("p.yaml", []byte(file))
		read <- err
	}()
	select {
	case err := <-read:
		var bad *policy.FileError
		if !errors.As(err, &bad) {
			t.Fatalf("got %v", err)
		}
		if len(bad.Problems) != mistakes {
			t.Errorf("got %d problems of %d", len(bad.Problems), mistakes)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("not read in 20 s")
	}
}
