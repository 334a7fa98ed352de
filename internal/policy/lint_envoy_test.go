package policy_test

import (
	"testing"

	"github.com/admitd/admit/internal/policy"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const envoyFile = `pools:
- name: edge
  buckets: [{name: each, scope: TENANT, capacity: 10, refill: 10, period: 1s}]
  envoy:
    rules:
    - {name: some, match: {path: "/a*", ip: "*"}, buckets: [each]}
    - {name: one, match: {path: /a/b, ip: "*"}, buckets: [each]}
    - {name: other, match: {path: /c, ip: "*"}, buckets: [each], shadow: true}
    - {name: shared, match: {user: "*"}, buckets: [each], tenant: all}
`

func TestEnvoysRulesAreLinted(t *testing.T) {
	advice, err := policy.Lint("edge", []byte(envoyFile))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Problem{
		{Line: 7, Column: 7, Field: "pools[0].envoy.rules[1]", Message: `never reached: rule "some" before it matches all that it does`},
		{Line: 8, Column: 74, Field: "pools[0].envoy.rules[2].shadow", Message: "the rule only watches: what it would refuse is let through"},
		{Line: 9, Column: 67, Field: "pools[0].envoy.rules[3].tenant", Message: "all values that match share the buckets of one tenant"},
	}
	if len(advice) != len(want) {
		t.Fatalf("advice %+v", advice)
	}
	for i := range want {
		if advice[i] != want[i] {
			t.Errorf("got  %+v\nwant %+v", advice[i], want[i])
		}
	}
}

// A diff names rules, and tells of their order, which decides.
func TestEnvoysRulesAreCompared(t *testing.T) {
	rule := func(name string, buckets ...string) *admitv1.EnvoyRule {
		return &admitv1.EnvoyRule{Name: name, Match: map[string]string{"k": "*"}, Buckets: buckets}
	}
	edge := func(rules ...*admitv1.EnvoyRule) *admitv1.Policy {
		return &admitv1.Policy{Pools: []*admitv1.Pool{{Name: "edge", Envoy: &admitv1.Envoy{Rules: rules}}}}
	}
	got := policy.Diff(edge(rule("a", "x"), rule("b", "x")), edge(rule("b", "x", "y"), rule("a", "x")))
	want := []policy.Change{
		{Field: "pools[edge].envoy.rules[b].buckets", Was: "x", Is: "x, y"},
		{Field: "pools[edge].envoy.rules", Was: "a, b", Is: "b, a"},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v", got)
	}
}
