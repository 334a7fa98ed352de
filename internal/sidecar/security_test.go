package sidecar

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A token that is replaced is sent from then on; one that is bad is not.
func TestATokenIsReadAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	at := time.Now()
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second) // a file system may tell no less
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	tok := &token{path: path}
	if _, err := tok.GetRequestMetadata(t.Context()); err == nil {
		t.Error("a token was read that is not there")
	}
	for _, step := range []struct{ text, want string }{
		{"one\n", "Bearer one"}, {"two", "Bearer two"}, {"not a token", "Bearer two"}, {"", "Bearer two"}, {"three", "Bearer three"},
	} {
		write(step.text)
		got, err := tok.GetRequestMetadata(t.Context())
		if err != nil || got["authorization"] != step.want {
			t.Errorf("%q is sent as %v, %v", step.text, got, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := tok.GetRequestMetadata(t.Context()); err != nil || got["authorization"] != "Bearer three" {
		t.Errorf("after it was removed %v is sent, %v", got, err)
	}
}

// What is wrong with the files is told with their keys.
func TestFilesThatCannotBeUsed(t *testing.T) {
	cfg := Config{Upstream: []string{"127.0.0.1:1"}, CACert: filepath.Join(t.TempDir(), "none")}
	if err := Check(cfg); err == nil || err.Error()[:9] != "ca_cert: " {
		t.Errorf("got %v", err)
	}
}
