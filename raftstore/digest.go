package raftstore

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/admitd/admit/admission"
)

// check is what the results of all entries up to index come to.
type check struct {
	index, digest uint64
}

// digests are the rolling digest of what a node decided, after each of the last
// entries. Nodes that decide alike have the same after the same entry.
type digests struct {
	last check
	// recent holds those of the last entries, each at its index modulo the length.
	recent [recentDigests]check
}

// recentDigests is far more than the entries that a leader has under way when it
// tells its digest.
const recentDigests = 1024

// after returns the digest after an entry, of what it came to and what came of those
// who waited.
func (d *digests) after(index uint64, results []admission.Result, ended []admission.WaitEnd) check {
	h := hash(d.last.digest)
	h.uint(index)
	for _, r := range results {
		h.value(reflect.ValueOf(r))
	}
	for _, e := range ended {
		h.value(reflect.ValueOf(e))
	}
	return check{index, uint64(h)}
}

// reset notes the digest after an entry.
func (d *digests) reset(to check) {
	d.last = to
	d.recent[to.index%recentDigests] = to
}

// at returns the digest after an entry; false if it is not known any more, or yet.
func (d *digests) at(index uint64) (uint64, bool) {
	c := d.recent[index%recentDigests]
	return c.digest, index > 0 && c.index == index
}

// hash is FNV-1a by words of eight bytes, whose upper half is mixed into the lower:
// with words, what differs in the last byte would stay there.
type hash uint64

func (h *hash) uint(v uint64) {
	*h = (*h ^ hash(v)) * 1099511628211
	*h ^= *h >> 32
}

func (h *hash) string(s string) {
	h.uint(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h.uint(word(s[:8]))
	}
	h.uint(word(s))
}

func word(s string) (w uint64) {
	for i := range len(s) {
		w = w<<8 | uint64(s[i])
	}
	return w
}

// value adds all that callers can see of a value, and says whether that is anything:
// what is zero, or empty, is not. What is not exported is the core's own affair. Of a
// struct it adds the names of fields and what is in them, unless that is nothing: so
// versions of this program that differ in their fields agree as long as they decide
// alike.
func (h *hash) value(v reflect.Value) (shows bool) {
	switch v.Kind() {
	case reflect.Invalid: // no result
		h.uint(0)
		return false
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.uint(0)
			return false
		}
		h.uint(1)
		h.value(v.Elem())
		return true
	case reflect.Struct:
		for _, f := range exported(v.Type()) {
			before := *h
			h.uint(f.name)
			if h.value(v.Field(f.place)) {
				shows = true
			} else {
				*h = before
			}
		}
		h.uint(0) // no name: the next struct begins
		return shows
	case reflect.Slice, reflect.Array:
		h.uint(uint64(v.Len()))
		for i := range v.Len() {
			shows = h.value(v.Index(i)) || shows
		}
		return shows || v.Kind() == reflect.Slice && v.Len() > 0
	case reflect.String:
		h.string(v.String())
	case reflect.Bool:
		b := uint64(0)
		if v.Bool() {
			b = 1
		}
		h.uint(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.uint(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.uint(v.Uint())
	default:
		panic(fmt.Sprintf("a result has a %s, which has no digest", v.Type()))
	}
	return !v.IsZero()
}

// field is an exported field of a struct.
type field struct {
	place int
	// name is the hash of its name.
	name uint64
}

// exportedFields keeps what exported returned, by type: the answer never changes.
var exportedFields sync.Map

// exported returns the exported fields of a struct.
func exported(of reflect.Type) []field {
	if known, ok := exportedFields.Load(of); ok {
		return known.([]field)
	}
	var fields []field
	for i := range of.NumField() {
		if f := of.Field(i); f.IsExported() {
			var name hash
			name.string(f.Name)
			fields = append(fields, field{i, uint64(name)})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return cmp.Compare(a.name, b.name) })
	exportedFields.Store(of, fields)
	return fields
}
