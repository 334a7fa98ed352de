package admission

import "testing"

// A table that is nearly empty again moves to a small map, and finds all the same.
func TestTablesGiveBackTheirRoom(t *testing.T) {
	for name, kept := range map[string]int{"a few are left": 7, "none is left": 0} {
		t.Run(name, func(t *testing.T) {
			const most = 100 * fewRows
			var rows table[int, int]
			for i := range most {
				rows.set(i, i)
			}
			for i := kept; i < most; i++ {
				rows.drop(i)
			}
			want(t, "rows", rows.len(), kept)
			want(t, "room is given back", rows.most <= 8*fewRows, true)
			for i := range kept {
				want(t, "row", rows.get(i), i)
			}
			rows.set(most, 1)
			want(t, "rows again", rows.len(), kept+1)
		})
	}
}
