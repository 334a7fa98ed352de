package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/admitd/admit/internal/policy"
)

// The policies of docs/envoy.md load, and its configuration becomes what it says.
func TestTheEnvoyPageIsTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/envoy.md")
	if err != nil {
		t.Fatal(err)
	}
	policies, imported := 0, ""
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1) {
		switch text := string(block[1]); {
		case strings.HasPrefix(text, "domain:"):
			var out, errs bytes.Buffer
			if code := run([]string{"policy", "import", "envoy-ratelimit", "-"}, strings.NewReader(text), &out, &errs); code != exitOK {
				t.Fatalf("it is not imported: %d, %s", code, errs.String())
			}
			imported = out.String()
		case strings.HasPrefix(text, "pools:"):
			policies++
			if _, _, err := policy.Load("docs/envoy.md", block[1]); err != nil {
				t.Error(err)
			}
			if imported != "" && text != imported {
				t.Errorf("it becomes\n%s", imported)
			}
		}
	}
	if policies != 2 || imported == "" {
		t.Errorf("the page has %d policies, want 2 and a configuration", policies)
	}
}
