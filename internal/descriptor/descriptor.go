// Package descriptor maps the descriptors of Envoy's rate limit requests to what the
// rules of a pool's policy have them take. The core knows buckets and tenants; what a
// descriptor is stands here.
package descriptor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/admitd/admit/admission"
)

// Entry is a key of a descriptor with its value.
type Entry struct{ Key, Value string }

// Rules are those of one pool, ready to be asked. They never change.
type Rules struct {
	// groups are the rules with the same keys.
	groups map[string]*group
}

// group is rules with the same keys, in the order of the policy.
type group struct {
	// exact are those without a `*`, by their values; of equal ones the first.
	exact map[string]*Rule
	open  []*Rule
}

// Rule is one rule of a policy.
type Rule struct {
	admission.EnvoyRule
	place int
	// keys are those of Match, sorted; open those of them with a `*`.
	keys, open []string
	// owned says that it takes of TENANT buckets.
	owned bool
}

// Compile makes the rules of a valid pool ready.
func Compile(p *admission.PoolPolicy) *Rules {
	r := &Rules{groups: make(map[string]*group)}
	for i := range p.Envoy {
		r.add(newRule(p, i))
	}
	return r
}

func newRule(p *admission.PoolPolicy, place int) *Rule {
	rule := &Rule{EnvoyRule: p.Envoy[place], place: place}
	for key, value := range rule.Match {
		rule.keys = append(rule.keys, key)
		if strings.HasSuffix(value, "*") {
			rule.open = append(rule.open, key)
		}
	}
	slices.Sort(rule.keys)
	slices.Sort(rule.open)
	for _, b := range p.Buckets {
		rule.owned = rule.owned || b.Scope == admission.ScopeTenant && slices.Contains(rule.Buckets, b.Name)
	}
	return rule
}

func (r *Rules) add(rule *Rule) {
	keys := joined(rule.keys)
	if r.groups[keys] == nil {
		r.groups[keys] = &group{exact: make(map[string]*Rule)}
	}
	g := r.groups[keys]
	if len(rule.open) > 0 {
		g.open = append(g.open, rule)
		return
	}
	var values []string
	for _, key := range rule.keys {
		values = append(values, rule.Match[key])
	}
	if at := joined(values); g.exact[at] == nil {
		g.exact[at] = rule
	}
}

// joined makes one text of several, each with its length so that no two lists have
// the same.
func joined(texts []string) string {
	var b strings.Builder
	for _, s := range texts {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}

// Match returns the first rule that matches the descriptor, or nil.
func (r *Rules) Match(d []Entry) *Rule {
	sorted := slices.Clone(d)
	slices.SortFunc(sorted, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	keys, values := make([]string, len(d)), make([]string, len(d))
	for i, e := range sorted {
		keys[i], values[i] = e.Key, e.Value
	}
	g := r.groups[joined(keys)]
	if g == nil {
		return nil
	}
	found := g.exact[joined(values)]
	for _, rule := range g.open {
		if found != nil && found.place < rule.place {
			break
		}
		if rule.matches(sorted) {
			return rule
		}
	}
	return found
}

// matches says whether the rule takes the values of a descriptor with its keys.
func (r *Rule) matches(d []Entry) bool {
	return !slices.ContainsFunc(d, func(e Entry) bool {
		prefix, open := strings.CutSuffix(r.Match[e.Key], "*")
		return open && !strings.HasPrefix(e.Value, prefix) || !open && e.Value != prefix
	})
}

// Part returns what the rule has a descriptor take that it matches, for so many hits.
func (r *Rule) Part(d []Entry, hits int64) admission.TakePart {
	part := admission.TakePart{Category: r.Category, Buckets: r.Buckets, Tokens: hits, Shadow: r.Shadow}
	if r.owned || r.Tenant != "" {
		part.Tenant = r.tenant(d)
	}
	return part
}
