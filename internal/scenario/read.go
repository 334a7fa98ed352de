package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/internal/policy"
)

// reader turns nodes into values and collects what is wrong with them.
type reader struct {
	file     string
	problems []policy.Problem
	// runs is how often the groups around what is being read run it.
	runs int64
}

func (r *reader) fail(node *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, policy.Problem{
		Line: node.Line, Column: node.Column, Message: fmt.Sprintf(format, args...),
	})
}

// pair is a key of a mapping with its value.
type pair struct {
	key   *yaml.Node
	value *yaml.Node
}

// pairs returns a mapping's pairs whose keys are scalars and given once.
func (r *reader) pairs(node *yaml.Node, what string) []pair {
	if node.Kind != yaml.MappingNode {
		r.fail(node, "expected %s, got %s", what, policy.Found(node))
		return nil
	}
	var out []pair
	given := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.fail(key, "expected a name as key, got %s", policy.Found(key))
		case given[key.Value]:
			r.fail(key, "%s is given twice", key.Value)
		default:
			given[key.Value] = true
			out = append(out, pair{key, value})
		}
	}
	return out
}

// known is pairs without those whose key is not one of names; kind is what a
// key is called.
func (r *reader) known(node *yaml.Node, what, kind string, names []string) []pair {
	pairs := r.pairs(node, what)
	return slices.DeleteFunc(pairs, func(p pair) bool {
		if slices.Contains(names, p.key.Value) {
			return false
		}
		message, _ := policy.Unknown(kind, p.key.Value, names)
		r.fail(p.key, "%s", message)
		return true
	})
}

func (r *reader) items(node *yaml.Node, what string) []*yaml.Node {
	if node.Kind != yaml.SequenceNode {
		r.fail(node, "expected %s, got %s", what, policy.Found(node))
		return nil
	}
	return node.Content
}

func (r *reader) text(node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.fail(node, "expected a text, got %s", policy.Found(node))
		return ""
	}
	return node.Value
}

func (r *reader) texts(node *yaml.Node) []string {
	out := []string{}
	for _, item := range r.items(node, "a list of names") {
		out = append(out, r.text(item))
	}
	return out
}

func (r *reader) number(node *yaml.Node, least, most int64) int64 {
	n, err := strconv.ParseInt(node.Value, 10, 64)
	if node.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		r.fail(node, "expected a whole number from %d to %d, got %s", least, most, policy.Found(node))
		return least
	}
	return n
}

func (r *reader) duration(node *yaml.Node, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(node.Value)
	if node.Kind != yaml.ScalarNode || err != nil || d < least || d > most {
		r.fail(node, "expected a duration from %s to %s, got %s", short(least), short(most), policy.Found(node))
		return least
	}
	return d
}

func (r *reader) flag(node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" {
		r.fail(node, "expected true or false, got %s", policy.Found(node))
		return false
	}
	return node.Value == "true"
}

// short writes a duration without the zero units at its end: 1h instead of
// 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
