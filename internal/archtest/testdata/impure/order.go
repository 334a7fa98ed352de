package impure

import (
	"cmp"
	"maps"
	"slices"
)

type weights map[string]int64

func loops(m map[string]int64, w weights) (sum int64) {
	for k := range m { // want "order: a loop over a map"
		sum += m[k]
	}
	for range w { // want "order: a loop over a map"
	}
	//unordered: adding up comes out the same in any order
	for _, v := range m {
		sum += v
	}
	// The whole sum is wanted.
	//unordered: adding up comes out the same in any order,
	// and nothing else is done here.
	for _, v := range w {
		sum += v
	}
	//unordered:
	for _, v := range m { // want "order: a loop over a map"
		sum += v
	}
	//unordered: too far above the loop // want "order: this comment excuses nothing"

	for _, v := range m { // want "order: a loop over a map"
		sum += v
	}
	//unordered: nothing to excuse // want "order: this comment excuses nothing"
	for _, v := range []int64{1} {
		sum += v
	}
	return sum + m["a"]
}

func generic[M ~map[string]V, V any](m M) {
	for range m { // want "order: a loop over a map"
	}
}

func iterators(m map[string]int64) []string {
	for k := range maps.Keys(m) { // want "order: maps.Keys has no order"
		_ = k
	}
	_ = slices.Collect(maps.Values(m)) // want "order: maps.Values has no order"
	all := maps.All[map[string]int64]  // want "order: maps.All has no order"
	all(m)
	maps.DeleteFunc(m, func(string, int64) bool { return true }) // want "order: maps.DeleteFunc has no order"
	//unordered: each is judged by itself
	maps.DeleteFunc(m, func(_ string, v int64) bool { return v == 0 })
	for _, k := range slices.Sorted(maps.Keys(m)) {
		_ = k
	}
	m = maps.Clone(m)
	return slices.SortedFunc(maps.Keys(m), cmp.Compare)
}
