package raftstore

import (
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// What a Take takes is one entry of the log; that it is refused, or only asks, is told
// without one, and a restart forgets nothing of it.
func TestARefusedTakeWritesNothing(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.applyPolicy(admission.Policy{Pools: []admission.PoolPolicy{{
		Name: "edge",
		Buckets: []admission.BucketPolicy{
			{Name: "site", Scope: admission.ScopePool, Capacity: 5, Refill: 1, Period: time.Second},
			{Name: "each", Scope: admission.ScopeTenant, Capacity: 2, Refill: 1, Period: time.Second},
		},
	}}})
	take := func(tokens int64) (Answer, *admission.TakeResult) {
		a := n.do(&admission.Take{Pool: "edge", Parts: []admission.TakePart{
			{Buckets: []string{"site"}, Tokens: tokens}, {Tenant: "a", Buckets: []string{"each"}, Tokens: tokens},
		}})
		return a, a.Result.(*admission.TakeResult)
	}
	before := n.index()
	a, r := take(2)
	if r.Refused || n.index() != before+1 || a.Position == OffLog || a.Levels[0][0].Left != 3 || a.Levels[1][0].Left != 0 {
		t.Fatalf("granted: %+v %+v, at %d after %d", a, r, n.index(), before)
	}
	for _, tokens := range []int64{1, 0} {
		a, r = take(tokens)
		if !r.Refused || r.Held[0] != nil || r.Held[1].RetryAfter != time.Second || a.Position != OffLog || a.Levels[0][0].Left != 3 {
			t.Errorf("refused %d: %+v %+v", tokens, a, r)
		}
	}
	if a := n.do(&admission.Take{Pool: "edge"}); a.Result.(*admission.TakeResult).Refused || a.Position != OffLog {
		t.Errorf("nothing at all: %+v", a)
	}
	if n.index() != before+1 {
		t.Errorf("refusals moved the log from %d to %d", before+1, n.index())
	}
	n.restart()
	if _, r = take(1); !r.Refused {
		t.Error("a restart brought the tokens back")
	}
	clk.Advance(time.Second)
	if _, r = take(1); r.Refused {
		t.Errorf("a second later: %+v", r)
	}
	if a, r = take(-1); r.Refused || a.Position == OffLog || a.Levels[1][0].Left != 1 {
		t.Errorf("given back: %+v %+v", a, r)
	}
}
