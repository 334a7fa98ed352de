package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/admitd/admit/bench/result"
)

func TestPageSaysWhatWasMeasured(t *testing.T) {
	f, err := result.Read("testdata/results.json")
	if err != nil {
		t.Fatal(err)
	}
	var page bytes.Buffer
	Write(&page, f)
	for _, want := range []string{
		"some CPU, 2 cores, 16 GB, Linux 6.1, go1.26.",
		"`bench/results/some-cpu-2-cores.json`",
		"## What the wire costs\n\nOne beside the other.\n",
		"2026-11-30; 3 rounds of 5s. admit, 3 nodes (abc) and echo (1). A flush of the disk took 98µs, one in a hundred 2.094ms; the load average before was 0.2.",
		"| 256 callers | **0.50** (0.40–0.67) | ≥ 0.50 (0.65) | met | admit, 3 nodes: Acquire | 10,000 (8,000–12,000) | 1.20 | 120.0 | 512 µs | 2.35 ms |",
		"| | | | | echo: the same | 20,000 (18,000–20,000) | 0.90 | 45.0 |  |  |",
		"| one caller | **2.00** (2.00–2.00) of p50 | ≤ 1.50 | **missed** |",
		"| least | 0.95 | 0.9–0.99 | ≥ 0.9 | met |",
		"| most | 1,234,567 ms | 1,234,567 ms–1,234,567 ms | ≤ 10 ms | **missed** |",
		"| free | 12.3 s | 12.3 s–12.3 s |  |  |",
		"**Wrong**: none is lost: two are.",
		"Checked after the run: all agree; nothing more.",
		"**Failed**, the rest was not measured: no call was answered.",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q:\n%s", want, page.String())
		}
	}
}
