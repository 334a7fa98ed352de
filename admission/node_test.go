package admission

import (
	"testing"
	"time"
)

// claimFor claims up to n due entries with a poll that is narrowed.
func (s *story) claimFor(n int, narrow func(*NextDue)) *NextDueResult {
	s.Helper()
	op := &NextDue{Pool: "p", MaxItems: n}
	narrow(op)
	r := s.do(op)[0].(*NextDueResult)
	if r.Err != nil {
		s.Fatalf("next due: %v", r.Err)
	}
	return r
}

func TestNodeGetsItsSlotsBack(t *testing.T) {
	s := tell(t, PoolPolicy{Defaults: TenantPolicy{MaxActive: 3}})
	s.plan(in(0, "a", "k1"), in(0, "a", "k2"), in(0, "b", "k3"))
	node := func(op *NextDue) { op.Node = Node{ID: "n", Owned: 1, Total: 3} }
	first := s.claimFor(9, node).Claims
	want(t, "claims", len(first), 2) // one of each tenant
	_, ok := s.PollDelay(s.t, s.w, &NextDue{Pool: "p", MaxItems: 1, Node: Node{ID: "n", Owned: 1, Total: 3}})
	want(t, "worth polling on a full node", ok, false)
	wait, ok := s.PollDelay(s.t, s.w, &NextDue{Pool: "p", MaxItems: 1, Node: Node{ID: "m", Owned: 1, Total: 3}})
	want(t, "worth polling on another", ok && wait == 0, true)
	s.release(first[0].Permit.Token)
	want(t, "claims after a release", len(s.claimFor(9, node).Claims), 1)
}

func TestIdlePollIsToldOfItsNode(t *testing.T) {
	s := tell(t, PoolPolicy{Defaults: TenantPolicy{MaxActive: 3}})
	s.plan(in(0, "a", "k1"), in(0, "a", "k2"))
	op := &NextDue{Pool: "p", MaxItems: 1, Node: Node{ID: "n", Owned: 1, Total: 3}}
	s.do(op)
	held := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1, Call: s.Idle(op)})
	want(t, "held", held.Held[0].Reason, NodeCap)
	want(t, "total", held.Totals[0], HeldTotal{NodeCap, 1})
}

// A call for one tenant finds it wherever it stands, and wakes for it alone.
func TestPollOfOneTenant(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "k1"), in(0, "b", "k2"), in(time.Second, "c", "k3"))
	op := NextDue{Pool: "p", MaxItems: 9, Tenant: "b"}
	want(t, "claims", keys(s.claimFor(9, func(n *NextDue) { n.Tenant = "b" }).Claims)[0], "k2")
	_, ok := s.PollDelay(s.t, s.w, &op)
	want(t, "worth waiting for b", ok, false)
	op.Tenant = "c"
	wait, _ := s.PollDelay(s.t, s.w, &op)
	want(t, "wait for c", wait, time.Second)
}

func TestUnknownLaneInLaneLimits(t *testing.T) {
	s := tell(t, PoolPolicy{})
	r := s.do(&NextDue{Pool: "p", MaxItems: 1, LaneLimits: map[string]int64{"none": 1}})[0].(*NextDueResult)
	if r.Err == nil || r.Err.Field != "lane_limits" {
		t.Errorf("got %v", r.Err)
	}
}
