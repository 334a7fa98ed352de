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
	entryKind   = 'e'
	deadKind    = 'd'
	redriveKind = 'r'
	purgeKind   = 'p'
	tenantKind  = 't'
	permitKind  = 'l'
	sumBytes    = 8
)

// entryKey is the place of an entry in ListEntries. The zero key is before all.
type entryKey struct {
	due admission.Wall
	seq uint64
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

func deadToken(pool string, f admission.DeadFilter, at admission.DeadPlace) string {
	key := binary.BigEndian.AppendUint64(nil, at.Tenant)
	key = binary.BigEndian.AppendUint64(key, at.Letter)
	return sealPage(deadKind, deadScope(pool, f), append(key, at.Key...))
}

func (c checker) deadPage(field, token, pool string, f admission.DeadFilter) admission.DeadPlace {
	if token == "" {
		return admission.DeadPlace{}
	}
	key, ok := openPage(deadKind, deadScope(pool, f), token)
	if !ok || len(key) < 16 {
		c.fail(field, "is not a next_page_token of this list")
		return admission.DeadPlace{}
	}
	return admission.DeadPlace{
		Tenant: binary.BigEndian.Uint64(key),
		Letter: binary.BigEndian.Uint64(key[8:]),
		Key:    string(key[16:]),
	}
}

// cursorToken says where a redrive or a purge goes on; empty when it is through.
func cursorToken(kind byte, pool string, f admission.DeadFilter, at admission.DeadCursor) string {
	if at == (admission.DeadCursor{}) {
		return ""
	}
	key := binary.BigEndian.AppendUint64(nil, at.After)
	key = binary.BigEndian.AppendUint64(key, at.Until)
	key = binary.BigEndian.AppendUint64(key, uint64(at.Due))
	return sealPage(kind, deadScope(pool, f), key)
}

func (c checker) cursor(kind byte, field, token, pool string, f admission.DeadFilter) admission.DeadCursor {
	if token == "" {
		return admission.DeadCursor{}
	}
	key, ok := openPage(kind, deadScope(pool, f), token)
	if !ok || len(key) != 24 {
		c.fail(field, "is not a next_page_token of such a call")
		return admission.DeadCursor{}
	}
	return admission.DeadCursor{
		After: binary.BigEndian.Uint64(key),
		Until: binary.BigEndian.Uint64(key[8:]),
		Due:   admission.Wall(binary.BigEndian.Uint64(key[16:])),
	}
}

func tenantToken(pool, id string) string { return sealPage(tenantKind, []byte(pool), []byte(id)) }

// tenantPage returns the id of the last tenant of the page before.
func (c checker) tenantPage(field, token, pool string) string {
	if token == "" {
		return ""
	}
	id, ok := openPage(tenantKind, []byte(pool), token)
	if !ok {
		c.fail(field, "is not a next_page_token of this list")
	}
	return string(id)
}

func permitToken(f admission.PermitFilter, at admission.PermitPlace) string {
	key := binary.BigEndian.AppendUint64(nil, at.Index)
	return sealPage(permitKind, permitScope(f), binary.BigEndian.AppendUint32(key, at.Position))
}

func (c checker) permitPage(field, token string, f admission.PermitFilter) admission.PermitPlace {
	if token == "" {
		return admission.PermitPlace{}
	}
	key, ok := openPage(permitKind, permitScope(f), token)
	if !ok || len(key) != 12 {
		c.fail(field, "is not a next_page_token of this list")
		return admission.PermitPlace{}
	}
	return admission.PermitPlace{Index: binary.BigEndian.Uint64(key), Position: binary.BigEndian.Uint32(key[8:])}
}

func permitScope(f admission.PermitFilter) []byte { return []byte(f.Pool + "\x00" + f.Tenant) }

func entryScope(f admission.ListFilter) []byte {
	scope := []byte(f.Pool + "\x00" + f.Tenant + "\x00" + f.Lane + "\x00")
	return binary.BigEndian.AppendUint64(scope, uint64(f.DueBefore))
}

func deadScope(pool string, f admission.DeadFilter) []byte {
	scope := []byte(pool + "\x00" + f.Tenant + "\x00" + f.Lane + "\x00" + f.KeyPrefix + "\x00")
	return append(scope, byte(f.Outcome))
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
