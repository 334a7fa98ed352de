package scenario

import (
	"errors"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// File is a scenario file that has been read.
type File struct {
	Name  string
	Tests []*Test
}

// Test is one test of a file.
type Test struct {
	Name string
	Line int

	policy *testPolicy
	steps  []*step
}

// testPolicy is a policy as the core takes it.
type testPolicy struct {
	core admission.Policy
	// invalid says that it breaks a rule; only a step that expects just that
	// may apply it.
	invalid bool
}

// Parse reads a scenario file; name is what errors and results call it. The
// error is a *policy.FileError with all that is wrong.
func Parse(name string, data []byte) (*File, error) {
	root, err := policy.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	r := &reader{file: name, runs: 1}
	f := &File{Name: name}
	var shared *testPolicy
	var tests *yaml.Node
	for _, p := range r.Known(root, "a mapping with policy and tests", "key", []string{"policy", "tests"}) {
		switch p.Key.Value {
		case "policy":
			shared = r.policy(p.Value)
		case "tests":
			tests = p.Value
		}
	}
	if tests == nil {
		r.Fail(root, "expected tests")
		return nil, policy.NewFileError(name, r.Problems)
	}
	if tests.Kind == yaml.SequenceNode && len(tests.Content) == 0 {
		r.Fail(tests, "expected at least one test")
	}
	names := map[string]bool{}
	for _, node := range r.Items(tests, "a list of tests") {
		t := r.test(node, shared)
		if t.Name != "" && names[t.Name] {
			r.Fail(node, "two tests are named %q", t.Name)
		}
		names[t.Name] = true
		f.Tests = append(f.Tests, t)
	}
	if err := policy.NewFileError(name, r.Problems); err != nil {
		return nil, err
	}
	return f, nil
}

func (r *reader) test(node *yaml.Node, shared *testPolicy) *Test {
	t := &Test{Line: node.Line, policy: shared}
	var steps *yaml.Node
	for _, p := range r.Known(node, "a test with name and steps", "key", []string{"name", "policy", "steps"}) {
		switch p.Key.Value {
		case "name":
			t.Name = r.Text(p.Value)
		case "policy":
			t.policy = r.policy(p.Value)
		case "steps":
			steps = p.Value
		}
	}
	if node.Kind != yaml.MappingNode {
		return t
	}
	if t.Name == "" {
		r.Fail(node, "expected a name")
	}
	if t.policy == nil {
		r.Fail(node, "expected a policy, in the test or for the whole file")
	}
	if steps == nil {
		r.Fail(node, "expected steps")
		return t
	}
	t.steps = r.steps(steps, "")
	return t
}

// policy reads a policy that must keep the rules.
func (r *reader) policy(node *yaml.Node) *testPolicy {
	p, problems := readPolicy(r.file, node)
	r.Problems = append(r.Problems, problems...)
	return p
}

// readPolicy returns a policy, with what is wrong with it.
func readPolicy(file string, node *yaml.Node) (*testPolicy, []policy.Problem) {
	_, core, err := policy.FromNode(file, node)
	p := &testPolicy{core: core}
	var fe *policy.FileError
	switch {
	case errors.As(err, &fe):
		p.invalid = true
		return p, fe.Problems
	case err != nil:
		return p, []policy.Problem{{Line: node.Line, Column: node.Column, Message: err.Error()}}
	}
	return p, nil
}
