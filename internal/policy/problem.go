package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong in a file.
type Problem struct {
	// Line and Column count from 1.
	Line, Column int
	// Field is the path of the field at fault, empty for the file as a whole.
	Field string
	// Message says what was expected and what was found.
	Message string
	// UnknownKey is the key, where the problem is that there is no such key.
	UnknownKey string
}

// FileError is everything that is wrong in a file, in the order of the file.
type FileError struct {
	Name     string
	Problems []Problem
}

// Error returns a line for each problem: `file:line:column: field: message`.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		where := fmt.Sprintf("%s:%d:%d: ", e.Name, p.Line, p.Column)
		if p.Field != "" {
			where += p.Field + ": "
		}
		lines[i] = where + p.Message
	}
	return strings.Join(lines, "\n")
}

// NewFileError returns the problems as a *FileError in the order of the file, or
// nil if there are none.
func NewFileError(name string, problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &FileError{Name: name, Problems: problems}
}

// Unknown says that nothing of a kind has that name, and which one may have been
// meant or which there are. The second result is the one that was meant, or
// empty.
func Unknown(kind, name string, known []string) (message, meant string) {
	best := len(name)/3 + 1
	for _, k := range known {
		if d := distance(name, k); d <= best {
			best, meant = d-1, k
		}
	}
	if meant != "" {
		return fmt.Sprintf("unknown %s %q, did you mean %q?", kind, name, meant), meant
	}
	return fmt.Sprintf("unknown %s %q, expected one of %s", kind, name, strings.Join(known, ", ")), ""
}

// distance counts the characters to insert, delete or replace on the way from
// a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
