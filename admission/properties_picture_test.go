package admission

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A picture has the rows that the shedding had when it was made, however the state
// has moved on since. It tells retry_after the same or not at all.
func TestPicturesStay(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		type shot struct {
			*Picture
			want []HeldTenant
		}
		var shots []shot
		for _, p := range h.policy.Pools {
			pic, err := h.Picture(h.t, h.w, p.Name)
			if err != nil {
				t.Fatal(err)
			}
			all := h.Shedding(h.t, h.w, SheddingQuery{Pool: p.Name, HeldRows: 1000})
			want(t, "lanes and totals", fmt.Sprint(pic.Lanes, pic.Totals, pic.At, pic.Index), fmt.Sprint(all.Lanes, all.Totals, all.At, all.Index))
			shots = append(shots, shot{pic, all.Held})
		}
		for range rapid.IntRange(0, 3).Draw(t, "entries since") {
			h.apply(h.next(t, 6))
		}
		for _, s := range shots {
			got := slices.Collect(s.All(HeldFilter{}))
			for i, row := range got {
				if j := slices.IndexFunc(s.want, func(o HeldTenant) bool { return byName(row, o) == 0 }); j >= 0 && row.RetryAfter == Absent {
					got[i].RetryAfter = s.want[j].RetryAfter
				}
			}
			slices.SortFunc(got, byName)
			slices.SortFunc(s.want, byName)
			want(t, "held rows", fmt.Sprint(got), fmt.Sprint(s.want))
			checkPictureParts(t, s.Picture)
		}
	})
}

func byName(a, b HeldTenant) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Lane, b.Lane))
}

// checkPictureParts checks what is selected from a picture against the whole.
func checkPictureParts(t *rapid.T, p *Picture) {
	all := slices.Collect(p.All(HeldFilter{}))
	held := map[string]int64{}
	for _, row := range all {
		held[row.Tenant] += row.Due + row.Waiting
		for _, f := range []HeldFilter{{Tenant: row.Tenant}, {Lane: row.Lane}, {Reason: row.Reason}} {
			part := slices.Collect(p.All(f))
			others := slices.DeleteFunc(slices.Clone(all), func(o HeldTenant) bool {
				return f.Tenant != "" && o.Tenant != f.Tenant || f.Lane != "" && o.Lane != f.Lane ||
					f.Reason != ReasonNone && o.Reason != f.Reason
			})
			want(t, fmt.Sprintf("rows of %+v", f), fmt.Sprint(part), fmt.Sprint(others))
		}
	}
	n := rapid.IntRange(1, 3).Draw(t, "top")
	top := p.Top(n, HeldFilter{})
	want(t, "top tenants", len(top), min(n, len(held)))
	for i, one := range top {
		want(t, "held of "+one.Tenant, one.Due+one.Waiting, held[one.Tenant])
		if i > 0 && top[i-1].Due+top[i-1].Waiting < held[one.Tenant] {
			t.Errorf("%s comes after %s", one.Tenant, top[i-1].Tenant)
		}
		delete(held, one.Tenant)
	}
	for tenant, n := range held {
		if len(top) > 0 && n > top[len(top)-1].Due+top[len(top)-1].Waiting {
			t.Errorf("%s with %d is not among the top", tenant, n)
		}
	}
}

// A retry_after told with a held row comes true for a lone poll of that tenant and
// lane, and a millisecond earlier it would have been too early [I12].
func TestHeldRetryAfterComesTrue(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		for _, p := range h.pools.list {
			if h.w < h.highest { // what is counted as due is not by this wall
				return
			}
			if !p.quiet() {
				continue
			}
			for _, row := range h.Shedding(h.t, h.w, SheddingQuery{Pool: p.name, HeldRows: 1000}).Held {
				if row.RetryAfter == Absent || p.lane(row.Lane).batch.Size > 0 { // a batch may linger
					continue
				}
				poll := &NextDue{Pool: p.name, MaxItems: 1, Tenant: row.Tenant, Lanes: []string{row.Lane}}
				claims := func(after time.Duration) int {
					_, results := h.whatIf(t, after, poll)
					return len(results[0].(*NextDueResult).Claims)
				}
				want(t, fmt.Sprintf("claims at %+v", row), claims(row.RetryAfter), 1)
				want(t, fmt.Sprintf("claims before %+v", row), claims(row.RetryAfter-time.Millisecond), 0)
			}
		}
	})
}
