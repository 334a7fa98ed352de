package logline

import (
	"bytes"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/admitd/admit/admission"
)

// fill sets everything in v, each number another.
func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(strings.Repeat("x", int(*n%7)+1))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint64:
		v.SetUint(1<<63 + *n) // more than a float holds
	case reflect.Int64:
		v.SetInt(-1<<62 - int64(*n))
	case reflect.Int, reflect.Int32:
		v.SetInt(int64(*n))
	default:
		v.SetUint(*n % 200)
	}
}

func TestLinesReadAsWritten(t *testing.T) {
	var n uint64
	want := []Line{{Term: 1, Entry: admission.Entry{Index: 1, T: 2, W: 3, Ops: []admission.Op{}}}}
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		op := reflect.New(kinds[name]).Elem()
		fill(op, &n)
		want = append(want, Line{Term: 7, Entry: admission.Entry{
			Index: 1<<60 + n, T: 1 << 61, W: 1 << 62, Ops: []admission.Op{op.Interface().(admission.Op)},
		}})
	}
	var b bytes.Buffer
	for _, l := range want {
		if err := Write(&b, l); err != nil {
			t.Fatal(err)
		}
	}
	if lines := strings.Count(b.String(), "\n"); lines != len(want) {
		t.Errorf("%d entries are %d lines", len(want), lines)
	}
	var got []Line
	if err := Read(&b, func(l Line) error { got = append(got, l); return nil }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// Every operation of the core has a name here.
func TestEveryOperationHasAName(t *testing.T) {
	source, err := os.ReadFile("../../admission/command.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range regexp.MustCompile(`func \(\*?(\w+)\) +isOp\(\)`).FindAllSubmatch(source, -1) {
		want = append(want, string(m[1]))
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(kinds)); len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("names %v, the core has %v", got, want)
	}
}

func TestReadRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{
		`{"index":1,"ops":[{"Fly":{}}]}`, `{"index":1,"ops":[{}]}`, `{"index":1,"ops":[{"Renew":{},"Pause":{}}]}`,
		`{"index":1,"ops":[{"Renew":{"TTL":"x"}}]}`, `{`,
	} {
		if err := Read(strings.NewReader(text), func(Line) error { return nil }); err == nil {
			t.Errorf("reads %s", text)
		}
	}
}
