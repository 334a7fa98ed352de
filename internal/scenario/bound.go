package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// bound is a count or level that is wanted: a number, or any between two.
type bound struct{ lo, hi int64 }

func (b bound) holds(n int64) bool { return b.lo <= n && n <= b.hi }

func (b bound) String() string {
	if b.lo == b.hi {
		return fmt.Sprint(b.lo)
	}
	return fmt.Sprintf("between %d and %d", b.lo, b.hi)
}

// check compares one number.
func (b bound) check(n int64) (want, got string, ok bool) {
	return b.String(), fmt.Sprint(n), b.holds(n)
}

func (r *reader) bound(node *yaml.Node) bound {
	if node.Kind != yaml.MappingNode {
		n := r.Number(node, -maxTokens, math.MaxInt64)
		return bound{n, n}
	}
	pairs := r.Known(node, "a number or {between: [lo, hi]}", "key", []string{"between"})
	if len(pairs) == 0 {
		if len(node.Content) == 0 {
			r.Fail(node, "expected a number or {between: [lo, hi]}, got nothing")
		}
		return bound{}
	}
	ends := r.Items(pairs[0].Value, "two numbers")
	if len(ends) != 2 {
		r.Fail(pairs[0].Value, "expected two numbers, got %d", len(ends))
		return bound{}
	}
	return bound{r.Number(ends[0], -maxTokens, math.MaxInt64), r.Number(ends[1], -maxTokens, math.MaxInt64)}
}

// bounds are numbers by name.
type bounds map[string]bound

func (r *reader) bounds(node *yaml.Node) bounds {
	out := bounds{}
	for _, p := range r.Pairs(node, "numbers by name") {
		out[p.Key.Value] = r.bound(p.Value)
	}
	return out
}

// check compares the numbers named here; have holds the others too.
func (b bounds) check(have map[string]int64) (want, got string, ok bool) {
	ok = true
	var wants, gots []string
	for _, name := range slices.Sorted(maps.Keys(b)) {
		n, known := have[name]
		wants = append(wants, fmt.Sprintf("%s: %s", name, b[name]))
		if !known {
			gots = append(gots, name+": none")
			ok = false
			continue
		}
		gots = append(gots, fmt.Sprintf("%s: %d", name, n))
		ok = ok && b[name].holds(n)
	}
	return braces(wants), braces(gots), ok
}

func braces(items []string) string { return "{" + strings.Join(items, ", ") + "}" }

func brackets(items []string) string { return "[" + strings.Join(items, ", ") + "]" }
