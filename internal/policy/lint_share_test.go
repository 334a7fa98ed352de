package policy_test

import (
	"testing"

	"github.com/admitd/admit/internal/policy"
)

func TestSharesAreLinted(t *testing.T) {
	advice, err := policy.Lint("api", []byte(`pools:
- name: api
  buckets:
  - {name: half, scope: POOL, capacity: 10, refill: 1, period: 1s, share: {max: 5}}
  - {name: most, scope: POOL, capacity: 10, refill: 1, period: 1s, share: {max: 6}}
  - {name: none, scope: POOL, capacity: 10, refill: 1, period: 1s}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.Problem{
		{Line: 5, Column: 81, Field: "pools[0].buckets[1].share.max", Message: "more than half of capacity: what sidecars hold does not refill, and who asks the cluster waits for it"},
		{Line: 6, Column: 5, Field: "pools[0].buckets[2]", Message: `bucket "none" has no share: sidecars hold no tokens of the others either`},
	}
	if len(advice) != len(want) || advice[0] != want[0] || advice[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", advice, want)
	}
}
