// Package result is what was measured, as it is kept: a JSON file for the machine,
// in groups that were each measured in one go.
package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/admitd/admit/bench/machine"
)

// File is all that was measured on one machine.
type File struct {
	Machine machine.Machine `json:"machine"`
	Groups  []Group         `json:"groups"`
}

// Group is rows that were measured in one go, with the same servers.
type Group struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Text says what is compared and how the systems are set.
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	// Rounds is how often each figure was measured, Seconds how long each time.
	Rounds  int     `json:"rounds"`
	Seconds float64 `json:"seconds"`
	// Before is the load average when it began: the machine should be idle.
	Before float64 `json:"load_before"`
	// Flush is how fast the disk was then.
	Flush    machine.Flush `json:"flush"`
	Versions []Version     `json:"versions"`
	Rows     []Row         `json:"rows"`
	Checks   []Check       `json:"checks"`
	Facts    []Fact        `json:"facts,omitempty"`
	// Failed says why it was not measured to its end. Empty means that it was.
	Failed string `json:"failed,omitempty"`
}

// Version is what a system says it is.
type Version struct {
	System  string `json:"system"`
	Version string `json:"version"`
}

// Row is one load on two systems, by turns.
type Row struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Want is the least ratio of rates, admit's by the peer's, that is wanted, Stretch
	// what is hoped for. With MostP50 it is instead the greatest ratio of the medians
	// of latency. 0 means that none is set.
	Want    float64 `json:"want,omitempty"`
	Stretch float64 `json:"stretch,omitempty"`
	MostP50 float64 `json:"most_p50,omitempty"`
	Admit   Side    `json:"admit"`
	Peer    Side    `json:"peer"`
}

// Side is one system's part of a row.
type Side struct {
	System string `json:"system"`
	// Does is the operation.
	Does string `json:"does"`
	// Closed are the rounds of callers that ask again when answered, Open those at
	// half the rate of the median of Closed.
	Closed []Sample `json:"closed"`
	Open   []Sample `json:"open"`
}

// Sample is one round.
type Sample struct {
	Requests int64   `json:"requests"`
	Calls    int64   `json:"calls"`
	Failed   int64   `json:"failed"`
	Failure  string  `json:"failure,omitempty"`
	Seconds  float64 `json:"seconds"`
	// ServerCPU and LoadCPU are processor seconds: of the servers, and of the process
	// that asks.
	ServerCPU float64 `json:"server_cpu_seconds"`
	LoadCPU   float64 `json:"load_cpu_seconds"`
	// P50 and P99 are latencies of calls, in microseconds.
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
}

// Check is something that must hold of a run, whatever its figures.
type Check struct {
	What string `json:"what"`
	// Wrong says what does not hold. Empty means that all is well.
	Wrong string `json:"wrong,omitempty"`
}

// Fact is a figure of its own, beside what is wanted of it.
type Fact struct {
	What string `json:"what"`
	// Rounds are the measurements, in Unit.
	Rounds []float64 `json:"rounds"`
	Unit   string    `json:"unit"`
	// Most and Least are bounds that are wanted of the median. Absent means none.
	Most  *float64 `json:"most,omitempty"`
	Least *float64 `json:"least,omitempty"`
}

// Read reads the file, or returns an empty one where there is none.
func Read(path string) (File, error) {
	var f File
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("read the results: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		return f, fmt.Errorf("read the results in %s: %w", path, err)
	}
	return f, nil
}

// Write writes the file.
func (f File) Write(path string) error {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// Put takes the group in, in the place of an older one of its id.
func (f *File) Put(g Group) {
	if i := slices.IndexFunc(f.Groups, func(old Group) bool { return old.ID == g.ID }); i >= 0 {
		f.Groups[i] = g
		return
	}
	f.Groups = append(f.Groups, g)
}
