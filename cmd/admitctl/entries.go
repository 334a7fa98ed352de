package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// namedEntry is an entry with the place it comes from, as `file:line: `, or "".
type namedEntry struct {
	spec  *admitv1.EntrySpec
	where string
}

// entrySource gives out entries in batches; one that is not full is the last.
type entrySource interface {
	next(most int) ([]namedEntry, error)
	// read is which part of it was given out, 0 to 1, or below 0 if nobody knows.
	read() float64
	close()
}

// oneEntry is an entry from flags.
type oneEntry struct{ spec *admitv1.EntrySpec }

func (o *oneEntry) next(int) ([]namedEntry, error) {
	return []namedEntry{{spec: o.spec}}, nil
}

func (o *oneEntry) read() float64 { return 1 }

func (o *oneEntry) close() {}

// maxEntryLine is far above what the longest entry takes.
const maxEntryLine = 64 << 10

// entryFile is a file with an entry on each line.
type entryFile struct {
	name    string
	defs    *admitv1.EntrySpec
	lines   *bufio.Scanner
	line    int
	closing io.Closer
	// size is the file's in bytes, 0 if it is not known, and got what was read of it.
	size, got int64
}

func (a *app) openEntries(name string, defs *admitv1.EntrySpec) (entrySource, error) {
	f := &entryFile{name: shownName(name), defs: defs}
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		in, f.closing = file, file
		if info, err := file.Stat(); err == nil {
			f.size = info.Size()
		}
	}
	f.lines = bufio.NewScanner(in)
	f.lines.Buffer(nil, maxEntryLine)
	return f, nil
}

func (f *entryFile) read() float64 {
	if f.size == 0 {
		return -1
	}
	return float64(f.got) / float64(f.size)
}

func (f *entryFile) close() {
	if f.closing != nil {
		_ = f.closing.Close() // only read from
	}
}

func (f *entryFile) next(most int) ([]namedEntry, error) {
	var batch []namedEntry
	for len(batch) < most && f.lines.Scan() {
		f.line++
		f.got += int64(len(f.lines.Bytes())) + 1
		text := bytes.TrimSpace(f.lines.Bytes())
		if len(text) == 0 {
			continue
		}
		where := fmt.Sprintf("%s:%d: ", f.name, f.line)
		spec := &admitv1.EntrySpec{}
		if err := protojson.Unmarshal(text, spec); err != nil {
			return nil, fmt.Errorf("%s%s", where, jsonProblem(err))
		}
		f.fill(spec)
		batch = append(batch, namedEntry{spec, where})
	}
	err := f.lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("the line has more than %d bytes, which no entry needs", maxEntryLine)
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", f.name, f.line+1, err)
	}
	return batch, nil
}

// fill sets what the line left out from the flags.
func (f *entryFile) fill(spec *admitv1.EntrySpec) {
	merged := proto.CloneOf(f.defs)
	proto.Merge(merged, spec)
	proto.Reset(spec)
	proto.Merge(spec, merged)
}

// jsonNoise is what protojson puts before a message: its name, and a space that
// varies from build to build, so that nobody compares texts.
var jsonNoise = regexp.MustCompile(`^proto:[\s\p{Z}]+(?:\(line \d+:(\d+)\): )?`)

func jsonProblem(err error) string {
	message := err.Error()
	noise := jsonNoise.FindStringSubmatch(message)
	if noise == nil {
		return message
	}
	message = message[len(noise[0]):]
	if noise[1] != "" {
		message = "column " + noise[1] + ": " + message
	}
	return message
}

var entryField = regexp.MustCompile(`^entries\[(\d+)\]\.?`)

// inFile names the line of the file that a status means by `entries[3].key`.
func inFile(err error, batch []namedEntry) error {
	st, ok := status.FromError(err)
	if !ok || batch[0].where == "" {
		return err
	}
	var lines []string
	for _, detail := range st.Details() {
		bad, ok := detail.(*errdetails.BadRequest)
		if !ok {
			continue
		}
		for _, v := range bad.GetFieldViolations() {
			m := entryField.FindStringSubmatch(v.GetField())
			if m == nil {
				continue
			}
			if i, _ := strconv.Atoi(m[1]); i < len(batch) {
				lines = append(lines, fmt.Sprintf("%s%s: %s", batch[i].where, v.GetField()[len(m[0]):], v.GetDescription()))
			}
		}
	}
	if len(lines) == 0 {
		return err
	}
	return fmt.Errorf("%s", strings.Join(lines, "; "))
}
