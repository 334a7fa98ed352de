package descriptor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/descriptor"
)

type match = map[string]string

func edge(rules ...admission.EnvoyRule) *admission.PoolPolicy {
	p := &admission.PoolPolicy{
		Name: "edge",
		Buckets: []admission.BucketPolicy{
			{Name: "site", Scope: admission.ScopePool, Capacity: 9, Refill: 9, Period: time.Second},
			{Name: "each", Scope: admission.ScopeTenant, Capacity: 9, Refill: 9, Period: time.Second},
		},
		Envoy: rules,
	}
	for i := range p.Envoy {
		if len(p.Envoy[i].Buckets) == 0 {
			p.Envoy[i].Buckets = []string{"each"}
		}
	}
	return p
}

// d makes a descriptor of keys and values in turn.
func d(pairs ...string) (entries []descriptor.Entry) {
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, descriptor.Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return entries
}

func TestTheFirstRuleThatMatchesDecides(t *testing.T) {
	rules := descriptor.Compile(edge(
		admission.EnvoyRule{Name: "health", Match: match{"path": "/healthz"}},
		admission.EnvoyRule{Name: "static", Match: match{"path": "/static/*"}},
		admission.EnvoyRule{Name: "any", Match: match{"path": "*"}},
		admission.EnvoyRule{Name: "late", Match: match{"path": "/late"}},
		admission.EnvoyRule{Name: "both", Match: match{"path": "/login", "ip": "*"}},
		admission.EnvoyRule{Name: "other", Match: match{"path": "*", "ip": "10.*"}},
		admission.EnvoyRule{Name: "nothing", Match: match{"empty": ""}},
	))
	for _, c := range []struct {
		want string
		d    []descriptor.Entry
	}{
		{"health", d("path", "/healthz")},
		{"static", d("path", "/static/a.css")},
		{"static", d("path", "/static/")},
		{"any", d("path", "/static")},
		{"any", d("path", "")},
		{"any", d("path", "/late")},
		{"both", d("path", "/login", "ip", "10.1.1.1")},
		{"both", d("ip", "10.1.1.1", "path", "/login")}, // in any order
		{"other", d("path", "/x", "ip", "10.1.1.1")},
		{"", d("path", "/x", "ip", "11.1.1.1")},
		{"nothing", d("empty", "")},
		{"", d("empty", "x")},
		{"", d("path", "/login", "ip", "10.1.1.1", "more", "x")}, // no more keys
		{"", d("ip", "10.1.1.1")},                                // no fewer
		{"", d("path", "/healthz", "path", "/healthz")},          // a key twice
		{"", d()},
	} {
		got := ""
		if r := rules.Match(c.d); r != nil {
			got = r.Name
		}
		if got != c.want {
			t.Errorf("%v is for rule %q, want %q", c.d, got, c.want)
		}
	}
}

func TestWhoseBuckets(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		rule admission.EnvoyRule
		d    []descriptor.Entry
		want string
	}{
		{admission.EnvoyRule{Name: "login", Match: match{"path": "/login", "ip": "*"}}, d("path", "/login", "ip", "::1"), "login/::1"},
		{admission.EnvoyRule{Name: "page", Match: match{"path": "/*"}}, d("path", "/a/b"), "page//a/b"},
		{admission.EnvoyRule{Name: "two", Match: match{"a": "*", "b": "*"}}, d("b", "2", "a", "1"), "two/1/2"},
		{admission.EnvoyRule{Name: "all", Match: match{"a": "1"}}, d("a", "1"), "all"},
		{admission.EnvoyRule{Name: "user", Tenant: "{user}", Match: match{"user": "*"}}, d("user", "bob_1"), "bob_1"},
		{admission.EnvoyRule{Name: "key", Tenant: "acme", Match: match{"key": "s3cret"}}, d("key", "s3cret"), "acme"},
		{admission.EnvoyRule{Name: "site", Buckets: []string{"site"}, Match: match{"a": "*"}}, d("a", "1"), ""},
		{admission.EnvoyRule{Name: "site", Buckets: []string{"site"}, Tenant: "{a}", Match: match{"a": "*"}}, d("a", "1"), "1"},
		{admission.EnvoyRule{Name: "user", Tenant: "{user}", Match: match{"user": "*"}}, d("user", "Zoë"),
			"sha256:" + strings.Repeat("0", 32)},
	} {
		r := descriptor.Compile(edge(c.rule)).Match(c.d)
		if r == nil {
			t.Fatalf("%s does not match", c.rule.Name)
		}
		got := r.Part(c.d, 3)
		if strings.HasPrefix(c.want, "sha256:") {
			if !strings.HasPrefix(got.Tenant, "sha256:") || len(got.Tenant) != len(c.want) {
				t.Errorf("%s: tenant %q, want a hash", c.rule.Name, got.Tenant)
			}
		} else if got.Tenant != c.want || got.Tokens != 3 {
			t.Errorf("%s: tenant %q and %d tokens, want %q and 3", c.rule.Name, got.Tenant, got.Tokens, c.want)
		}
	}
	// No two descriptors of a rule share a tenant.
	two := descriptor.Compile(edge(admission.EnvoyRule{Name: "two", Match: match{"a": "*", "b": "*"}}))
	seen := map[string][]descriptor.Entry{}
	values := []string{"", "/", "x", "x/y", "y", long, long + "y", "ü", "sha256:", seenHash(two)}
	for _, a := range values {
		for _, b := range values {
			entries := d("a", a, "b", b)
			id := two.Match(entries).Part(entries, 1).Tenant
			if len(id) > 128 || seen[id] != nil {
				t.Errorf("%v and %v are both %q", entries, seen[id], id)
			}
			seen[id] = entries
		}
	}
}

// seenHash is what stands for a value with a slash, as somebody might send it.
func seenHash(rules *descriptor.Rules) string {
	entries := d("a", "/", "b", "x")
	id := rules.Match(entries).Part(entries, 1).Tenant
	return strings.TrimSuffix(strings.TrimPrefix(id, "two/"), "/x")
}
