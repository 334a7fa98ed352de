package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// mutant is a one-line breakage.
type mutant struct {
	name, file string
	was, is    string
}

// readMutants reads the list: "= name: file", "- line", "+ line" for each.
func readMutants(path string) ([]mutant, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mutant
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		mark, text, _ := strings.Cut(lines.Text(), " ")
		if mark == "=" {
			name, file, ok := strings.Cut(text, ": ")
			if !ok {
				return nil, fmt.Errorf("%s:%d: want a name and a file", path, n)
			}
			all = append(all, mutant{name: name, file: file})
			continue
		}
		if len(all) == 0 || mark == "" {
			continue
		}
		switch m := &all[len(all)-1]; mark {
		case "-":
			m.was = text
		case "+":
			m.is = text
		default:
			return nil, fmt.Errorf("%s:%d: begins with %q", path, n, mark)
		}
	}
	return all, lines.Err()
}

// apply returns the source with the mutant's line broken. The line must be there
// once, and differ.
func (m *mutant) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at, found := 0, 0
	for i, line := range lines {
		if strings.TrimSpace(line) == m.was {
			at, found = i, found+1
		}
	}
	if found != 1 || m.was == "" || m.was == m.is {
		return "", fmt.Errorf("%s: the line to break is there %d times in %s", m.name, found, m.file)
	}
	lines[at] = m.is
	return strings.Join(lines, "\n"), nil
}
