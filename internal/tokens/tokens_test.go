package tokens

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T, text string) (*Set, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file)
}

func TestHoldersAreKnownByTheirTokens(t *testing.T) {
	ci, next, other := New(), New(), New()
	s, err := load(t, "# who may call\n\n"+Line("ci", ci)+Line("team/mail", other)+"  "+Line("ci", next))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{
		ci: "ci", next: "ci", other: "team/mail",
		New(): "", "": "", ci + "x": "", ci[:len(ci)-1]: "", strings.ToUpper(ci): "",
	} {
		if name, ok := s.Holder(token); name != want || ok != (want != "") {
			t.Errorf("%q: got %q, %t, want %q", token, name, ok, want)
		}
	}
}

// The file is of no use to who reads it: neither has it the token, nor is what it
// has one.
func TestTheFileDoesNotGiveTokensAway(t *testing.T) {
	token := New()
	line := Line("ci", token)
	if strings.Contains(line, token) {
		t.Error("the token stands in the file")
	}
	s, err := load(t, line)
	if err != nil {
		t.Fatal(err)
	}
	_, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
	for _, guess := range []string{hash, strings.TrimPrefix(hash, hashPrefix)} {
		if _, ok := s.Holder(guess); ok {
			t.Errorf("%q is a token", guess)
		}
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	secret := New()
	for text, want := range map[string]string{
		"":                     "has 0 tokens",
		"# none\n":             "has 0 tokens",
		"ci\n":                 ":1: expected a name and sha256:HASH",
		"ci " + secret + "\n":  ":1: the second word is not sha256:",
		"\nci sha256:12\n":     ":2: the second word is not sha256:",
		"c!i " + Line("", "x"): `"c!i" is no name`,
		"ci sha256:12 x\n":     "expected a name",
		strings.Repeat(Line("a", "b"), maxTokens+1): "has 1001 tokens",
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Error("the error repeats a token")
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}
