package result

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/admitd/admit/bench/machine"
)

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{7}, 7},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 2, 10}, 3},
	} {
		if got := Median(test.values); got != test.want {
			t.Errorf("the median of %v is %v, want %v", test.values, got, test.want)
		}
	}
}

func TestRatioIsOfMediansAndItsSpreadOfRounds(t *testing.T) {
	got := RatioOf([]float64{10, 30, 20}, []float64{40, 20, 10})
	if want := (Ratio{Median: 1, Least: 0.25, Greatest: 2}); got != want {
		t.Errorf("the ratio is %v, want %v", got, want)
	}
}

func TestSample(t *testing.T) {
	s := Sample{Requests: 1000, Calls: 10, Seconds: 2, ServerCPU: 3}
	if s.Rate() != 500 || s.BusyCores() != 1.5 || s.CPUPerRequest() != 3000 {
		t.Errorf("rate %v, busy cores %v, µs for a request %v; want 500, 1.5, 3000", s.Rate(), s.BusyCores(), s.CPUPerRequest())
	}
}

func TestFileKeepsGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Machine = machine.Machine{CPU: "some CPU", Cores: 2}
	f.Put(Group{ID: "a", Rounds: 1})
	f.Put(Group{ID: "b", Rounds: 3, Flush: machine.Flush{P50: time.Millisecond}})
	f.Put(Group{ID: "a", Rounds: 5, Rows: []Row{{ID: "r", Want: 0.5, Admit: Side{Closed: []Sample{{Requests: 1, Failure: "no"}}}}}})
	if err := f.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, f) {
		t.Errorf("read %v, wrote %v", got, f)
	}
	if len(got.Groups) != 2 || got.Groups[0].Rounds != 5 {
		t.Errorf("a group did not take the place of an older one: %v", got.Groups)
	}
}
