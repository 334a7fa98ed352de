package simulate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/admission"
)

// expectation is one check of a workload: a measure of what it selects, within
// bounds, or a law that must hold throughout.
type expectation struct {
	line int
	name string
	// shown is what it selects, as it is shown.
	shown  string
	of     selector
	lo, hi float64
	kind   *check
}

// selector picks what is measured. Empty fields pick all.
type selector struct {
	pool, lane, stream, tenant, bucket string
	reason                             admission.Reason
	streams                            []string
}

// unit is how the bounds of a measure are written.
type unit uint8

const (
	unitCount unit = iota
	unitPart
	unitDuration
)

// check is a kind of expectation.
type check struct {
	unit unit
	// fields are those by which it selects.
	fields []string
	// measure returns the value, or NaN where there was nothing to measure.
	measure func(r *run, of selector) float64
	// prepare makes the run watch a law, law tells how it went.
	prepare func(r *run)
	law     func(r *run) verdict
}

func (e expectation) prepare(r *run) {
	if e.kind.prepare != nil {
		e.kind.prepare(r)
	}
}

// verdict is how it went with a law.
type verdict struct {
	// breach is the first, or empty; held says how near it came.
	breach, held string
	// cases is how often the law had something to say.
	cases int64
}

// Check is how an expectation ended.
type Check struct {
	Line  int    `json:"line" yaml:"line"`
	Name  string `json:"name" yaml:"name"`
	Of    string `json:"of,omitempty" yaml:"of,omitempty"`
	Holds bool   `json:"holds" yaml:"holds"`
	Want  string `json:"want" yaml:"want"`
	Got   string `json:"got" yaml:"got"`
}

// String returns a line: what was measured, want, got.
func (c Check) String() string {
	what := c.Name
	if c.Of != "" {
		what += " {" + c.Of + "}"
	}
	return fmt.Sprintf("%s: want %s, got %s", what, c.Want, c.Got)
}

func (e expectation) check(r *run) Check {
	c := Check{Line: e.line, Name: e.name, Of: e.shown}
	if e.kind.law != nil {
		v := e.kind.law(r)
		c.Want, c.Got, c.Holds = "no breach", v.held, v.breach == "" && v.cases > 0
		if v.breach != "" {
			c.Got = v.breach
		} else if v.cases == 0 {
			c.Got = "nothing that it is about"
		}
		return c
	}
	value := e.kind.measure(r, e.of)
	c.Want, c.Got = e.want(), e.kind.unit.write(value)
	c.Holds = e.lo <= value && value <= e.hi // never with NaN
	return c
}

func (e expectation) want() string {
	lo, hi := e.kind.unit.write(e.lo), e.kind.unit.write(e.hi)
	switch {
	case e.lo == e.hi:
		return lo
	case math.IsInf(e.hi, 1):
		return "at least " + lo
	case math.IsInf(e.lo, -1):
		return "at most " + hi
	}
	return "between " + lo + " and " + hi
}

func (u unit) write(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nothing to measure"
	case u == unitDuration:
		return shortSpan(time.Duration(x))
	case u == unitPart:
		return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.4f", x), "0"), ".")
	}
	return fmt.Sprintf("%.0f", x)
}

// picks says whether the selector picks a source.
func (of *selector) picks(s *source) bool {
	return (of.pool == "" || of.pool == s.stream.Pool) &&
		(of.lane == "" || of.lane == s.lane.name) &&
		(of.stream == "" || of.stream == s.stream.Name) &&
		(of.tenant == "" || of.tenant == s.want.tenant.id)
}

func (r *run) picked(of selector) []*source {
	return slices.DeleteFunc(slices.Clone(r.sources), func(s *source) bool { return !of.picks(s) })
}

// waits returns all waits of what is picked.
func (r *run) waits(of selector) durations {
	var all durations
	for _, s := range r.picked(of) {
		all = append(all, s.waits...)
	}
	return all
}

// sum adds a count of what is picked.
func (r *run) sum(of selector, count func(*source) int64) float64 {
	n := int64(0)
	for _, s := range r.picked(of) {
		n += count(s)
	}
	return float64(n)
}
