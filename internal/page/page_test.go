package page

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

func get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestThePageMayLoadNothingFromElsewhere(t *testing.T) {
	w := get("/")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "<title>admit</title>") {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if got := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'; script-src 'self';") {
		t.Errorf("it may load %q", got)
	}
	for name, kind := range map[string]string{"/main.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"} {
		if w := get(name); w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: got %d %s", name, w.Code, w.Header())
		}
	}
	if w := get("/other"); w.Code != http.StatusNotFound {
		t.Errorf("got %d for what is not there", w.Code)
	}
}

// Text from callers could be anything: it is put on the page as text alone.
func TestNothingIsPutOnThePageAsMarkup(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|https?://`)
	err := fs.WalkDir(embedded, "assets", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".js") {
			return err
		}
		text, err := embedded.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if markup.MatchString(strings.ReplaceAll(line, "http://www.w3.org/2000/svg", "")) {
				t.Errorf("%s:%d: %s", path, i+1, line)
			}
			if len(line) > 260 {
				t.Errorf("%s:%d has %d characters", path, i+1, len(line))
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
