package admission

import (
	"fmt"
	"testing"
	"time"
)

func (s *story) explain(q ExplainQuery) *Explanation {
	s.Helper()
	q.Request.Pool = "p"
	q.Request.Cost = max(q.Request.Cost, 1)
	e, err := s.Explain(s.t, s.w, &q)
	if err != nil {
		s.Fatal(err)
	}
	return e
}

// limitsOf writes the limits that were consulted, those that block with why.
func limitsOf(e *Explanation) string {
	text := ""
	for _, l := range e.Limits {
		text += fmt.Sprintf("%s %d+%d/%d", l.Name, l.Used, l.Asked, l.Capacity)
		if l.Reserve > 0 {
			text += fmt.Sprintf(" leaving %d", l.Reserve)
		}
		if l.Reason != ReasonNone {
			text += " " + l.Reason.String()
		}
		text += "; "
	}
	return text
}

// Every limit is told, those that let the request pass as well.
func TestExplainTellsEveryLimit(t *testing.T) {
	s := tell(t, PoolPolicy{
		MaxActive: 3, Lanes: []LanePolicy{{Name: "high"}, {Name: "low", LeaveSlots: 1}},
		Categories: map[string]string{"c": "low"}, Defaults: TenantPolicy{MaxActive: 2, Lane: "low"}, LockMaxActive: 1,
		Buckets: []BucketPolicy{
			{Name: "rate", Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Second},
			{Name: "fair", Scope: ScopeTenant, Capacity: 4, Refill: 1, Period: time.Second},
		},
	})
	s.granted("a")
	held := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 3, LockKey: "k"}).Permit
	e := s.explain(ExplainQuery{Request: Acquire{Tenant: "a", LockKey: "k", DedupeKey: "j"}})
	want(t, "limits", limitsOf(e), "dedupe_key 0+1/1; max_active 2+1/2 TENANT_CAP; max_active 2+1/3; "+
		"leave_slots 2+1/3 leaving 1 POOL_CAP; lock_key 1+1/1 LOCK_BUSY; rate 4+1/10; fair 4+1/4 TENANT_RATE; limits.dedupe_keys 0+1/1000000 leaving 100000; ")
	want(t, "reason", e.Shed.Reason, TenantCap)
	want(t, "share", e.Share, ShareState{Weight: 1, Counted: 2, Active: 2, MaxActive: 2})
	e = s.explain(ExplainQuery{Request: Acquire{Tenant: "b", Category: ""}})
	want(t, "limits of another", limitsOf(e), "max_active 0+1/2; max_active 2+1/3; leave_slots 2+1/3 leaving 1 POOL_CAP; rate 4+1/10; fair 0+1/4; ")
	e = s.explain(ExplainQuery{Permit: held.Token})
	want(t, "permit", *e.Permit, PermitInfo{Permit: held, Cost: 3, Borrowed: true})
	s.release(held.Token)
	want(t, "permit released", s.explain(ExplainQuery{Permit: held.Token}).Permit.State, PermitReleased)
	want(t, "permit unknown", s.explain(ExplainQuery{Permit: Token{Index: 99}}).Permit.State, PermitLost)
}

// A request that waits is explained where it stands: behind those of its tenant that
// came before, and those whose tag is lower.
func TestExplainTellsWhoIsAhead(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1, Buckets: []BucketPolicy{{Name: "rate", Scope: ScopePool, Capacity: 5, Refill: 1, Period: time.Second}}})
	s.granted("z")
	wait := func(tenant, id string, cost int64) {
		s.acquire(&Acquire{Pool: "p", Tenant: tenant, Cost: cost, MaxWait: time.Minute, RequestID: id})
	}
	wait("a", "a1", 5)
	wait("b", "b1", 1)
	wait("b", "b2", 1)
	s.plan(in(0, "c", "1"), in(0, "c", "2"), in(time.Hour, "c", "3"))
	e := s.explain(ExplainQuery{Request: Acquire{Tenant: "b", RequestID: "b2"}})
	want(t, "line", fmt.Sprintf("%+v", e.Line), fmt.Sprintf("%+v", LineState{Tag: unit, Floor: unit, Own: 1, Waiting: 1, First: []Ahead{{Tenant: "a", Waiting: 1}}}))
	want(t, "reason", e.Shed.Reason, PoolCap)
	if e.Reserved != nil {
		t.Errorf("%+v reserves tokens where it lacks a slot, too", e.Reserved)
	}
	e = s.explain(ExplainQuery{Request: Acquire{Tenant: "c"}, Key: "2"})
	want(t, "entry's turn", e.Entry.Ahead, 1)
	want(t, "entries ahead", fmt.Sprintf("%+v", e.Line.First), "[{Tenant:a Entitled:false Due:0 Waiting:1} {Tenant:b Entitled:false Due:0 Waiting:2}]")
	e = s.explain(ExplainQuery{Request: Acquire{Tenant: "c"}, Key: "3"})
	want(t, "due in", e.Entry.DueIn, time.Hour)
	if _, err := s.Explain(s.t, s.w, &ExplainQuery{Request: Acquire{Pool: "p", Tenant: "c"}, Key: "none"}); err == nil || err.Reason != EntryNotFound {
		t.Errorf("an entry that is not there: %v", err)
	}
}

// Who reserves the pool's tokens is named, with the time until it has them.
func TestExplainTellsWhoReserves(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: []BucketPolicy{{Name: "rate", Scope: ScopePool, Capacity: 5, Refill: 1, Period: time.Second}}})
	s.granted("z")
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 5, MaxWait: time.Minute, RequestID: "big"})
	e := s.explain(ExplainQuery{Request: Acquire{Tenant: "b"}})
	want(t, "reservation", *e.Reserved, Reservation{Tenant: "a", Lane: "default", Cost: 5, TokensIn: time.Second, Before: true})
	want(t, "reason", e.Shed.Reason, PoolRate)
	want(t, "retry after", e.Shed.RetryAfter, Absent)
	e = s.explain(ExplainQuery{Request: Acquire{Tenant: "a", RequestID: "big"}})
	want(t, "goes before itself", e.Reserved.Before, false)
	want(t, "its retry after", e.Shed.RetryAfter, time.Second)
}

// A claimed entry shows its permit, a dead one how it ended.
func TestExplainEntries(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "1"), in(0, "a", "2"))
	for _, c := range s.poll(2) {
		if c.Key == "2" {
			s.release(c.Permit.Token, with(OutcomeDead))
		}
	}
	e := s.explain(ExplainQuery{Request: Acquire{Tenant: "a"}, Key: "1"})
	want(t, "claimed under", e.Permit.Entry, "1")
	e = s.explain(ExplainQuery{Request: Acquire{Tenant: "a"}, Key: "2"})
	want(t, "dead", e.Entry.Dead, true)
}
