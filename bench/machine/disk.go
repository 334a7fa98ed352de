package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Flush is how long the disk takes to make a write of 4 KiB at a file's end safe.
type Flush struct {
	P50 time.Duration `json:"p50_ns"`
	P99 time.Duration `json:"p99_ns"`
}

const flushes = 200

// MeasureFlush measures it in dir, as a log is written: into space set aside
// before, with fdatasync.
func MeasureFlush(dir string) (Flush, error) {
	f, err := os.Create(filepath.Join(dir, "flush"))
	if err != nil {
		return Flush{}, fmt.Errorf("measure the disk: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	if _, err := f.Write(make([]byte, flushes*len(block))); err != nil {
		return Flush{}, fmt.Errorf("measure the disk: %w", err)
	}
	if err := f.Sync(); err != nil {
		return Flush{}, fmt.Errorf("measure the disk: %w", err)
	}
	var took []time.Duration
	for i := range flushes {
		start := time.Now()
		if _, err := f.WriteAt(block, int64(i*len(block))); err != nil {
			return Flush{}, fmt.Errorf("measure the disk: %w", err)
		}
		if err := syscall.Fdatasync(int(f.Fd())); err != nil {
			return Flush{}, fmt.Errorf("measure the disk: %w", err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	return Flush{P50: took[flushes/2], P99: took[flushes*99/100]}, nil
}

var writtenBytes = regexp.MustCompile(`(?m)^write_bytes: (\d+)$`)

// Written is how many bytes the processes had written to a disk.
func Written(ids []int) (int64, error) {
	var sum int64
	for _, id := range ids {
		file := fmt.Sprintf("/proc/%d/io", id)
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("look at what a process wrote: %w", err)
		}
		found := writtenBytes.FindSubmatch(text)
		if found == nil {
			return 0, fmt.Errorf("%s does not tell what was written", file)
		}
		n, err := strconv.ParseInt(string(found[1]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", file, err)
		}
		sum += n
	}
	return sum, nil
}
