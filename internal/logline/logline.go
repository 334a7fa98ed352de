// Package logline is the log as text: a line of JSON for each entry that the core
// applied, for operators who look for what was decided and for tests that decide
// it again.
//
// An operation is an object with one field, named after the operation in
// admission, that holds its fields under their Go names: times and durations in
// nanoseconds, 64-bit numbers in full.
package logline

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/admitd/admit/admission"
)

// Line is one entry of the log.
type Line struct {
	// Term is that of the leader that wrote the entry.
	Term  uint64
	Entry admission.Entry
}

// text is a Line as it is written.
type text struct {
	Index uint64                       `json:"index"`
	Term  uint64                       `json:"term"`
	T     admission.Instant            `json:"t"`
	W     admission.Wall               `json:"w"`
	Ops   []map[string]json.RawMessage `json:"ops"`
}

// kinds are the operations by name, each as the type that an Entry holds.
var kinds = func() map[string]reflect.Type {
	m := map[string]reflect.Type{}
	for _, op := range []admission.Op{
		admission.TermStart{}, admission.ApplyPolicy{}, &admission.PutTenants{}, admission.Pause{},
		&admission.Acquire{}, &admission.Take{}, &admission.LeaseShare{}, admission.Detach{}, &admission.ReportDemand{}, &admission.NextDue{},
		&admission.Renew{}, &admission.Release{}, &admission.Schedule{}, admission.Unschedule{},
		&admission.Redrive{}, &admission.PurgeDead{},
	} {
		t := reflect.TypeOf(op)
		m[nameOf(t)] = t
	}
	return m
}()

func nameOf(t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Name()
}

// Write writes one entry.
func Write(w io.Writer, l Line) error {
	out := text{Index: l.Entry.Index, Term: l.Term, T: l.Entry.T, W: l.Entry.W, Ops: []map[string]json.RawMessage{}}
	for i, op := range l.Entry.Ops {
		fields, err := json.Marshal(op)
		if err != nil {
			return fmt.Errorf("write operation %d of log entry %d: %w", i, l.Entry.Index, err)
		}
		out.Ops = append(out.Ops, map[string]json.RawMessage{nameOf(reflect.TypeOf(op)): fields})
	}
	if err := json.NewEncoder(w).Encode(out); err != nil {
		return fmt.Errorf("write log entry %d: %w", l.Entry.Index, err)
	}
	return nil
}

// Read calls each with the entries that were written to r, in order.
func Read(r io.Reader, each func(Line) error) error {
	dec := json.NewDecoder(bufio.NewReader(r))
	for {
		var in text
		switch err := dec.Decode(&in); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a log entry: %w", err)
		}
		l := Line{Term: in.Term, Entry: admission.Entry{Index: in.Index, T: in.T, W: in.W, Ops: make([]admission.Op, len(in.Ops))}}
		for i, object := range in.Ops {
			var err error
			if l.Entry.Ops[i], err = readOp(object); err != nil {
				return fmt.Errorf("read operation %d of log entry %d: %w", i, in.Index, err)
			}
		}
		if err := each(l); err != nil {
			return err
		}
	}
}

func readOp(object map[string]json.RawMessage) (admission.Op, error) {
	for name, fields := range object {
		t, known := kinds[name]
		if !known || len(object) != 1 {
			break
		}
		if t.Kind() == reflect.Pointer {
			op := reflect.New(t.Elem())
			return op.Interface().(admission.Op), json.Unmarshal(fields, op.Interface())
		}
		op := reflect.New(t)
		err := json.Unmarshal(fields, op.Interface())
		return op.Elem().Interface().(admission.Op), err
	}
	return nil, fmt.Errorf("%v is no operation", object)
}
