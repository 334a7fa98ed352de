package raftstore

import (
	"fmt"
	"reflect"
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

// add notes what an entry came to, and what came of those who waited.
func (d *digests) add(index uint64, results []admission.Result, ended []admission.WaitEnd) {
	h := hash(d.last.digest)
	h.uint(index)
	for _, r := range results {
		h.value(reflect.ValueOf(r))
	}
	for _, e := range ended {
		h.value(reflect.ValueOf(e))
	}
	d.reset(check{index, uint64(h)})
}

// reset begins anew after an entry.
func (d *digests) reset(to check) {
	d.last = to
	d.recent[to.index%recentDigests] = to
}

// at returns the digest after an entry; false if it is not known any more, or yet.
func (d *digests) at(index uint64) (uint64, bool) {
	c := d.recent[index%recentDigests]
	return c.digest, index > 0 && c.index == index
}

// hash is FNV-1a, by words of eight bytes.
type hash uint64

func (h *hash) uint(v uint64) { *h = (*h ^ hash(v)) * 1099511628211 }

func (h *hash) string(s string) {
	h.uint(uint64(len(s)))
	for i := range len(s) {
		h.uint(uint64(s[i]))
	}
}

// value adds all that callers can see of a value: what is not exported is the
// core's own affair.
func (h *hash) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid: // no result
		h.uint(0)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			h.uint(0)
			return
		}
		h.uint(1)
		h.value(v.Elem())
	case reflect.Struct:
		for _, i := range exported(v.Type()) {
			h.value(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		h.uint(uint64(v.Len()))
		for i := range v.Len() {
			h.value(v.Index(i))
		}
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
}

// exportedFields keeps what exported returned, by type: the answer never changes.
var exportedFields sync.Map

// exported returns which fields of a struct are exported.
func exported(of reflect.Type) []int {
	if known, ok := exportedFields.Load(of); ok {
		return known.([]int)
	}
	var fields []int
	for i := range of.NumField() {
		if of.Field(i).IsExported() {
			fields = append(fields, i)
		}
	}
	exportedFields.Store(of, fields)
	return fields
}
