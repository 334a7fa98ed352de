package logging_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/admitd/admit/internal/logging"
)

func TestJSONHasReadableDurations(t *testing.T) {
	var out bytes.Buffer
	log, err := logging.New(&out, "info", "json")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("stopped", "took", 1500*time.Millisecond)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %q", err, out.String())
	}
	if line["took"] != "1.5s" || line["msg"] != "stopped" {
		t.Errorf("got %v", line)
	}
}

func TestLevelHoldsBackWhatIsBelow(t *testing.T) {
	var out bytes.Buffer
	log, err := logging.New(&out, "warn", "text")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.Contains(got, "msg=loud") {
		t.Errorf("got %q", got)
	}
}

func TestUnknownChoicesAreRefused(t *testing.T) {
	for _, c := range []struct{ level, format, want string }{
		{"chatty", "text", "level"},
		{"info", "xml", "format"},
	} {
		if _, err := logging.New(&bytes.Buffer{}, c.level, c.format); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got error %v", c, err)
		}
	}
}
