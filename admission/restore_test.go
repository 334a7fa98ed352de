package admission

import "testing"

// A restored state gives out places in line in the same order, though it came to
// know a tenant's lanes in another one.
func TestRestoredTenantsAreSeatedInTheSameOrder(t *testing.T) {
	one := int64(1)
	s := tell(t, PoolPolicy{
		Lanes:      []LanePolicy{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Categories: map[string]string{"a": "a", "b": "b", "c": "c"},
		Defaults:   TenantPolicy{PreferredActive: &one},
	})
	due := func(category string) EntrySpec {
		return EntrySpec{Tenant: "t", Key: category, Category: category}
	}
	s.plan(due("c"), due("b"))
	again := restored(t, s.State)
	// A permit in the highest lane makes the tenant borrow in both others.
	e := Entry{Index: s.index + 1, T: s.t, W: s.w, Ops: []Op{&Acquire{Pool: "p", Tenant: "t", Category: "a", Cost: 1}}}
	s.Apply(e)
	again.Apply(e)
	sameRows(t, s.State, again)
}
