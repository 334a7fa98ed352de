package admission_test

import (
	"cmp"
	"os"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/logline"
)

// TestAgreeOnALog decides a log anew with both cores, from its first entry on. It is
// that of a node which served a few calls, or the one that ADMIT_LOG names: what
// `admitd log` prints.
func TestAgreeOnALog(t *testing.T) {
	f, err := os.Open(cmp.Or(os.Getenv("ADMIT_LOG"), "testdata/log.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	a := &agreement{t: quiet{t}, core: admission.New(), n: &naive{}, seen: admission.NewTally()}
	entries := 0
	err = logline.Read(f, func(l logline.Line) error {
		entries++
		a.step(l.Entry, time.Second)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries < 10 {
		t.Errorf("the log has %d entries", entries)
	}
}

// quiet keeps what is only of interest for a run of a few entries.
type quiet struct{ *testing.T }

func (quiet) Logf(string, ...any) {}
