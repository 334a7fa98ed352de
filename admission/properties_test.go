package admission

import (
	"testing"

	"pgregory.net/rapid"
)

// What a run of these tests tries is logged under -v; -rapid.checks sets how much
// (100 by default).

// Every law holds in every history, and all that is kept twice is true after each
// entry.
func TestHistories(t *testing.T) {
	n := NewTally()
	rapid.Check(t, func(t *rapid.T) {
		h := begin(t, n, policies.Draw(t, "policy"), answers{}, caps{}, scopes{}, &fences{}, floors{}, &rates{},
			&leases{}, &lives{}, &grids{}, &once{}, sheds{}, sorted{}, reclaims{}, waits{}, &exclusive{}, groups{})
		t.Repeat(map[string]func(*rapid.T){
			"entry": func(t *rapid.T) { h.apply(h.next(t, 6)) },
			"": func(t *rapid.T) {
				check(t, h.State)
				checkPrompt(t, h.State)
			},
		})
	})
	n.Report(t)
}
