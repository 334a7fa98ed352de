package descriptor

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const (
	// maxID is the longest id of a tenant.
	maxID = 128
	// hashed begins what stands for a value that an id can't hold. A value that begins
	// so itself is hashed as well, so that nobody can choose another's.
	hashed = "sha256:"
)

// tenant returns the id of whose buckets a descriptor takes. Different values make
// different ids.
func (r *Rule) tenant(d []Entry) string {
	template := r.Tenant
	if template == "" {
		template = r.Name
		for _, key := range r.open {
			template += "/{" + key + "}"
		}
	}
	several := strings.Count(template, "{") > 1
	head, rest, any := strings.Cut(template, "{")
	var id strings.Builder
	id.WriteString(head)
	for any {
		var key, text string
		key, rest, _ = strings.Cut(rest, "}")
		text, rest, any = strings.Cut(rest, "{")
		id.WriteString(inID(valueOf(d, key), several))
		id.WriteString(text)
	}
	if id.Len() <= maxID {
		return id.String()
	}
	return head[:min(len(head), maxID-len(digest("")))] + digest(id.String())
}

func valueOf(d []Entry, key string) string {
	for _, e := range d {
		if e.Key == key {
			return e.Value
		}
	}
	return ""
}

// inID returns what stands for a value in an id, of which others may be a part.
func inID(v string, several bool) string {
	if v == "" || strings.HasPrefix(v, hashed) || several && strings.Contains(v, "/") || strings.ContainsFunc(v, foreign) {
		return digest(v)
	}
	return v
}

// foreign says whether an id can't hold a character.
func foreign(c rune) bool {
	letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
	return !letter && !strings.ContainsRune("._:/-", c)
}

func digest(v string) string {
	sum := sha256.Sum256([]byte(v))
	return hashed + hex.EncodeToString(sum[:16])
}
