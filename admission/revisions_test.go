package admission

import (
	"slices"
	"testing"
)

// The policies before the one in force are kept, up to a number, through a restore too.
func TestPoliciesThatWereInForceAreKept(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 99})
	policy := func(most int64) Policy { return Policy{Pools: []PoolPolicy{{Name: "p", MaxActive: most}}} }
	const applied = keptRevisions + 3
	for n := int64(1); n <= applied; n++ {
		s.do(ApplyPolicy{Policy: policy(n), ExpectedRevision: AnyRevision})
		s.do(ApplyPolicy{Policy: policy(n), ExpectedRevision: AnyRevision}) // is no revision
	}
	for _, st := range []*State{s.State, restored(t, s.State)} {
		all := st.Revisions()
		want(t, "kept", len(all), keptRevisions+1)
		want(t, "the oldest", all[0].Revision, int64(applied+1-keptRevisions))
		for n := all[0].Revision; n <= applied+1; n++ {
			r, err := st.RevisionOf(n)
			want(t, "its policy", err == nil && r.Policy.equal(policy(n-1)), true)
		}
		_, err := st.RevisionOf(all[0].Revision - 1)
		want(t, "the error", err.Reason, RevisionNotFound)
		now, _ := st.RevisionOf(0)
		want(t, "in force", now.Revision, int64(applied+1))
	}
}

func TestChangedPools(t *testing.T) {
	before := Policy{Pools: []PoolPolicy{{Name: "gone"}, {Name: "same"}, {Name: "wider", MaxActive: 1}}}
	after := Policy{Pools: []PoolPolicy{{Name: "new"}, {Name: "same"}, {Name: "wider", MaxActive: 2}}}
	if got, want := after.ChangedPools(before), []string{"new", "wider", "gone"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
