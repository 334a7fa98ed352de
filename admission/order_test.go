package admission

import (
	"fmt"
	"testing"
	"time"
)

// A tenant of weight w moves on by exactly one unit in w grants, for every weight
// and for ever: what a division leaves is carried.
func TestWeightsAreExact(t *testing.T) {
	for _, weight := range []int64{1, 2, 3, 7, 1000, 999_983} {
		t.Run(fmt.Sprint(weight), func(t *testing.T) {
			s := tell(t, PoolPolicy{Overrides: []TenantPolicy{{ID: "a", Weight: weight}}})
			d := s.pools.byName("p").tenant("a").demand(s.pools.byName("p").lanes[0])
			s.registerDemand(d)
			for range 3 * weight {
				s.charge(d, borrowing)
			}
			want(t, "tag", d.row.tags[borrowing], 3*unit)
			want(t, "carried", d.row.rems[borrowing], 0)
		})
	}
}

// Another weight counts from the next grant on and forgets what was carried.
func TestAWeightChanges(t *testing.T) {
	policy := PoolPolicy{Overrides: []TenantPolicy{{ID: "a", Weight: 3}}}
	s := tell(t, policy)
	s.granted("a")
	d := s.pools.byName("p").tenants.get("a").demands[0]
	want(t, "carried", d.row.rems[borrowing], unit%3)
	policy.Overrides = []TenantPolicy{{ID: "a", Weight: 4}}
	s.put(policy)
	s.granted("a")
	want(t, "tag", d.row.tags[borrowing], unit/3+unit/4)
	want(t, "carried", d.row.rems[borrowing], 0)
}

// Who waits keeps an advantage; when nobody waits any more, everybody is level.
func TestBusyPeriodsEnd(t *testing.T) {
	s := tell(t, PoolPolicy{})
	claims := func(n int, key string) string {
		for i := range n {
			s.plan(in(0, "a", fmt.Sprint(key, i)), in(0, "b", fmt.Sprint(key, i)))
		}
		who := ""
		for _, c := range s.poll(n) {
			who += c.Permit.Tenant
		}
		return who
	}
	for range 5 {
		s.plan(in(0, "a", fmt.Sprint("alone", s.index)))
	}
	want(t, "claims of a alone", len(s.poll(9)), 5)
	want(t, "claims after a period of its own", claims(4, "x"), "abab")
	s.poll(99)
	s.wait(time.Second)
	want(t, "claims after a shared one", claims(4, "y"), "abab")
}

// Within a lane the entitled go before those that borrow, lowest tag first in each;
// a permit in a higher lane counts towards what a tenant is entitled to in a lower.
func TestTheEntitledGoFirst(t *testing.T) {
	two := int64(2)
	for _, c := range []struct {
		above int
		want  string
	}{
		{0, "[b0 b1 a0 b2 a1]"},
		{1, "[b0 a0 b1 a1 b2]"},
		{2, "[a0 b0 a1 b1 a2]"},
	} {
		s := tell(t, PoolPolicy{
			Lanes: []LanePolicy{{Name: "high"}, {Name: "low"}}, Categories: map[string]string{"x": "high"},
			Overrides: []TenantPolicy{{ID: "b", PreferredActive: &two}},
		})
		for range c.above {
			s.acquire(&Acquire{Pool: "p", Tenant: "b", Category: "x", Cost: 1})
		}
		for i := range 4 {
			s.plan(in(0, "a", fmt.Sprint("a", i)), in(0, "b", fmt.Sprint("b", i)))
		}
		want(t, fmt.Sprintf("claims with %d held above", c.above), fmt.Sprint(keys(s.poll(5))), c.want)
	}
}
