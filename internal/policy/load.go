package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"buf.build/go/protoyaml"
	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// MaxFileBytes is the most that a policy file may have.
const MaxFileBytes = 256 << 10

// Load reads a policy in YAML or JSON; name is what errors call the file. The
// error is a *FileError with all that is wrong.
func Load(name string, data []byte) (*admitv1.Policy, admission.Policy, error) {
	if len(data) > MaxFileBytes {
		return nil, admission.Policy{}, NewFileError(name, []Problem{{
			Line: 1, Column: 1, Message: fmt.Sprintf("expected at most %d bytes, got %d", MaxFileBytes, len(data)),
		}})
	}
	root, err := ParseYAML(name, data)
	if err != nil {
		return nil, admission.Policy{}, err
	}
	return FromNode(name, root)
}

// ParseYAML returns the one document of a file, with positions. The error is a
// *FileError.
func ParseYAML(name string, data []byte) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && isEmpty(&doc):
		return nil, NewFileError(name, []Problem{{Line: 1, Column: 1, Message: "the file is empty"}})
	case err != nil:
		return nil, NewFileError(name, []Problem{syntaxProblem(data, err)})
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, NewFileError(name, []Problem{{
			Line: second.Line, Column: second.Column, Message: "expected the end of the file, got another document",
		}})
	case !errors.Is(err, io.EOF):
		return nil, NewFileError(name, []Problem{syntaxProblem(data, err)})
	}
	return doc.Content[0], nil
}

// isEmpty says whether a document has nothing but its marks and comments.
func isEmpty(doc *yaml.Node) bool {
	root := doc.Content[0]
	return root.Tag == "!!null" && root.Value == ""
}

// FromNode reads a policy that is part of a larger file. The error is a
// *FileError with all that is wrong.
func FromNode(name string, root *yaml.Node) (*admitv1.Policy, admission.Policy, error) {
	msg := &admitv1.Policy{}
	t := newTree(root, msg.ProtoReflect().Descriptor())
	if t.broken[root] {
		return nil, admission.Policy{}, NewFileError(name, t.problems)
	}
	if err := t.decode(root, msg); err != nil {
		return nil, admission.Policy{}, fmt.Errorf("reading %s: %w", name, err)
	}
	core, violations := FromProto(msg)
	for _, v := range append(violations, core.Validate()...) {
		p := parsePath(v.Field)
		if t.unsure(p.key) {
			continue
		}
		node := t.nearest(p.key)
		message := v.Message
		if t.isValueOf(node, p.key) && !strings.Contains(message, "found") {
			message += ", got " + Found(node)
		}
		t.problems = append(t.problems, Problem{Line: node.Line, Column: node.Column, Field: v.Field, Message: message})
	}
	if err := NewFileError(name, t.problems); err != nil {
		return nil, admission.Policy{}, err
	}
	return msg, core, nil
}

var decodePosition = regexp.MustCompile(`(?m)^:(\d+):(\d+) `)

// decode fills msg with all that can be read, and reports each scalar that
// can't. The decoder takes bytes only, so that the node is written out and read
// again, and the decoder's positions are those of the copy.
func (t *tree) decode(root *yaml.Node, msg *admitv1.Policy) error {
	data, err := yaml.Marshal(root)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		if len(t.problems) > 0 {
			return nil // an alias to outside the node, reported above
		}
		return err
	}
	err = protoyaml.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, msg)
	if err == nil {
		return nil
	}
	refused := map[[2]string]bool{}
	for _, m := range decodePosition.FindAllStringSubmatch(err.Error(), -1) {
		refused[[2]string{m[1], m[2]}] = true
	}
	alongside(root, doc.Content[0], func(original, copied *yaml.Node) {
		at := [2]string{strconv.Itoa(copied.Line), strconv.Itoa(copied.Column)}
		if refused[at] && t.fields[original] != nil && !t.broken[original] {
			t.wrongValue(original)
		}
	})
	if len(t.problems) == 0 {
		return err
	}
	return nil
}

// alongside calls f with the nodes at the same place of two trees of one shape.
func alongside(a, b *yaml.Node, f func(a, b *yaml.Node)) {
	f(a, b)
	for i := range min(len(a.Content), len(b.Content)) {
		alongside(a.Content[i], b.Content[i], f)
	}
}
