package admission_test

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/admitd/admit/admission"
)

// diff says where two values differ in exported fields, or nothing. Empty lists
// and maps are equal, missing or not. Words for people are not compared, nor is advice,
// nor what stands beside an error, nor the order of the limits that block.
func diff(path string, want, got reflect.Value) string {
	if !want.IsValid() || !got.IsValid() || want.Type() != got.Type() {
		if !want.IsValid() && !got.IsValid() {
			return ""
		}
		return fmt.Sprintf("%s: want %v, got %v", path, want, got)
	}
	switch want.Kind() {
	case reflect.Pointer, reflect.Interface:
		if want.IsNil() || got.IsNil() {
			if want.IsNil() && got.IsNil() {
				return ""
			}
			return fmt.Sprintf("%s: want %s, got %s", path, show(want), show(got))
		}
		return diff(path, want.Elem(), got.Elem())
	case reflect.Struct:
		return diffStruct(path, want, got)
	case reflect.Slice:
		return diffSlice(path, sorted(want), sorted(got))
	default:
		if want.Kind() == reflect.Map && want.Len()+got.Len() == 0 {
			return ""
		}
		if !reflect.DeepEqual(want.Interface(), got.Interface()) {
			return fmt.Sprintf("%s: want %v, got %v", path, want, got)
		}
		return ""
	}
}

// unsaid are the fields that the rules leave open.
var unsaid = map[string]bool{
	"Error.Message": true, "Shed.PollAfter": true,
	"DeadCursor.After": true, "DeadCursor.Until": true,
	"ListedEntry.Seq": true, "ListedEntry.Place": true, "ListedPermit.Place": true,
}

func diffStruct(path string, want, got reflect.Value) string {
	if a, b := want.FieldByName("Err"), got.FieldByName("Err"); a.IsValid() && !a.IsNil() && !b.IsNil() {
		return diff(path+".Err", a, b)
	}
	for i := range want.NumField() {
		field := want.Type().Field(i)
		if !field.IsExported() || unsaid[want.Type().Name()+"."+field.Name] {
			continue
		}
		if want.Type() == reflect.TypeFor[admission.Error]() && field.Name == "Meta" && want.Field(i).Len() == 0 {
			continue
		}
		if d := diff(path+"."+field.Name, want.Field(i), got.Field(i)); d != "" {
			return d
		}
	}
	return ""
}

func diffSlice(path string, want, got reflect.Value) string {
	for i := range min(want.Len(), got.Len()) {
		if d := diff(fmt.Sprintf("%s[%d]", path, i), want.Index(i), got.Index(i)); d != "" {
			return d
		}
	}
	if want.Len() != got.Len() {
		return fmt.Sprintf("%s: want %d %s, got %d %s", path, want.Len(), show(want), got.Len(), show(got))
	}
	return ""
}

// sorted puts the limits that block in one order.
func sorted(v reflect.Value) reflect.Value {
	limits, ok := v.Interface().([]admission.Limit)
	if !ok {
		return v
	}
	limits = slices.Clone(limits)
	slices.SortFunc(limits, func(a, b admission.Limit) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Reserve, b.Reserve))
	})
	return reflect.ValueOf(limits)
}

func show(v reflect.Value) string {
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return fmt.Sprintf("%+v", v)
}

// text shows an operation or a result with what its pointers point at.
func text(v any) string {
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Pointer && !r.IsNil() {
		r = r.Elem()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", v, r), "*admission.")
}
