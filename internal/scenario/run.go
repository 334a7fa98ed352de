package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// Result is how a test ended.
type Result struct {
	Test       string
	Line       int
	Mismatches []Mismatch
}

// Mismatch is one expectation that did not hold.
type Mismatch struct {
	File string
	Line int
	Test string
	// Step is the number of the step, 2.1 for the first inside the group that is
	// the second, with the repetition of the group. Empty for the test as a whole.
	Step string
	Want string
	Got  string
}

// String returns a line: file, test, step, want, got.
func (m Mismatch) String() string {
	where := fmt.Sprintf("%s:%d: %q", m.File, m.Line, m.Test)
	if m.Step != "" {
		where += ", step " + m.Step
	}
	return fmt.Sprintf("%s: want %s, got %s", where, m.Want, m.Got)
}

// maxMismatches is where a test stops: what follows has the same cause, most
// likely.
const maxMismatches = 20

// epoch is the wall-clock time at which every test starts.
var epoch = admission.Wall(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano())

// latest is the end of time, so that sums of times stay in range.
const latest = admission.Instant(maxSpan)

// owner is a tenant of a pool.
type owner struct{ pool, tenant string }

// run is one test on its way.
type run struct {
	file *File
	test *Test

	state   *admission.State
	index   uint64
	now     admission.Instant
	nonce   uint64
	permits map[string]admission.Token
	// waits are the names of the acquires in line; ends are the waits that have
	// ended since they were last told.
	waits map[admission.WaiterKey]string
	ends  []admission.WaitEnd
	// grants counts what each tenant was given since the test began.
	grants map[owner]int64

	mismatches []Mismatch
}

// Run runs every test of the file, in order.
func (f *File) Run() []Result {
	results := make([]Result, len(f.Tests))
	for i, t := range f.Tests {
		results[i] = Result{Test: t.Name, Line: t.Line, Mismatches: f.run(t)}
	}
	return results
}

func (f *File) run(t *Test) []Mismatch {
	r := &run{
		file: f, test: t, state: admission.New(), permits: map[string]admission.Token{}, grants: map[owner]int64{},
		waits: map[admission.WaiterKey]string{},
	}
	op := admission.ApplyPolicy{Policy: t.policy.core, ExpectedRevision: admission.AnyRevision}
	if err := r.apply(op).(*admission.PolicyResult).Err; err != nil {
		return []Mismatch{{File: f.Name, Line: t.Line, Test: t.Name, Want: "the policy in force", Got: err.Error()}}
	}
	r.steps(t.steps, 0, "")
	return r.mismatches
}

// steps runs steps in the i-th repetition of their group; suffix tells it.
func (r *run) steps(steps []*step, i int64, suffix string) {
	for _, s := range steps {
		if len(r.mismatches) >= maxMismatches || !r.advance(s, suffix) {
			return
		}
		if s.verb != nil {
			r.do(s, i, suffix)
			continue
		}
		for k := range s.times {
			r.steps(s.steps, k+1, fmt.Sprintf("%s (i=%d)", suffix, k+1))
		}
	}
}

// advance moves the time to that of the step.
func (r *run) advance(s *step, suffix string) bool {
	if s.at == nil {
		return true
	}
	at := admission.Instant(s.at.d)
	if s.at.relative {
		at = r.now.Add(s.at.d)
	}
	if at < r.now || at > latest {
		want := fmt.Sprintf("a time from %s to %s", policy.Short(time.Duration(r.now)), policy.Short(time.Duration(latest)))
		r.mismatch(s.line, s.label+suffix, want, policy.Short(time.Duration(at)))
		return false
	}
	r.now = at
	return true
}

func (r *run) do(s *step, i int64, suffix string) {
	o := &outcome{run: r, nextDueIn: admission.Absent}
	for n := range s.times {
		if n > 0 {
			r.now = min(r.now.Add(s.every), latest)
		}
		s.verb.do(r, s.call, scope{n + 1, i}, o)
		r.tellEnds(o)
	}
	label := s.label + suffix
	if o.failedWant != "" {
		r.mismatch(s.line, label, o.failedWant, o.failedGot)
	}
	if o.refusal != "" && !s.expectsError() {
		r.mismatch(s.line, label, "no error", fmt.Sprintf("%s: %s", o.refusal, o.message))
	}
	for _, e := range s.expects {
		if want, got, ok := e.check(o); !ok {
			r.mismatch(e.line, label, e.name+" "+want, got)
		}
	}
}

func (s *step) expectsError() bool {
	for _, e := range s.expects {
		if e.name == "error" {
			return true
		}
	}
	return false
}

func (r *run) mismatch(line int, step, want, got string) {
	r.mismatches = append(r.mismatches, Mismatch{
		File: r.file.Name, Line: line, Test: r.test.Name, Step: strings.TrimSpace(step), Want: want, Got: got,
	})
}

// apply makes the operations one log entry and returns the result of the first.
func (r *run) apply(ops ...admission.Op) admission.Result {
	r.index++
	results := r.state.Apply(admission.Entry{Index: r.index, T: r.now, W: r.wall(), Ops: ops})
	r.ends = append(r.ends, r.state.Ended()...)
	if len(results) == 0 {
		return nil
	}
	return results[0]
}

// tellEnds notes which of the waits have ended.
func (r *run) tellEnds(o *outcome) {
	for _, end := range r.ends {
		o.ended(r.waits[end.Waiter], end)
		delete(r.waits, end.Waiter)
	}
	r.ends = nil
}

func (r *run) wall() admission.Wall { return epoch.Add(time.Duration(r.now)) }

func (r *run) nextNonce() uint64 {
	r.nonce++
	return r.nonce
}
