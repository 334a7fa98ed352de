package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// block is a fenced block of the README.
type block struct {
	line  int // of its first line of content, from 1
	lang  string
	lines []string
}

func blocks(markdown string) []block {
	var all []block
	var open *block
	for i, line := range strings.Split(markdown, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 2, lang: fence}
		case isFence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		}
	}
	return all
}

// command is a line to type, with what the README shows to be printed.
type command struct {
	line int
	text string
	want []string
}

func (b block) commands(t *testing.T) []command {
	t.Helper()
	var all []command
	for i, line := range b.lines {
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, command{line: b.line + i, text: text})
			continue
		}
		if len(all) == 0 {
			t.Fatalf("README.md:%d: output without a command", b.line+i)
		}
		last := &all[len(all)-1]
		last.want = append(last.want, line)
	}
	return all
}

// tokens maps the README's tokens to those of this run.
type tokens map[string]string

var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

// tokenLength is how long permit tokens are.
const tokenLength = 31

// mask takes the tokens out of a line.
func mask(line string) (masked string, found []string) {
	masked = word.ReplaceAllStringFunc(line, func(w string) string {
		if len(w) != tokenLength {
			return w
		}
		found = append(found, w)
		return "TOKEN"
	})
	return masked, found
}

// translate puts this run's tokens into a command.
func (m tokens) translate(command string) (string, error) {
	_, found := mask(command)
	for _, token := range found {
		mine, ok := m[token]
		if !ok {
			return "", fmt.Errorf("the token %s was not printed before", token)
		}
		command = strings.ReplaceAll(command, token, mine)
	}
	return command, nil
}

// compare wants the same lines but for the tokens, of which it learns those that
// are new.
func (m tokens) compare(want, got []string) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d lines are printed, not %d", len(got), len(want))
	}
	for i := range want {
		wantLine, theirs := mask(want[i])
		gotLine, mine := mask(got[i])
		if wantLine != gotLine {
			return fmt.Errorf("line %d is %q", i+1, got[i])
		}
		for j, token := range theirs {
			if known, ok := m[token]; ok && known != mine[j] {
				return fmt.Errorf("line %d has another token than before", i+1)
			}
			m[token] = mine[j]
		}
	}
	return nil
}
