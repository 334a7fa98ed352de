package simulate

import (
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
)

// expectation reads `name: {selectors, bounds}`, or `law: true`.
func (r *parser) expectation(node *yaml.Node) {
	names := slices.Sorted(maps.Keys(checks))
	pairs := r.Known(node, "an expectation", "expectation", names)
	if node.Kind == yaml.MappingNode && len(node.Content) != 2 {
		r.Fail(node, "expected one expectation")
		return
	}
	for _, p := range pairs {
		e := expectation{
			line: p.Key.Line, name: p.Key.Value, kind: checks[p.Key.Value], lo: math.Inf(-1), hi: math.Inf(1),
		}
		if e.kind.law != nil {
			if p.Value.Value != "true" {
				r.Fail(p.Value, "expected true, got %s", policy.Found(p.Value))
			}
		} else {
			r.bounds(p.Key, p.Value, &e)
		}
		if e.name == "fair_bound" {
			r.pairable(p.Key)
		}
		r.w.expect = append(r.w.expect, e)
	}
}

var boundKeys = []string{"at_least", "at_most", "between"}

func (r *parser) bounds(key, node *yaml.Node, e *expectation) {
	var of []string
	for _, p := range r.Known(node, "a mapping", "field of "+e.name, append(slices.Clone(e.kind.fields), boundKeys...)) {
		switch p.Key.Value {
		case "at_least":
			e.lo = r.value(p.Value, e.kind.unit)
		case "at_most":
			e.hi = r.value(p.Value, e.kind.unit)
		case "between":
			ends := r.Items(p.Value, "two values")
			if len(ends) != 2 {
				r.Fail(p.Value, "expected two values, the least and the most")
				continue
			}
			e.lo, e.hi = r.value(ends[0], e.kind.unit), r.value(ends[1], e.kind.unit)
		default:
			of = append(of, p.Key.Value+": "+r.selects(p, e))
		}
	}
	e.shown = strings.Join(of, ", ")
	if math.IsInf(e.lo, -1) && math.IsInf(e.hi, 1) && node.Kind == yaml.MappingNode {
		r.Fail(key, "expected at_least, at_most or between")
	}
	for _, needed := range []string{"bucket", "streams"} {
		if slices.Contains(e.kind.fields, needed) && !strings.Contains(e.shown, needed+": ") {
			r.Fail(key, "expected %s", needed)
		}
	}
}

func (r *parser) value(node *yaml.Node, u unit) float64 {
	switch u {
	case unitDuration:
		return float64(r.Duration(node, 0, 1000*maxSpan))
	case unitPart:
		return r.Real(node, 0, 1)
	}
	return float64(r.Number(node, 0, 1<<53))
}

// selects reads a field of a selector and returns how it is shown.
func (r *parser) selects(p policy.Pair, e *expectation) string {
	if p.Key.Value == "streams" {
		e.of.streams = r.streams(p.Value)
		return strings.Join(e.of.streams, " ")
	}
	name := r.Text(p.Value)
	var known []string
	switch p.Key.Value {
	case "pool":
		e.of.pool, known = name, r.poolNames()
	case "lane":
		e.of.lane = name
		for i := range r.w.policy.Pools {
			known = append(known, lanesOf(&r.w.policy.Pools[i])...)
		}
	case "stream":
		e.of.stream, known = name, r.streamNames()
	case "tenant":
		e.of.tenant = name
		for _, s := range r.w.Streams {
			known = append(known, s.Tenants...)
		}
	case "bucket":
		e.of.bucket = name
		for _, pool := range r.w.policy.Pools {
			for _, b := range pool.Buckets {
				if b.Scope == admission.ScopePool {
					known = append(known, b.Name)
				}
			}
		}
	case "reason":
		for why := admission.ReasonNone + 1; why.String() != "UNKNOWN"; why++ {
			known = append(known, why.String())
			if why.String() == name {
				e.of.reason = why
			}
		}
	}
	if !slices.Contains(known, name) {
		r.Fail(p.Value, "%s", unknown(p.Key.Value, name, known[:min(len(known), 30)]))
	}
	return name
}

// maxPairable bounds how many tenants are compared with each other.
const maxPairable = 2000

func (r *parser) pairable(node *yaml.Node) {
	tenants := map[string]map[string]bool{}
	for _, s := range r.w.Streams {
		if tenants[s.Pool] == nil {
			tenants[s.Pool] = map[string]bool{}
		}
		for _, t := range s.Tenants {
			tenants[s.Pool][t] = true
		}
		if n := len(tenants[s.Pool]); n > maxPairable {
			r.Fail(node, "expected at most %d tenants in a pool to be compared, got %d or more", maxPairable, n)
			return
		}
	}
}
