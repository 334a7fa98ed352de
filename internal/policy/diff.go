package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Change is one field that two policies have otherwise. What is absent is empty.
type Change struct {
	// Field is its path, with names in place of numbers: `pools[email].max_active`.
	Field string `json:"field" yaml:"field"`
	Was   string `json:"was,omitempty" yaml:"was,omitempty"`
	Is    string `json:"is,omitempty" yaml:"is,omitempty"`
}

// Diff returns what a policy has otherwise than another, in the order of the API's
// fields. Named things are compared by name, wherever they stand; the order of lanes,
// which is their priority, and that of rules are compared as fields of their own.
func Diff(was, is *admitv1.Policy) []Change {
	var d differ
	d.message("", was.ProtoReflect(), is.ProtoReflect())
	return d.changes
}

type differ struct{ changes []Change }

func (d *differ) message(at string, was, is protoreflect.Message) {
	fields := is.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name := string(f.Name())
		if at != "" {
			name = at + "." + name
		}
		switch {
		case f.IsMap():
			d.entries(name, f, was.Get(f).Map(), is.Get(f).Map())
		case f.IsList() && f.Message() == nil:
			d.value(name, listed(was.Get(f).List()), listed(is.Get(f).List()))
		case f.IsList():
			d.named(name, f, was.Get(f).List(), is.Get(f).List())
		case f.Message() != nil && f.Message().FullName() != durationName && was.Has(f) && is.Has(f):
			d.message(name, was.Get(f).Message(), is.Get(f).Message())
		default:
			d.value(name, shown(f, was), shown(f, is))
		}
	}
}

func (d *differ) value(at, was, is string) {
	if was != is {
		d.changes = append(d.changes, Change{Field: at, Was: was, Is: is})
	}
}

func (d *differ) entries(at string, f protoreflect.FieldDescriptor, was, is protoreflect.Map) {
	var keys []string
	collect := func(k protoreflect.MapKey, _ protoreflect.Value) bool { keys = append(keys, k.String()); return true }
	was.Range(collect)
	is.Range(collect)
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		k := protoreflect.ValueOfString(key).MapKey()
		d.pair(fmt.Sprintf("%s[%s]", at, key), f.MapValue(), was.Get(k), is.Get(k))
	}
}

// named compares lists of messages that have names or ids.
func (d *differ) named(at string, f protoreflect.FieldDescriptor, was, is protoreflect.List) {
	before, after := byName(was), byName(is)
	for i := range is.Len() {
		name := nameOf(is.Get(i))
		d.pair(fmt.Sprintf("%s[%s]", at, name), f, before[name], is.Get(i))
	}
	for i := range was.Len() {
		if name := nameOf(was.Get(i)); !after[name].IsValid() {
			d.pair(fmt.Sprintf("%s[%s]", at, name), f, was.Get(i), protoreflect.Value{})
		}
	}
	if f.Name() == "lanes" || f.Name() == "rules" {
		d.value(at, order(was, after), order(is, before))
	}
}

// pair compares two values of a list or a map, of which one may be absent.
func (d *differ) pair(at string, f protoreflect.FieldDescriptor, was, is protoreflect.Value) {
	if f.Message() != nil && was.IsValid() && is.IsValid() {
		d.message(at, was.Message(), is.Message())
		return
	}
	d.value(at, whole(f, was), whole(f, is))
}

// listed writes a list of texts.
func listed(list protoreflect.List) string {
	var items []string
	for i := range list.Len() {
		items = append(items, list.Get(i).String())
	}
	return strings.Join(items, ", ")
}

func byName(list protoreflect.List) map[string]protoreflect.Value {
	names := map[string]protoreflect.Value{}
	for i := range list.Len() {
		names[nameOf(list.Get(i))] = list.Get(i)
	}
	return names
}

// order is the order of what both lists have.
func order(list protoreflect.List, other map[string]protoreflect.Value) string {
	var names []string
	for i := range list.Len() {
		if name := nameOf(list.Get(i)); other[name].IsValid() {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func nameOf(v protoreflect.Value) string {
	fields := v.Message().Descriptor().Fields()
	f := cmp.Or(fields.ByName("name"), fields.ByName("id"))
	return v.Message().Get(f).String()
}

// shown writes a field's value as a file has it, absent as nothing.
func shown(f protoreflect.FieldDescriptor, m protoreflect.Message) string {
	if !m.Has(f) {
		return ""
	}
	return whole(f, m.Get(f))
}

func whole(f protoreflect.FieldDescriptor, v protoreflect.Value) string {
	switch {
	case !v.IsValid():
		return ""
	case f.Enum() != nil:
		return string(f.Enum().Values().ByNumber(v.Enum()).Name())
	case f.Message() == nil:
		return v.String()
	}
	if d, ok := v.Message().Interface().(*durationpb.Duration); ok {
		return d.AsDuration().String()
	}
	return inline(v.Message().Interface())
}

// inline writes a message in one line.
func inline(m proto.Message) string {
	var parts []string
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.ProtoReflect().Has(f) {
			continue
		}
		switch v := m.ProtoReflect().Get(f); {
		case f.IsList():
			parts = append(parts, fmt.Sprintf("%d %s", v.List().Len(), f.Name()))
		case f.IsMap():
			parts = append(parts, fmt.Sprintf("%d %s", v.Map().Len(), f.Name()))
		default:
			parts = append(parts, fmt.Sprintf("%s: %s", f.Name(), whole(f, v)))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
