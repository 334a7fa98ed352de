package server

import (
	"encoding/base64"
	"encoding/binary"
	"hash/fnv"
	"strings"

	"github.com/admitd/admit/admission"
)

// A page token is the kind of the list, a sum over the filter and the key, and
// the last key that the page before showed. The sum keeps a token from being
// used with another filter or made up by mistake; it is no secret.

const (
	entryKind = 'e'
	deadKind  = 'd'
	sumBytes  = 8
)

// entryKey is the place of an entry in ListEntries. The zero key is before all.
type entryKey struct {
	due admission.Wall
	seq uint64
}

// deadKey is the place of an entry in ListDead. The zero key is before all.
type deadKey struct {
	tenant, key string
	letter      uint64
}

func entryToken(f admission.ListFilter, k entryKey) string {
	key := binary.BigEndian.AppendUint64(nil, uint64(k.due))
	key = binary.BigEndian.AppendUint64(key, k.seq)
	return sealPage(entryKind, entryScope(f), key)
}

func (c checker) entryPage(field, token string, f admission.ListFilter) entryKey {
	if token == "" {
		return entryKey{}
	}
	key, ok := openPage(entryKind, entryScope(f), token)
	if !ok || len(key) != 16 {
		c.fail(field, "is not a next_page_token of this list")
		return entryKey{}
	}
	return entryKey{
		due: admission.Wall(binary.BigEndian.Uint64(key)),
		seq: binary.BigEndian.Uint64(key[8:]),
	}
}

func deadToken(pool, tenant string, k deadKey) string {
	key := binary.BigEndian.AppendUint64(nil, k.letter)
	return sealPage(deadKind, deadScope(pool, tenant), append(key, k.tenant+"\x00"+k.key...))
}

func (c checker) deadPage(field, token, pool, tenant string) deadKey {
	if token == "" {
		return deadKey{}
	}
	key, ok := openPage(deadKind, deadScope(pool, tenant), token)
	if !ok || len(key) < 8 {
		c.fail(field, "is not a next_page_token of this list")
		return deadKey{}
	}
	last, rest, _ := strings.Cut(string(key[8:]), "\x00")
	return deadKey{tenant: last, key: rest, letter: binary.BigEndian.Uint64(key)}
}

func entryScope(f admission.ListFilter) []byte {
	scope := []byte(f.Pool + "\x00" + f.Tenant + "\x00" + f.Lane + "\x00")
	return binary.BigEndian.AppendUint64(scope, uint64(f.DueBefore))
}

func deadScope(pool, tenant string) []byte {
	return []byte(pool + "\x00" + tenant + "\x00")
}

func sealPage(kind byte, scope, key []byte) string {
	token := append([]byte{kind}, pageSum(kind, scope, key)...)
	return base64.RawURLEncoding.EncodeToString(append(token, key...))
}

func openPage(kind byte, scope []byte, token string) (key []byte, ok bool) {
	if len(token) > maxPageToken || strings.ContainsAny(token, "\r\n") { // a decoder would skip line breaks
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) < 1+sumBytes || b[0] != kind {
		return nil, false
	}
	key = b[1+sumBytes:]
	return key, string(b[1:1+sumBytes]) == string(pageSum(kind, scope, key))
}

func pageSum(kind byte, scope, key []byte) []byte {
	h := fnv.New64a()
	h.Write([]byte{kind})
	h.Write(scope)
	h.Write(key)
	return h.Sum(nil)
}
