package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

// maxRepeats bounds how often a step runs, by its `times` and the `repeat` of the
// groups around it together, so that a slip of the pen does not run for ever.
const maxRepeats = 1_000_000

// maxSpan is the longest that a test may last.
const maxSpan = 100 * 366 * 24 * time.Hour

// step is one step of a test: a verb, or a group of steps.
type step struct {
	label string // 1, 2, 2.1
	line  int
	at    *moment
	times int64 // of the verb, or of the group

	verb    *verb
	call    *call
	every   time.Duration
	expects []expectation

	steps []*step
}

// moment is when a step happens: since the test's start, or since the step
// before.
type moment struct {
	d        time.Duration
	relative bool
}

// call is a verb with its fields, as written.
type call struct {
	texts     map[string]string
	numbers   map[string]int64
	durations map[string]time.Duration
	lists     map[string][]string
	flags     map[string]bool
	limits    map[string]int64
	batch     bool
	node      admission.Node
	policy    *testPolicy
}

func (r *reader) steps(node *yaml.Node, prefix string) []*step {
	var out []*step
	if node.Kind == yaml.SequenceNode && len(node.Content) == 0 {
		r.Fail(node, "expected at least one step")
	}
	for i, item := range r.Items(node, "a list of steps") {
		out = append(out, r.step(item, prefix+strconv.Itoa(i+1)))
	}
	return out
}

func (r *reader) step(node *yaml.Node, label string) *step {
	s := &step{label: label, line: node.Line, times: 1}
	own := map[string]*yaml.Node{}
	var verbKey, verbNode *yaml.Node
	keys := append([]string{"at", "times", "every", "expect", "repeat", "steps"}, verbNames()...)
	for _, p := range r.Known(node, "a step", "verb", keys) {
		v := findVerb(p.Key.Value)
		switch {
		case v == nil:
			own[p.Key.Value] = p.Value
		case s.verb != nil:
			r.Fail(p.Key, "a step has one verb, and this one has %s already", s.verb.name)
		default:
			s.verb, verbKey, verbNode = v, p.Key, p.Value
		}
	}
	if at := own["at"]; at != nil {
		s.at = r.moment(at)
	}
	switch {
	case own["steps"] != nil || own["repeat"] != nil:
		r.group(s, node, own, verbKey)
	case s.verb == nil:
		if node.Kind == yaml.MappingNode && !r.complained(node) {
			r.Fail(node, "expected a verb: %s", strings.Join(verbNames(), ", "))
		}
	default:
		r.single(s, verbNode, own)
	}
	return s
}

// complained says whether something inside the node was found wrong already.
func (r *reader) complained(node *yaml.Node) bool {
	for _, p := range r.Problems {
		for _, child := range node.Content {
			if p.Line == child.Line && p.Column == child.Column {
				return true
			}
		}
	}
	return false
}

func (r *reader) moment(node *yaml.Node) *moment {
	if rest, ok := strings.CutPrefix(node.Value, "+"); ok && node.Kind == yaml.ScalarNode {
		since := *node
		since.Value = rest
		return &moment{r.Duration(&since, 0, maxSpan), true}
	}
	return &moment{r.Duration(node, 0, maxSpan), false}
}

func (r *reader) group(s *step, node *yaml.Node, own map[string]*yaml.Node, verbKey *yaml.Node) {
	if verbKey != nil {
		r.Fail(verbKey, "a group of steps has no verb of its own")
	}
	for _, key := range []string{"times", "every", "expect"} {
		if own[key] != nil {
			r.Fail(own[key], "a group of steps has no %s of its own", key)
		}
	}
	if own["steps"] == nil || own["repeat"] == nil {
		r.Fail(node, "expected repeat and steps together")
		return
	}
	s.times = r.Number(own["repeat"], 1, maxRepeats/r.runs)
	r.runs *= s.times
	s.steps = r.steps(own["steps"], s.label+".")
	r.runs /= s.times
}

func (r *reader) single(s *step, verbNode *yaml.Node, own map[string]*yaml.Node) {
	if times := own["times"]; times != nil {
		s.times = r.Number(times, 1, maxRepeats/r.runs)
	}
	if every := own["every"]; every != nil {
		s.every = r.Duration(every, 0, maxSpan)
	}
	expect := own["expect"]
	if s.verb.name == "policy" {
		r.policyCall(s, verbNode, expect)
	} else {
		s.call = r.call(s.verb, verbNode)
	}
	if expect != nil {
		r.expects(s, expect)
	}
}

// policyCall reads a policy to apply. One that breaks a rule is an error of the
// file, unless to be refused is what the step is about.
func (r *reader) policyCall(s *step, node, expect *yaml.Node) {
	p, problems := readPolicy(r.file, node)
	s.call = &call{policy: p}
	if !p.invalid || expectsPolicyInvalid(expect) {
		return
	}
	r.Problems = append(r.Problems, problems...)
}

func expectsPolicyInvalid(expect *yaml.Node) bool {
	if expect == nil {
		return false
	}
	i := slices.IndexFunc(expect.Content, func(n *yaml.Node) bool { return n.Value == "error" })
	return i >= 0 && i+1 < len(expect.Content) && expect.Content[i+1].Value == string(admission.PolicyInvalid)
}

// call reads a verb's fields.
func (r *reader) call(v *verb, node *yaml.Node) *call {
	c := &call{
		texts: map[string]string{}, numbers: map[string]int64{},
		durations: map[string]time.Duration{}, lists: map[string][]string{}, flags: map[string]bool{},
	}
	given := map[string]bool{}
	problems := len(r.Problems)
	for _, p := range r.Known(node, "the fields of "+v.name, v.name+" field", v.fieldNames()) {
		f := v.field(p.Key.Value)
		given[f.name] = true
		f.read(r, c, f.name, p.Value)
	}
	for _, f := range v.fields {
		// A field that seems to be missing may be the one that is misspelt.
		if f.required && !given[f.name] && len(r.Problems) == problems {
			r.Fail(node, "%s needs %s", v.name, f.name)
		}
	}
	if v.check != nil && len(r.Problems) == problems {
		v.check(r, c, node)
	}
	return c
}

// scope is what "{n}" and "{i}" stand for.
type scope struct{ n, i int64 }

func (s scope) expand(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	return strings.NewReplacer("{n}", fmt.Sprint(s.n), "{i}", fmt.Sprint(s.i)).Replace(text)
}
