package archtest

import (
	"strings"
	"testing"
)

func TestLogKeys(t *testing.T) {
	for line, bad := range map[string]bool{
		`log.Info("granted", "node_id", 1, "term", 2)`: false,
		`s.log.With("forwarded", true)`:                false,
		`log.Warn("odd", "nodeID", 1)`:                 true,
		`s.log.Error("odd", "error", 1, key, 2)`:       true,
		`log.With("Forwarded", true)`:                  true,
		`other.Info("odd", "nodeID", 1)`:               false,
	} {
		found := checkLogKeys(sources{"p/p.go": []byte("package p\nfunc f() {\n" + line + "\n}\n")})
		if (len(found) > 0) != bad || bad && !strings.HasPrefix(found[0], "p/p.go:3: ") {
			t.Errorf("%s: found %q", line, found)
		}
	}
}
