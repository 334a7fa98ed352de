package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/internal/logline"
)

// bothDecide is how much of a log both cores decide: the simple one looks at all that
// there is with every entry.
const bothDecide = 1000

// bothCores has the core's own test decide the beginning of a log once more, with the
// simple core beside the real one.
func (tr *trial) bothCores(log []logline.Line) {
	tr.t.Helper()
	first := log[:min(len(log), bothDecide)]
	path := filepath.Join(tr.dir, "log.json")
	if err := writeLog(path, first); err != nil {
		tr.t.Fatalf("write the log: %v", err)
	}
	cmd := exec.Command(harness.TestBinary(tr.t, "admission"), "-test.v", "-test.run", "^TestAgreeOnALog$")
	cmd.Dir = filepath.Join(harness.Root(tr.t), "admission")
	cmd.Env = append(os.Environ(), "ADMIT_LOG="+path)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	agree := err == nil && strings.Contains(string(out), "--- PASS: TestAgreeOnALog")
	harness.Figure(tr.t, "both cores agree on the first %d of %d entries: %t, in %v",
		len(first), len(log), agree, time.Since(began).Round(time.Millisecond))
	if !agree {
		tr.t.Errorf("both cores decide %s (%v):\n%s", path, err, out[max(0, len(out)-4000):])
	}
}

func writeLog(path string, log []logline.Line) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, l := range log {
		if err := logline.Write(w, l); err != nil {
			return err
		}
	}
	return w.Flush()
}
