package machine

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestStatCountsTheChildrenThatEnded(t *testing.T) {
	got, err := parseStat("42 (a (odd) name) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 9 0 12345 1000 100")
	if err != nil {
		t.Fatal(err)
	}
	if want := (process{id: 42, parent: 7, used: 1240 * time.Millisecond}); got != want {
		t.Errorf("parsed %+v, want %+v", got, want)
	}
	for _, line := range []string{"42 name S 7", "42 (name) S 7 1", "x (name) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1"} {
		if p, err := parseStat(line); err == nil {
			t.Errorf("%q was read as %+v", line, p)
		}
	}
}

func TestUsedCountsWhatAProcessDid(t *testing.T) {
	ids := []int{os.Getpid()}
	before, err := Used(ids)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; {
		used, err := Used(ids)
		if err != nil {
			t.Fatal(err)
		}
		if used > before {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("10 s of looking at the processes took no processor time beside the %v before", before)
		}
	}
}

func TestFlushIsMeasured(t *testing.T) {
	f, err := MeasureFlush(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if f.P50 <= 0 || f.P99 < f.P50 {
		t.Errorf("a flush took %v, and one in a hundred %v", f.P50, f.P99)
	}
}

func TestWrittenCountsWhatGoesToTheDisk(t *testing.T) {
	ids := []int{os.Getpid()}
	before, err := Written(ids)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	const size = 1 << 20
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	after, err := Written(ids)
	if err != nil {
		t.Fatal(err)
	}
	if after-before < size {
		t.Errorf("%d bytes of %d were counted", after-before, size)
	}
}

func TestFileIsNamedAfterTheMachine(t *testing.T) {
	m := Machine{CPU: "Some(R) CPU @ 2.00GHz", Cores: 2}
	if got, want := m.File(), "some-r-cpu-2-00ghz-2-cores.json"; got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
}
