// Package envoyimport turns a configuration of the reference rate limit service for
// Envoy into a policy that decides the same descriptors alike, and names what has no
// equal.
package envoyimport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Imported is what a file comes to.
type Imported struct {
	Policy *admitv1.Policy
	// Lost says which limits are not as they were, Notes what else has no equal.
	Lost, Notes []policy.Problem
}

// Read turns a file into a policy with one pool; name is what errors call the file. The
// error is a *policy.FileError with all that is wrong in it.
func Read(name string, data []byte) (*Imported, error) {
	root, err := policy.ParseYAML(name, data)
	if err != nil {
		return nil, err
	}
	var r reader
	domain, descriptors := r.root(root)
	if err := policy.NewFileError(name, r.Problems); err != nil {
		return nil, err
	}
	m := &importer{pool: &admitv1.Pool{Name: domain.Value, Envoy: &admitv1.Envoy{}}, names: map[string]bool{}}
	m.level(nil, descriptors)
	m.out.Policy = &admitv1.Policy{Pools: []*admitv1.Pool{m.pool}}
	core, violations := policy.FromProto(m.out.Policy)
	for _, v := range append(violations, core.Validate()...) {
		r.Fail(domain, "has no equal in a policy: %s: %s", v.Field, v.Message)
	}
	return &m.out, policy.NewFileError(name, r.Problems)
}

// importer writes the rules of one domain.
type importer struct {
	pool  *admitv1.Pool
	names map[string]bool
	out   Imported
}

func tell(to *[]policy.Problem, at *yaml.Node, format string, args ...any) {
	*to = append(*to, policy.Problem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)})
}

// level writes the rules of descriptors side by side, under those that they are nested
// in. The reference service looks for the value first, then for a beginning of it, then
// for the key alone, and never goes back; here the first rule that matches decides. So
// they stand in that order, and where the more specific one leaves open what a later one
// limits, a rule between them lets it pass.
func (m *importer) level(above []*configured, list []*configured) {
	sorted := slices.Clone(list)
	first := func(d *configured) int {
		return slices.IndexFunc(list, func(o *configured) bool { return o.key == d.key })
	}
	slices.SortStableFunc(sorted, func(a, b *configured) int { return cmp.Or(first(a)-first(b), a.breadth()-b.breadth()) })
	for i, d := range sorted {
		path := append(slices.Clone(above), d)
		own := limitsOf(path)
		if d.limit != nil {
			m.rule(path, d)
		}
		m.level(path, d.nested)
		for _, later := range sorted[i+1:] {
			if later.key == d.key && later.breadth() > d.breadth() && later.takes(d.value) {
				m.shield(above, d, later, own)
			}
		}
		m.unequal(d)
	}
}

// breadth is how much of a key's values a descriptor takes: one, some or all.
func (d *configured) breadth() int {
	switch {
	case d.value == "":
		return 2
	case strings.HasSuffix(d.value, "*"):
		return 1
	}
	return 0
}

// takes says whether the descriptor takes values of another's key.
func (d *configured) takes(value string) bool {
	prefix, open := strings.CutSuffix(d.value, "*")
	return d.value == "" || open && strings.HasPrefix(value, prefix)
}

// limitsOf returns the paths with a limit from a descriptor down, as match has them.
func limitsOf(path []*configured) (all []map[string]string) {
	last := path[len(path)-1]
	if match := matchOf(path); last.limit != nil && len(match) == len(path) {
		all = append(all, match)
	}
	for _, d := range last.nested {
		all = append(all, limitsOf(append(slices.Clone(path), d))...)
	}
	return all
}

// shield lets pass what a broader descriptor limits and d, which comes before it, does
// not. own are the limits from d down.
func (m *importer) shield(above []*configured, d, broader *configured, own []map[string]string) {
	for _, match := range limitsOf(append(slices.Clone(above), broader)) {
		if match[d.key] = openValue(d.value); len(match) <= len(above) {
			continue // it has the key twice
		}
		if slices.ContainsFunc(own, func(o map[string]string) bool { return policy.Covers(o, match) }) {
			continue
		}
		own = append(own, match)
		m.pool.Envoy.Rules = append(m.pool.Envoy.Rules, &admitv1.EnvoyRule{
			Name: m.name(pathName(append(slices.Clone(above), d)) + ".open"), Match: match, Unlimited: true,
		})
	}
}

func openValue(v string) string {
	if v == "" {
		return "*"
	}
	return v
}

func matchOf(path []*configured) map[string]string {
	match := make(map[string]string, len(path))
	for _, d := range path {
		match[d.key] = openValue(d.value)
	}
	return match
}

// rule writes the rule of a descriptor that has a limit.
func (m *importer) rule(path []*configured, d *configured) {
	match := matchOf(path)
	if len(match) < len(path) {
		tell(&m.out.Lost, d.node, "a descriptor with a key twice has no equal: it is let pass")
		return
	}
	name := d.limit.name
	if name == "" {
		name = pathName(path)
	}
	rule := &admitv1.EnvoyRule{Name: m.name(name), Match: match, Unlimited: d.limit.unlimited}
	if !rule.Unlimited {
		bucket, ok := m.bucket(d.limit)
		if !ok {
			tell(&m.out.Lost, d.node, "a pool has at most %d different limits: this one is let pass", admission.MaxBuckets)
			return
		}
		rule.Buckets, rule.Shadow, rule.Tenant = []string{bucket}, d.shadow, tenantOf(rule.Name, path)
	}
	m.pool.Envoy.Rules = append(m.pool.Envoy.Rules, rule)
}

// tenantOf names whose bucket it is, where not all values with a `*` have their own.
func tenantOf(rule string, path []*configured) string {
	if !slices.ContainsFunc(path, func(d *configured) bool { return d.shared && d.breadth() == 1 }) {
		return "" // which each has
	}
	tenant := rule
	for _, d := range path {
		if d.breadth() > 0 && !(d.shared && d.breadth() == 1) {
			tenant += "/{" + d.key + "}"
		}
	}
	return tenant
}

// bucket returns the name of the bucket with that limit: rules with equal ones share it,
// and each has tenants of its own.
func (m *importer) bucket(l *limit) (name string, ok bool) {
	b := &admitv1.Bucket{Name: fmt.Sprintf("%d-per-%s", l.requests, l.unit), Scope: admitv1.Bucket_TENANT}
	if l.requests == 0 {
		b.Name, b.Blocked = "nothing", true
	} else {
		b.Capacity, b.Refill = &l.requests, &l.requests
		b.Period = durationpb.New(time.Duration(units[l.unit]) * time.Second)
	}
	if slices.ContainsFunc(m.pool.Buckets, func(o *admitv1.Bucket) bool { return o.GetName() == b.GetName() }) {
		return b.GetName(), true
	}
	if len(m.pool.Buckets) == admission.MaxBuckets {
		return "", false
	}
	m.pool.Buckets = append(m.pool.Buckets, b)
	return b.GetName(), true
}

// unequal tells what of a descriptor has no equal.
func (m *importer) unequal(d *configured) {
	if d.replaces != nil {
		tell(&m.out.Lost, d.replaces, "replaces has no equal: all limits that a request's descriptors match hold together")
	}
	if d.metric != nil {
		tell(&m.out.Notes, d.metric, "%s has no equal: metrics are by rule; `admitctl tenant list` shows who uses how much", d.metric.Value)
	}
	for _, key := range d.strange {
		tell(&m.out.Lost, key, "%s has no equal", key.Value)
	}
	if d.shared && d.breadth() != 1 {
		tell(&m.out.Notes, d.node, "share_threshold says nothing where the value has no * at its end")
	}
}

// name returns a name of that kind that no other rule has.
func (m *importer) name(like string) string {
	const most = 64
	like = strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("._-", c) {
			return c
		}
		return '-'
	}, like)
	name := like[:min(len(like), most)]
	for n := 2; m.names[name]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		name = like[:min(len(like), most-len(suffix))] + suffix
	}
	m.names[name] = true
	return name
}

// pathName names a rule by the keys and values that lead to it.
func pathName(path []*configured) string {
	var parts []string
	for _, d := range path {
		part := d.key
		if d.value != "" {
			part += "_" + strings.TrimSuffix(d.value, "*")
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ".")
}
