package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Reader turns the nodes of a file into values and collects what is wrong with
// them: what was expected and what was found, with its place. What can't be read
// is the least value allowed, so that reading goes on and all is reported at once.
type Reader struct {
	Problems []Problem
}

// Fail notes what is wrong with a node.
func (r *Reader) Fail(node *yaml.Node, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{Line: node.Line, Column: node.Column, Message: fmt.Sprintf(format, args...)})
}

// Pair is a key of a mapping with its value.
type Pair struct {
	Key   *yaml.Node
	Value *yaml.Node
}

// Pairs returns a mapping's pairs whose keys are scalars and given once.
func (r *Reader) Pairs(node *yaml.Node, what string) []Pair {
	if node.Kind != yaml.MappingNode {
		r.Fail(node, "expected %s, got %s", what, Found(node))
		return nil
	}
	var out []Pair
	given := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.Fail(key, "expected a name as key, got %s", Found(key))
		case given[key.Value]:
			r.Fail(key, "%s is given twice", key.Value)
		default:
			given[key.Value] = true
			out = append(out, Pair{key, value})
		}
	}
	return out
}

// Known is Pairs without those whose key is not one of names; kind is what a
// key is called.
func (r *Reader) Known(node *yaml.Node, what, kind string, names []string) []Pair {
	pairs := r.Pairs(node, what)
	return slices.DeleteFunc(pairs, func(p Pair) bool {
		if slices.Contains(names, p.Key.Value) {
			return false
		}
		message, _ := Unknown(kind, p.Key.Value, names)
		r.Fail(p.Key, "%s", message)
		return true
	})
}

// Items returns the nodes of a list.
func (r *Reader) Items(node *yaml.Node, what string) []*yaml.Node {
	if node.Kind != yaml.SequenceNode {
		r.Fail(node, "expected %s, got %s", what, Found(node))
		return nil
	}
	return node.Content
}

// Text returns a scalar as it stands.
func (r *Reader) Text(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.Fail(node, "expected a text, got %s", Found(node))
		return ""
	}
	return node.Value
}

// Texts returns a list of scalars.
func (r *Reader) Texts(node *yaml.Node) []string {
	out := []string{}
	for _, item := range r.Items(node, "a list of names") {
		out = append(out, r.Text(item))
	}
	return out
}

// Number returns a whole number within bounds.
func (r *Reader) Number(node *yaml.Node, least, most int64) int64 {
	n, err := strconv.ParseInt(node.Value, 10, 64)
	if node.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		r.Fail(node, "expected a whole number from %d to %d, got %s", least, most, Found(node))
		return least
	}
	return n
}

// Duration returns a duration within bounds.
func (r *Reader) Duration(node *yaml.Node, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || d < least || d > most {
		r.Fail(node, "expected a duration from %s to %s, got %s", Short(least), Short(most), Found(node))
		return least
	}
	return d
}

// Flag returns a truth value.
func (r *Reader) Flag(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		r.Fail(node, "expected true or false, got %s", Found(node))
		return false
	}
	return node.Value == "true"
}

// Short writes a duration without the zero units at its end: 1h instead of
// 1h0m0s.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Real returns a decimal number within bounds.
func (r *Reader) Real(node *yaml.Node, least, most float64) float64 {
	x, err := strconv.ParseFloat(node.Value, 64)
	if node.Kind != yaml.ScalarNode || err != nil || !(least <= x && x <= most) {
		r.Fail(node, "expected a number from %g to %g, got %s", least, most, Found(node))
		return least
	}
	return x
}
