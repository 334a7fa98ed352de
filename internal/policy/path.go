package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// path is a place in a policy: as it is shown, and as its segments joined by a
// character that no segment has, to compare by.
type path struct {
	shown, key string
}

const separator = "\x00"

func (p path) field(name string) path {
	if p.shown == "" {
		return path{name, p.key + separator + name}
	}
	return path{p.shown + "." + name, p.key + separator + name}
}

func (p path) index(i int) path {
	return path{fmt.Sprintf("%s[%d]", p.shown, i), p.key + separator + strconv.Itoa(i)}
}

func (p path) entry(key string) path {
	return path{fmt.Sprintf("%s[%s]", p.shown, key), p.key + separator + key}
}

// parsePath reads a path as the core writes it: `pools[0].categories[otp]`.
func parsePath(shown string) path {
	var key strings.Builder
	for rest := shown; rest != ""; {
		var segment string
		if inside, ok := strings.CutPrefix(rest, "["); ok {
			segment, rest, _ = strings.Cut(inside, "]")
		} else {
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			segment, rest = rest[:end], rest[end:]
		}
		key.WriteString(separator + segment)
	}
	return path{shown, key.String()}
}

// parent returns the key without its last segment, and false for the root.
func parent(key string) (string, bool) {
	i := strings.LastIndex(key, separator)
	if i < 0 {
		return "", false
	}
	return key[:i], true
}
