// Package tokens knows the bearer tokens with which callers prove who they are.
//
// A file holds who has a token and the token's SHA-256, never the token itself,
// so that who reads the file can't call. A token is 256 random bits, and so needs
// no slow hash.
package tokens

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
)

const (
	// prefix lets people and scanners see what a token is for.
	prefix = "admit_"
	// hashPrefix says how what follows was made.
	hashPrefix = "sha256:"
	// maxTokens bounds what each call is compared with.
	maxTokens = 1000
)

var validName = regexp.MustCompile(`^[A-Za-z0-9._@/-]{1,128}$`)

// CheckName says what is wrong with a name in a file, if anything.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is no name: letters, digits and ._@/-, 128 at most", name)
	}
	return nil
}

// New makes up a token.
func New() string {
	var b [sha256.Size]byte
	rand.Read(b[:]) // never fails
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Line is the line of a file that gives a token to name.
func Line(name, token string) string {
	sum := sha256.Sum256([]byte(token))
	return name + " " + hashPrefix + hex.EncodeToString(sum[:]) + "\n"
}

// Set is the tokens of one file.
type Set struct{ entries []entry }

type entry struct {
	name string
	sum  [sha256.Size]byte
}

// Load reads a file: a line for each token, its holder's name and `sha256:` with
// the hash in hex. Lines that are empty or begin with # say nothing. A holder may
// have several tokens, so that one can replace another.
func Load(file string) (*Set, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the tokens: %w", err)
	}
	s := &Set{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		e, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		s.entries = append(s.entries, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if n := len(s.entries); n == 0 || n > maxTokens {
		return nil, fmt.Errorf("%s has %d tokens, must have 1 to %d", file, n, maxTokens)
	}
	return s, nil
}

func parse(line string) (e entry, err error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return e, fmt.Errorf("expected a name and %sHASH", hashPrefix)
	}
	if err := CheckName(fields[0]); err != nil {
		return e, err
	}
	text, ok := strings.CutPrefix(fields[1], hashPrefix)
	sum, err := hex.DecodeString(text)
	if !ok || err != nil || len(sum) != len(e.sum) {
		// What stands there may be a token, so it is not repeated.
		return e, fmt.Errorf("the second word is not %s and %d hex digits", hashPrefix, 2*len(e.sum))
	}
	return entry{fields[0], [sha256.Size]byte(sum)}, nil
}

// Holder returns who has a token. How long it takes tells nothing of the tokens
// that there are.
func (s *Set) Holder(token string) (name string, ok bool) {
	sum := sha256.Sum256([]byte(token))
	for _, e := range s.entries {
		if subtle.ConstantTimeCompare(sum[:], e.sum[:]) == 1 {
			name, ok = e.name, true
		}
	}
	return name, ok
}
