package admission

import (
	"testing"
	"time"
)

func inLineFor(tenant string, cost int64) *Acquire {
	return &Acquire{Pool: "p", Tenant: tenant, Cost: cost, MaxWait: time.Minute}
}

func perSecond(scope Scope, capacity int64) []BucketPolicy {
	return []BucketPolicy{{Name: "rate", Scope: scope, Capacity: capacity, Refill: 1, Period: time.Second}}
}

// A pause does not let more wait than the pool's limits say.
func TestWhatIsPausedWaitsWithinTheLimits(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{WaitingPerTenant: 1}})
	s.do(Pause{Pool: "p", Kind: TargetTenant, Name: "a"})
	want(t, "the first is shed", s.acquire(inLineFor("a", 1)).Shed != nil, false)
	shed := s.acquire(inLineFor("a", 1)).Shed
	if shed == nil || shed.Reason != Paused || len(shed.Blocking) != 2 {
		t.Errorf("the second: %+v", shed)
	}
}

// A waiter that lacks its tenant's tokens does not hold the tenant's entries: when
// those come is told as if it were not there.
func TestEntriesAreToldNothingOfTheirTenantsWaiter(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopeTenant, 3)})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 3})
	s.plan(in(0, "a", "k"))
	s.acquire(inLineFor("a", 3))
	held := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1}).Held
	want(t, "retry after", held[0].RetryAfter, time.Second)
	s.wait(time.Second)
	want(t, "claims by then", len(s.poll(1)), 1)
}

// Who asks behind a waiter that reserves tokens is not told when they come, though
// entries that lack them stand before both.
func TestEntriesHideNoReservation(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopePool, 3)})
	s.plan(in(0, "a", "k"))
	s.acquire(&Acquire{Pool: "p", Tenant: "c", Cost: 3})
	s.acquire(inLineFor("b", 2))
	results := s.do(&NextDue{Pool: "p", MaxItems: 1}, &Acquire{Pool: "p", Tenant: "b", Cost: 1})
	shed := results[1].(*AcquireResult).Decision.Shed
	if shed == nil || shed.RetryAfter != Absent {
		t.Errorf("behind a reservation: %+v", shed)
	}
}

// A poll brings a waiter forward that came with entries of its tenant. Whose wait ends
// behind it is told so, though without the poll he would have come first.
func TestWhoseWaitEndsIsToldWhoCameForward(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopePool, 3)})
	s.plan(in(0, "a", "k"))
	s.acquire(&Acquire{Pool: "p", Tenant: "c", Cost: 3})
	short := inLineFor("b", 1)
	short.MaxWait = time.Second
	key := s.acquire(short).Waiter
	s.acquire(inLineFor("a", 2))
	s.entry(Entry{Index: s.index + 1, T: s.t.Add(time.Second), W: s.w.Add(time.Second), Ops: []Op{&NextDue{Pool: "p", MaxItems: 1}}})
	ended := s.Ended()
	if len(ended) != 1 || ended[0].Waiter != key || ended[0].Result.Decision.Shed == nil {
		t.Fatalf("ended: %+v, want the wait of b, in vain", ended)
	}
	want(t, "why", ended[0].Result.Decision.Shed.Reason, PoolRate)
}

// Within a tenant and lane waiters go before entries, and before what asks now,
// also after one of them was served in the same entry.
func TestWaitersGoFirstOfTheirTenant(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 2})
	one, two := s.granted("x"), s.granted("x")
	s.plan(in(0, "a", "k"))
	first, second := s.acquire(inLineFor("a", 1)), s.acquire(inLineFor("a", 1))
	free := func(p Permit) *Release {
		return &Release{Token: p.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent}
	}
	results := s.do(free(one), free(two), &NextDue{Pool: "p", MaxItems: 1}, &Acquire{Pool: "p", Tenant: "a", Cost: 1})
	ends := s.Ended()
	if len(ends) != 2 || ends[0].Waiter != first.Waiter || ends[1].Waiter != second.Waiter {
		t.Errorf("waits that ended: %+v", ends)
	}
	want(t, "claims", len(results[2].(*NextDueResult).Claims), 0)
	want(t, "who asks now is shed", results[3].(*AcquireResult).Decision.Shed != nil, true)
}

// Who asks for less than there is does not pass one of his tenant who waits for more of
// the same tokens.
func TestWhoNeedsLessDoesNotPassHisTenantsWaiter(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopeTenant, 3)})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 2})
	s.acquire(inLineFor("a", 3))
	shed := s.ask("a").Shed
	if shed == nil || shed.Reason != TenantRate {
		t.Errorf("behind a waiter: %+v, want a wait for tokens of the tenant", shed)
	}
	s.granted("b")
}

// Waits that end in one entry are told what held them till then, though it may be one
// that ends with them.
func TestWaitsThatEndTogetherAreToldWhatHeldThem(t *testing.T) {
	s := tell(t, PoolPolicy{Buckets: perSecond(ScopePool, 3)})
	s.acquire(&Acquire{Pool: "p", Tenant: "x", Cost: 2, TTL: time.Hour, RateOnly: true})
	first := s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 3, MaxWait: 500 * time.Millisecond, RateOnly: true})
	second := s.acquire(&Acquire{Pool: "p", Tenant: "b", Cost: 1, MaxWait: 600 * time.Millisecond, RateOnly: true})
	s.wait(900 * time.Millisecond)
	ends := s.Ended()
	if len(ends) != 2 || ends[0].Waiter != first.Waiter || ends[1].Waiter != second.Waiter {
		t.Fatalf("waits that ended: %+v", ends)
	}
	for _, end := range ends {
		want(t, "what held "+end.Tenant, end.Result.Decision.Shed.Reason, PoolRate)
	}
}

// Who asks again for what is in line, and would not wait, is told what the entry came
// to: what it had at the entry's begin may be given to it in the same one.
func TestWhoLooksInIsToldWhatCameOfHisPlace(t *testing.T) {
	try := func(wait time.Duration) *Acquire {
		return &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id", MaxWait: wait}
	}
	for _, away := range []bool{false, true} {
		s := tell(t, PoolPolicy{MaxActive: 1})
		holder := s.granted("x")
		first := s.acquire(try(time.Minute))
		if away {
			s.do(Detach{Waiter: first.Waiter})
		}
		if told := s.acquire(try(0)); told.Shed == nil || told.Shed.Reason != PoolCap {
			t.Errorf("while it is held (away %t): %+v", away, told)
		}
		want(t, "somebody listens", s.waiter(first.Waiter).attached(), !away)
		results := s.do(&Release{Token: holder.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent}, try(0))
		told := results[1].(*AcquireResult).Decision
		if told.Permit.State != PermitLive || !told.Replayed {
			t.Errorf("once it is free (away %t): %+v", away, told)
		}
	}
}

// Who comes back to his place before that of another goes before him at the lock, too.
func TestWhoComesBackHasHisPlaceAtTheLock(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1})
	holder := s.granted("x")
	ask := func(id string) *Acquire {
		return &Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute, RequestID: id, LockKey: "k"}
	}
	first := s.acquire(ask("first"))
	s.acquire(ask("second"))
	s.do(Detach{Waiter: first.Waiter})
	want(t, "the place that is kept", s.acquire(ask("first")).Waiter, first.Waiter)
	s.release(holder.Token)
	if ends := s.Ended(); len(ends) != 1 || ends[0].Waiter != first.Waiter {
		t.Errorf("waits that ended: %+v, want the first", ends)
	}
}

// A grant that frees its lock at once lets in who waits for it in a higher lane within
// the same entry: its wait may end with it.
func TestALockFreedBelowIsTakenAboveAtOnce(t *testing.T) {
	s := tell(t, PoolPolicy{
		Buckets:    perSecond(ScopeTenant, 2),
		Lanes:      []LanePolicy{{Name: "high"}, {Name: "low"}},
		Categories: map[string]string{"urgent": "high"},
	})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 2, RateOnly: true})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Cost: 1, MaxWait: time.Minute, LockKey: "x", RateOnly: true})
	s.acquire(&Acquire{Pool: "p", Tenant: "a", Category: "urgent", Cost: 1, MaxWait: 2 * time.Second, LockKey: "x"})
	s.wait(2 * time.Second)
	want(t, "waits that ended", len(s.Ended()), 2)
	for _, end := range s.Ended() {
		want(t, "shed", end.Result.Decision.Shed, nil)
	}
}

// Where nobody polls, entries are no demand: all move on with the floor, d's with those
// who wait and b's with them. Who has none and asks in the same entry goes before b.
func TestTagsThatMoveWithTheFloorCountAmongThoseWhoAsk(t *testing.T) {
	s := tell(t, PoolPolicy{MaxActive: 1})
	held := s.granted("x")
	s.plan(in(0, "b", "k"), in(0, "d", "k"))
	s.acquire(inLineFor("c", 1))
	for _, tenant := range []string{"a", "b", "c"} { // one tag for all, above the floor
		s.acquire(&Acquire{Pool: "p", Tenant: tenant, Cost: 1, RateOnly: true})
	}
	asked := s.do(
		&Release{Token: held.Token, Outcome: OutcomeDone, ActualCost: Absent, RetryAfter: Absent},
		inLineFor("b", 1), inLineFor("a", 1),
	)[1:]
	b, a := asked[0].(*AcquireResult).Decision.Waiter, asked[1].(*AcquireResult).Decision.Waiter
	want(t, "a, who has no entries, is asked first", a.Position < b.Position, true)
}
