package raftstore

import (
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// What a sidecar leases is one entry of the log, and lent after a restart as before; that
// there is nothing to lease is told without one.
func TestALeaseOutlivesARestart(t *testing.T) {
	n, clk := startMail(t, Config{})
	n.applyPolicy(admission.Policy{Pools: []admission.PoolPolicy{{
		Name: "edge",
		Buckets: []admission.BucketPolicy{{
			Name: "site", Scope: admission.ScopePool, Capacity: 5, Refill: 1, Period: time.Second,
			Share: admission.TokenShare{Max: 4, TTL: 30 * time.Second},
		}},
	}}})
	lease := func(node string) (Answer, *admission.LeaseShareResult) {
		a := n.do(&admission.LeaseShare{Pool: "edge", Tenant: "a", Tokens: 9, Node: admission.Node{ID: node, Owned: 1, Total: 1}})
		return a, a.Result.(*admission.LeaseShareResult)
	}
	before := n.index()
	a, held := lease("n")
	if held.Tokens != 4 || held.Permit.Token.Nonce == 0 || n.index() != before+1 || a.Position == OffLog {
		t.Fatalf("granted: %+v %+v, at %d after %d", a, held, n.index(), before)
	}
	a, r := lease("m")
	if r.Shed == nil || len(r.Shed.Blocking) != 0 || r.Shed.EarliestExpiry != 30*time.Second || a.Position != OffLog || n.index() != before+1 {
		t.Errorf("refused: %+v %+v", a, r)
	}
	n.restart()
	clk.Advance(10 * time.Second)
	take := &admission.Take{Pool: "edge", Parts: []admission.TakePart{{Buckets: []string{"site"}, Tokens: 2}}}
	if a := n.do(take); !a.Result.(*admission.TakeResult).Refused || a.Levels[0][0].Left != 1 {
		t.Errorf("what is lent came back after a restart: %+v", a)
	}
	n.do(&admission.Release{Token: held.Permit.Token, Outcome: admission.OutcomeDone, ActualCost: 1, RetryAfter: admission.Absent})
	if a := n.do(take); a.Result.(*admission.TakeResult).Refused || a.Levels[0][0].Left != 2 {
		t.Errorf("what was not spent did not come back: %+v", a)
	}
}
