package simulate

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// stand is a pool of two lanes and tenants of the given weights, about which
// nothing has been decided: tests book whatever grants they like.
func stand(weights ...int64) (*run, []*want) {
	p := admission.PoolPolicy{Name: "p", MaxActive: 10, Lanes: []admission.LanePolicy{{Name: "high"}, {Name: "low", LeaveSlots: 2}}}
	for i, w := range weights {
		p.Overrides = append(p.Overrides, admission.TenantPolicy{ID: fmt.Sprint("t", i), Weight: w})
	}
	r := newRun(&Workload{policy: admission.Policy{Pools: []admission.PoolPolicy{p}}})
	var wants []*want
	for i := range weights {
		wants = append(wants, r.ledgers[0].tenant(fmt.Sprint("t", i)).want(r.ledgers[0].lanes[0]))
	}
	return r, wants
}

// prefer gives a tenant an entitlement.
func prefer(w *want, n int64) { w.tenant.preferred = n }

// wait puts n more Acquires of the want in line.
func wait(w *want, n int64) {
	w.waiting += n
	w.tenant.settle()
}

// give books a grant of a waiting Acquire, as a core would make it that may be
// wrong.
func give(r *run, w *want) {
	j := &job{source: &source{stream: &Stream{Cost: 1}, lane: w.lane, want: w}, waiting: true, worker: &worker{}}
	g := &grant{job: j}
	r.book(g)
	r.reclaimed(w.lane.ledger, []*grant{g})
}

// The bound between pairs is one unit of each, exactly.
func TestFairBound(t *testing.T) {
	tests := []struct {
		name    string
		weights []int64
		order   []int
		breach  bool
	}{
		{"in turn", []int64{1, 1}, []int{0, 1, 1, 0, 0, 1}, false},
		{"two ahead", []int64{1, 1}, []int{0, 0}, false},
		{"three ahead", []int64{1, 1}, []int{0, 0, 0}, true},
		{"behind, then ahead", []int64{1, 1}, []int{0, 0, 1, 1, 1}, true},
		{"by weight", []int64{3, 1}, []int{0, 0, 0, 1, 0, 0, 0, 1}, false},
		{"as if equal", []int64{3, 1}, []int{0, 1, 0, 1}, true},
		{"a third", []int64{1, 1, 1}, []int{0, 1, 0, 1, 0, 1}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, wants := stand(test.weights...)
			watchPairs(r)
			for _, w := range wants {
				wait(w, 10)
			}
			for _, i := range test.order {
				give(r, wants[i])
			}
			v := fairBound(r)
			if got := v.breach != ""; got != test.breach {
				t.Errorf("breach %q, held %q", v.breach, v.held)
			}
			if v.cases == 0 {
				t.Error("nothing was compared")
			}
		})
	}
}

// Who has no demand meanwhile is owed nothing for it.
func TestFairBoundForgetsWhoLeft(t *testing.T) {
	r, wants := stand(1, 1)
	watchPairs(r)
	wait(wants[0], 10)
	for range 5 {
		give(r, wants[0])
	}
	wait(wants[1], 1)
	give(r, wants[0])
	give(r, wants[1])
	wait(wants[1], 1)
	give(r, wants[0])
	give(r, wants[0])
	if v := fairBound(r); v.breach != "" {
		t.Error(v.breach)
	}
}

// An entitled tenant with demand comes before whoever borrows.
func TestEntitledFirst(t *testing.T) {
	for _, breach := range []bool{false, true} {
		r, wants := stand(1, 1)
		watchPromises(r)
		prefer(wants[0], 1)
		wait(wants[0], 2)
		wait(wants[1], 5)
		order := []int{0, 1, 0, 1} // the second unit of t0 is borrowed as well
		if breach {
			order = []int{1, 0}
		}
		for _, i := range order {
			give(r, wants[i])
		}
		if v := entitledFirst(r); (v.breach != "") != breach || v.cases == 0 {
			t.Errorf("breach %q, want one: %t, of %d cases", v.breach, breach, v.cases)
		}
	}
}

// Nothing of a lower lane passes the entitled of a higher one, lent or not.
func TestEntitledFirstAcrossLanes(t *testing.T) {
	r, wants := stand(1, 1)
	watchPromises(r)
	prefer(wants[0], 1)
	prefer(wants[1], 9)
	low := wants[1].tenant.want(r.ledgers[0].lanes[1])
	wait(wants[0], 1)
	wait(low, 1)
	give(r, low)
	if v := entitledFirst(r); v.breach == "" {
		t.Error("nothing was said")
	}
}

// A unit is owed within the sum of ceil(w_j/w_t) + 1 grants of the others that
// are entitled.
func TestReclaimBound(t *testing.T) {
	for _, test := range []struct {
		before int
		breach bool
	}{{4, false}, {5, true}} { // ceil(5/2) + 1 = 4
		r, wants := stand(2, 5)
		watchPromises(r)
		prefer(wants[0], 100)
		prefer(wants[1], 100)
		wait(wants[0], 10)
		wait(wants[1], 10)
		for range test.before {
			give(r, wants[1])
		}
		give(r, wants[0])
		if v := reclaimBound(r); (v.breach != "") != test.breach || v.cases == 0 {
			t.Errorf("after %d grants: breach %q, held %q", test.before, v.breach, v.held)
		}
	}
}

// Slots that are free while somebody waits for them are idle; those that the lane
// must leave, or that its tenant may not have, are not.
func TestIdleSlots(t *testing.T) {
	tests := []struct {
		name    string
		arrange func(r *run, high, low *want)
		idle    int64
	}{
		{"nobody waits", func(*run, *want, *want) {}, 0},
		{"one waits", func(_ *run, high, _ *want) { wait(high, 1) }, 1},
		{"more wait than there is", func(_ *run, high, _ *want) { wait(high, 50) }, 10},
		{"the lane leaves two", func(_ *run, _, low *want) { wait(low, 50) }, 8},
		{"both lanes", func(_ *run, high, low *want) { wait(high, 1); wait(low, 50) }, 9},
		{"at its cap", func(_ *run, high, _ *want) { high.tenant.maxActive = 3; wait(high, 50) }, 3},
		{"all taken", func(r *run, high, _ *want) { wait(high, 50); high.take(10); high.tenant.settle() }, 0},
		{"it yields", func(r *run, _, low *want) { low.lane.yielding = true; wait(low, 5) }, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r, wants := stand(1, 1)
			test.arrange(r, wants[0], wants[1].tenant.want(r.ledgers[0].lanes[1]))
			r.ledgers[0].measure()
			if got := r.ledgers[0].idle.now; got != test.idle {
				t.Errorf("%d idle, want %d", got, test.idle)
			}
		})
	}
}

// Due work is idle demand with a poll parked for it, and else unasked.
func TestUnaskedSlots(t *testing.T) {
	r, wants := stand(1)
	f := newFleet(r, &Workers{Pool: "p", kind: workLongPoll, Count: 2, MaxItems: 2, Lanes: []string{"high"}})
	r.fleets = append(r.fleets, f)
	wants[0].due = 20
	wants[0].tenant.settle()
	l := r.ledgers[0]
	l.measure()
	if l.idle.now != 0 || l.idle.unaskedNow != 10 {
		t.Errorf("nobody polls: %d idle, %d unasked", l.idle.now, l.idle.unaskedNow)
	}
	f.all[0].park()
	l.measure()
	if l.idle.now != 2 || l.idle.unaskedNow != 8 {
		t.Errorf("a poll for two is parked: %d idle, %d unasked", l.idle.now, l.idle.unaskedNow)
	}
}

// Jain's index is that of what each got over what its weight gave it.
func TestJain(t *testing.T) {
	r, wants := stand(1, 3)
	wait(wants[0], 200)
	wait(wants[1], 200)
	for i := range 100 {
		give(r, wants[min(i%4, 1)]) // one of four to the first
	}
	if got := jain(r, selector{}); got != 1 {
		t.Errorf("by weight: %g", got)
	}
	for range 100 {
		give(r, wants[0])
	}
	// 125 of the 50 due to it, and 75 of 150: (2.5 + 0.5)² / 2(2.5² + 0.5²)
	if got, want := jain(r, selector{}), 9.0/13; math.Abs(got-want) > 1e-9 {
		t.Errorf("all to one: %g, want %g", got, want)
	}
}

// A Zipf draw takes the k-th in proportion to 1/k^s.
func TestZipf(t *testing.T) {
	numbers := newRand(1, "test")
	z := newZipf(3, 1)
	var n [3]float64
	const draws = 30_000
	for range draws {
		n[z.draw(numbers)]++
	}
	for k, want := range []float64{6.0 / 11, 3.0 / 11, 2.0 / 11} {
		if got := n[k] / draws; math.Abs(got-want) > 0.01 {
			t.Errorf("rank %d: %g, want %g", k+1, got, want)
		}
	}
}

// What is spent beyond capacity and refill is seen, to a part of a token.
func TestBucketBound(t *testing.T) {
	for after, breach := range map[time.Duration]bool{time.Second - time.Microsecond*10: true, time.Second: false} {
		r := newRun(&Workload{policy: admission.Policy{Pools: []admission.PoolPolicy{{Name: "p", Buckets: []admission.BucketPolicy{
			{Name: "b", Scope: admission.ScopePool, Capacity: 10, Refill: 1, Period: time.Second},
		}}}}})
		r.now = admission.Instant(time.Hour)
		r.ledgers[0].charge(10)
		r.now = r.now.Add(after)
		r.ledgers[0].charge(1)
		v := bucketBound(r)
		if got := v.breach != ""; got != breach || v.cases != 2 {
			t.Errorf("a token %s later: breach %q, held %q, %d cases", after, v.breach, v.held, v.cases)
		}
	}
}
