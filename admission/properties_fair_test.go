package admission

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// shares counts what tenants get of polls while they are eligible: in the order
// of the same class before and after the call.
type shares struct {
	weights []int64
	pairs   map[[2]int]*pairShare
	equal   bool
}

// pairShare is the grants of two tenants since both became eligible, by weight:
// S_i·w_j − S_j·w_i, with its least and greatest value so far.
type pairShare struct{ at, least, most int64 }

func shareName(i int) string { return fmt.Sprint("t", i) }

// ordered returns which tenants stand in the order of class k.
func (f *shares) ordered(s *story, k classKind) []bool {
	in := make([]bool, len(f.weights))
	for i := range in {
		t := s.pools.byName("p").tenant(shareName(i))
		d := t.demand(t.share.lane)
		in[i] = d.row != nil && d.row.seats[fromEntries].seat == seatOf(k)
	}
	return in
}

// book books a call's claims to the pairs that were eligible throughout.
func (f *shares) book(t *rapid.T, before, after []bool, claims []Claim) {
	for i := range f.weights {
		for j := range i {
			key := [2]int{j, i}
			if !before[i] || !before[j] || !after[i] || !after[j] {
				delete(f.pairs, key)
				continue
			}
			p := f.pairs[key]
			if p == nil {
				p = &pairShare{}
				f.pairs[key] = p
			}
			for _, c := range claims {
				switch c.Permit.Tenant {
				case shareName(j):
					p.at += f.weights[i]
				case shareName(i):
					p.at -= f.weights[j]
				}
				p.least, p.most = min(p.least, p.at), max(p.most, p.at)
				if p.most-p.least > f.weights[i]+f.weights[j] { // |S_i/w_i − S_j/w_j| > 1/w_i + 1/w_j
					t.Fatalf("%s and %s of weights %d and %d are %d apart", shareName(j), shareName(i), f.weights[j], f.weights[i], p.most-p.least)
				}
			}
		}
	}
	f.checkFloor(t, before, after, claims)
}

// checkFloor checks that of N claims each of A equal tenants got N/A [I11].
func (f *shares) checkFloor(t *rapid.T, before, after []bool, claims []Claim) {
	eligible := 0
	got := map[string]int{}
	for i := range before {
		if before[i] {
			eligible++
		}
	}
	for _, c := range claims {
		got[c.Permit.Tenant]++
	}
	for i := range after {
		if f.equal && before[i] && after[i] && got[shareName(i)] < len(claims)/eligible {
			t.Fatalf("%s got %d of %d among %d", shareName(i), got[shareName(i)], len(claims), eligible)
		}
	}
}

// Over any interval in which two tenants have due entries and are eligible, what
// polls give them by weight differs by at most one unit of each [I10], and equal
// tenants get an equal part of each call [I11]. Tenants come and go meanwhile.
//
// Conditions: one lane and class, no cycle limit, weights that stay, and polls
// alone: an Acquire is demand only in its own entry, so one that is granted while
// nobody polls is no turn that the waiting have lost. Tags are whole 2^-20 parts of
// a turn: the bound is exact where the product of two weights is below 2^20, and
// equal parts are where the weight divides 2^20 (with others, one who enters at the
// floor may be ahead by less than such a part, and so by one turn, once).
func TestPollsServeByWeight(t *testing.T) {
	for _, preferred := range []int64{0, 1 << 30} { // all borrow, all are entitled
		kind := borrowing
		if preferred > 0 {
			kind = entitled
		}
		t.Run(fmt.Sprintf("class %d", kind), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { serveByWeight(t, r, preferred, kind) })
		})
	}
}

func serveByWeight(t *testing.T, r *rapid.T, preferred int64, kind classKind) {
	f := &shares{pairs: map[[2]int]*pairShare{}, equal: rapid.Bool().Draw(r, "equal")}
	policy := PoolPolicy{Name: "p", Defaults: TenantPolicy{PreferredActive: &preferred}}
	for i := range number(r, "tenants", 2, 6) {
		w := one[int64](r, "weight", 1, 2, 3, 7, 100, 1000)
		if f.equal {
			w = 4
		}
		f.weights = append(f.weights, w)
		o := TenantPolicy{ID: shareName(int(i)), Weight: w, MaxActive: one[int64](r, "max_active", 0, 0, 5)}
		if o.MaxActive > 0 && preferred > 0 {
			o.PreferredActive = &o.MaxActive
		}
		policy.Overrides = append(policy.Overrides, o)
	}
	s := tell(t, policy)
	s.quick = true
	keys := 0
	var claimed []Token
	r.Repeat(map[string]func(*rapid.T){
		"schedule": func(r *rapid.T) {
			var specs []EntrySpec
			tenant := shareName(int(number(r, "tenant", 0, len(f.weights)-1)))
			for range number(r, "entries", 1, 60) {
				keys++
				spec := in(0, tenant, fmt.Sprint(keys))
				spec.Route = routeNames[keys%2]
				specs = append(specs, spec)
			}
			s.plan(specs...)
		},
		"poll": func(r *rapid.T) {
			for range number(r, "polls", 1, 5) {
				before := f.ordered(s, kind)
				claims := s.poll(int(number(r, "max_items", 1, 20)))
				f.book(r, before, f.ordered(s, kind), claims)
				for _, c := range claims {
					claimed = append(claimed, c.Permit.Token)
				}
			}
		},
		"pause": func(r *rapid.T) {
			s.do(Pause{Pool: "p", Kind: TargetTenant, Name: shareName(int(number(r, "tenant", 0, len(f.weights)-1))), Resume: !odds(r, "pause", 3)})
		},
		"release": func(r *rapid.T) {
			for range min(len(claimed), 5) {
				s.release(claimed[0])
				claimed = claimed[1:]
			}
		},
		"wait": func(r *rapid.T) { s.wait(time.Second) },
		"": func(r *rapid.T) { // whoever left the order has a new interval before him
			in := f.ordered(s, kind)
			for key := range f.pairs {
				if !in[key[0]] || !in[key[1]] {
					delete(f.pairs, key)
				}
			}
		},
	})
	check(r, s.State)
}
