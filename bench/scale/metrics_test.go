package scale

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLongestApplyIsTheLastBucketThatHasAny(t *testing.T) {
	const text = `admit_apply_seconds_bucket{le="0.001"} 7
admit_apply_seconds_bucket{le="0.005"} 9
admit_apply_seconds_bucket{le="0.01"} 9
admit_apply_seconds_bucket{le="+Inf"} 9
admit_apply_seconds_count 9
`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer s.Close()
	if got, err := longestApply(t.Context(), strings.TrimPrefix(s.URL, "http://")); err != nil || got != 0.005 {
		t.Errorf("got %v (%v), want 0.005", got, err)
	}
}
