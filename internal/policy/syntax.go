package policy

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var syntaxLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxProblem places an error of the YAML parser. The parser tells no column
// and a line that counts from 0 or 1 depending on which of its stages failed, so
// the place is that line's first character.
func syntaxProblem(data []byte, err error) Problem {
	head := syntaxLine.FindStringSubmatch(err.Error())
	if head == nil {
		return Problem{Line: 1, Column: 1, Message: "not valid YAML: " + err.Error()}
	}
	message := err.Error()[len(head[0]):]
	if line, column, found := unreadable(data); found && head[1] == "" {
		return Problem{Line: line, Column: column, Message: "not valid YAML: " + message}
	}
	lines := strings.Split(string(data), "\n")
	line, _ := strconv.Atoi(head[1])
	if line == 0 || strings.HasPrefix(message, "did not find expected") {
		line++
	}
	line = min(line, len(lines))
	if strings.Contains(message, "tab character") {
		for line < len(lines) && !strings.Contains(indentation(lines[line-1]), "\t") {
			line++
		}
	}
	column := 1 + len(indentation(lines[line-1]))
	return Problem{Line: line, Column: column, Message: "not valid YAML: " + message}
}

// unreadable returns the place of the first character that YAML does not take,
// in a text that is to be UTF-8. The parser tells none.
func unreadable(data []byte) (line, column int, found bool) {
	line, column = 1, 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			line, column = line+1, 0
		case r == utf8.RuneError && size == 1, unicode.IsControl(r) && !strings.ContainsRune("\t\r\u0085", r):
			return line, column, true
		}
		data = data[size:]
		column++
	}
	return 0, 0, false
}

func indentation(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}
