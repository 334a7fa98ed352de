package policy

import (
	"fmt"
	"strings"

	"github.com/admitd/admit/admission"
)

// envoy says which rules nothing comes to, since those before take it all, and which
// only watch.
func (l *linter) envoy() {
	for i := range l.pool.Envoy {
		r := &l.pool.Envoy[i]
		at := fmt.Sprintf("%s.envoy.rules[%d]", l.at, i)
		for j := range l.pool.Envoy[:i] {
			if Covers(l.pool.Envoy[j].Match, r.Match) {
				l.say(at, fmt.Sprintf("never reached: rule %q before it matches all that it does", l.pool.Envoy[j].Name))
				break
			}
		}
		if r.Shadow {
			l.say(at+".shadow", "the rule only watches: what it would refuse is let through")
		}
		if r.Tenant != "" && !strings.Contains(r.Tenant, "{") && matchesMany(r) && l.ofTenant(r) {
			l.say(at+".tenant", "all values that match share the buckets of one tenant")
		}
	}
}

// matchesMany says whether descriptors of different values match the rule.
func matchesMany(r *admission.EnvoyRule) bool {
	for _, v := range r.Match {
		if strings.HasSuffix(v, "*") {
			return true
		}
	}
	return false
}

func (l *linter) ofTenant(r *admission.EnvoyRule) bool {
	for _, b := range l.pool.Buckets {
		for _, name := range r.Buckets {
			if b.Scope == admission.ScopeTenant && b.Name == name {
				return true
			}
		}
	}
	return false
}

// Covers says whether a rule for Envoy with the one match matches all that one with the
// other does.
func Covers(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for key, other := range b {
		own, ok := a[key]
		prefix, open := strings.CutSuffix(own, "*")
		if !ok || own != other && !(open && strings.HasPrefix(other, prefix)) {
			return false
		}
	}
	return true
}
