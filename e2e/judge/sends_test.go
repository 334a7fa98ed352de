package judge

import (
	"slices"
	"testing"
	"time"
)

func TestTallySends(t *testing.T) {
	at := time.Unix(1000, 0)
	due := map[string]time.Time{"/a/1": at, "/a/2": at, "/a/3": at}
	s := TallySends([]Request{
		{At: at.Add(1 * ms), Status: 200, Path: "/a/1"},
		{At: at.Add(2 * ms), Status: 429, Path: "/a/2"},
		{At: at.Add(3 * ms), Status: 429, Path: "/a/3"},
		{At: at.Add(4 * ms), Status: 200, Path: "/a/2"},
		{At: at.Add(5 * ms), Status: 200, Path: "/a/2"},
		{At: at.Add(6 * ms), Status: 200, Path: "/b/9"},
		{At: at.Add(7 * ms), Status: 500, Path: "/a/3"},
	}, due)
	if s.Refused != 2 || s.Failed != 1 {
		t.Errorf("%d refused and %d failed, want 2 and 1", s.Refused, s.Failed)
	}
	for what, c := range map[string]struct{ got, want []string }{
		"lost":    {s.Lost, []string{"/a/3"}},
		"doubled": {s.Doubled, []string{"/a/2"}},
		"strange": {s.Strange, []string{"/b/9"}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	if got := s.Sent["/a/2"]; !got.Equal(at.Add(4 * ms)) {
		t.Errorf("/a/2 was sent at %v, want the first success", got)
	}
}

func TestPercentile(t *testing.T) {
	var ds []time.Duration
	for i := range 200 {
		ds = append(ds, time.Duration(200-i)*ms)
	}
	for p, want := range map[float64]time.Duration{0: 1 * ms, 0.5: 100 * ms, 0.99: 198 * ms, 1: 200 * ms} {
		if got := Percentile(ds, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}
