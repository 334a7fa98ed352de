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
			if covers(&l.pool.Envoy[j], r) {
				l.say(at, fmt.Sprintf("never reached: rule %q before it matches all that it does", l.pool.Envoy[j].Name))
				break
			}
		}
		if r.Shadow {
			l.say(at+".shadow", "the rule only watches: what it would refuse is let through")
		}
		if r.Tenant != "" && !strings.Contains(r.Tenant, "{") && strings.Contains(strings.Join(values(r), ""), "*") && l.ofTenant(r) {
			l.say(at+".tenant", "all values that match share the buckets of one tenant")
		}
	}
}

func values(r *admission.EnvoyRule) (all []string) {
	for _, v := range r.Match {
		all = append(all, v)
	}
	return all
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

// covers says whether the one rule matches all that the other does.
func covers(a, b *admission.EnvoyRule) bool {
	if len(a.Match) != len(b.Match) {
		return false
	}
	for key, other := range b.Match {
		own, ok := a.Match[key]
		prefix, open := strings.CutSuffix(own, "*")
		if !ok || own != other && !(open && strings.HasPrefix(other, prefix)) {
			return false
		}
	}
	return true
}
