// Package pagepart writes parts of a page that several programs write: each its own,
// between two comments that name it, and the rest stays as it is. Their numbers look
// alike.
package pagepart

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Write puts text into the page at path as the part of that name: in the place of the
// part of that name, or at the end. A page that is not there begins with it.
func Write(path, name string, text []byte) error {
	page, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the page: %w", err)
	}
	changed, err := put(page, name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, changed, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func put(page []byte, name string, text []byte) ([]byte, error) {
	begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- end of "+name+" -->\n")
	part := bytes.Join([][]byte{begin, bytes.TrimRight(text, "\n"), []byte("\n"), end}, nil)
	from, to := bytes.Index(page, begin), bytes.Index(page, end)
	switch {
	case from < 0 && to < 0 && len(page) == 0:
		return part, nil
	case from < 0 && to < 0:
		return bytes.Join([][]byte{bytes.TrimRight(page, "\n"), part}, []byte("\n\n")), nil
	case from < 0 || to < from:
		return nil, fmt.Errorf("the part %s does not both begin and end", name)
	}
	return bytes.Join([][]byte{page[:from], part, page[to+len(end):]}, nil), nil
}

// Thousands prints 1234567.8 as 1,234,568.
func Thousands(v float64) string {
	digits := fmt.Sprintf("%.0f", v)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
