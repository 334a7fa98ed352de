package server

import (
	"fmt"

	"github.com/admitd/admit/admission"
)

// fieldError is a request that breaks rules: all of them, not only the first.
type fieldError struct {
	reason     admission.ErrorReason
	violations []admission.Violation
}

// Error names the first violation and how many there are.
func (e *fieldError) Error() string {
	first := e.violations[0]
	text := first.Message
	if first.Field != "" {
		text = first.Field + ": " + text
	}
	if more := len(e.violations) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// checker collects what is wrong with a request. Its rules return the value
// that they checked, converted; after a violation the value is of no use and
// must not be acted upon.
type checker struct {
	// path leads from the request to the message at hand, "requests[3]." or
	// nothing.
	path  string
	found *[]admission.Violation
}

func newChecker() checker { return checker{found: new([]admission.Violation)} }

// in returns a checker of the i-th message in a repeated field, which adds to
// the same findings.
func (c checker) in(field string, i int) checker {
	return checker{path: fmt.Sprintf("%s%s[%d].", c.path, field, i), found: c.found}
}

func (c checker) fail(field, format string, args ...any) {
	*c.found = append(*c.found, admission.Violation{Field: c.path + field, Message: fmt.Sprintf(format, args...)})
}

// err returns all findings as one error, or nil.
func (c checker) err() error {
	if len(*c.found) == 0 {
		return nil
	}
	return &fieldError{reason: admission.InvalidField, violations: *c.found}
}
