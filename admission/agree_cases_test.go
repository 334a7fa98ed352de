package admission_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// scripted is a run of both on entries that are written down.
type scripted struct {
	*agreement
	t *testing.T
}

func script(t *testing.T, pool admission.PoolPolicy) *scripted {
	a := &agreement{t: t, core: admission.New(), n: &naive{}, seen: admission.NewTally()}
	s := &scripted{a, t}
	s.apply(pool)
	return s
}

// do applies one entry, some time after the last, and returns the results.
func (s *scripted) do(after time.Duration, ops ...admission.Op) []admission.Result {
	s.t.Helper()
	s.index++
	s.at, s.wall = s.at.Add(after), s.wall.Add(after)
	return s.step(admission.Entry{Index: s.index, T: s.at, W: s.wall, Ops: ops}, time.Second)
}

// apply puts the only pool under a policy.
func (s *scripted) apply(pool admission.PoolPolicy) {
	s.t.Helper()
	pool.Name = "p"
	policy := admission.Policy{Pools: []admission.PoolPolicy{pool}}
	s.do(0, admission.ApplyPolicy{Policy: policy, ExpectedRevision: admission.AnyRevision})
}

func ask(tenant string, cost int64) *admission.Acquire {
	return &admission.Acquire{Pool: "p", Tenant: tenant, Cost: cost}
}

func plan(tenant string, keys ...string) *admission.Schedule {
	op := &admission.Schedule{Pool: "p"}
	for _, key := range keys {
		op.Entries = append(op.Entries, admission.EntrySpec{Tenant: tenant, Key: key, Relative: true})
	}
	return op
}

func want[V comparable](t *testing.T, what string, got, want V) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func granted(res admission.Result) bool { return res.(*admission.AcquireResult).Decision.Shed == nil }

func refusal(t *testing.T, res admission.Result) *admission.Shed {
	t.Helper()
	shed := res.(*admission.AcquireResult).Decision.Shed
	if shed == nil {
		t.Fatal("was granted")
	}
	return shed
}

func perHour(b admission.BucketPolicy) admission.PoolPolicy {
	b.Name, b.Scope = "b", admission.ScopePool
	if !b.Blocked {
		b.Refill, b.Period = 1, time.Hour
	}
	return admission.PoolPolicy{Buckets: []admission.BucketPolicy{b}}
}

func TestABucketIsNotFullWhenItIsUnblocked(t *testing.T) {
	s := script(t, perHour(admission.BucketPolicy{Capacity: 2}))
	want(t, "first is granted", granted(s.do(0, ask("a", 2))[0]), true)
	s.apply(perHour(admission.BucketPolicy{Blocked: true}))
	want(t, "reason while blocked", refusal(t, s.do(0, ask("a", 1))[0]).Reason, admission.Blocked)
	s.apply(perHour(admission.BucketPolicy{Capacity: 2}))
	want(t, "wait", refusal(t, s.do(0, ask("a", 1))[0]).RetryAfter, time.Hour)
}

func TestALoweredBucketForgivesNoPartOfAToken(t *testing.T) {
	s := script(t, perHour(admission.BucketPolicy{Capacity: 10}))
	s.do(0, ask("a", 10))
	s.do(30 * time.Minute)
	s.apply(perHour(admission.BucketPolicy{Capacity: 5}))
	want(t, "wait", refusal(t, s.do(0, ask("a", 1))[0]).RetryAfter, time.Hour)
}

func TestAFullQueueIsToldBeforeTooManyTenants(t *testing.T) {
	s := script(t, admission.PoolPolicy{Limits: admission.LimitsPolicy{Entries: 1, Tenants: 1}})
	got := s.do(0, plan("a", "k"), plan("b", "k"))[1].(*admission.ScheduleResult)
	want(t, "reason", got.Entries[0].Reason, admission.QueueFull)
}

// Without its first Acquire, b's would go before a's: that was refused, so it
// changes nothing.
func TestARefusedAcquireLeavesNoTraceInTheOrder(t *testing.T) {
	pool := perHour(admission.BucketPolicy{Capacity: 10})
	pool.MaxActive = 1
	got := script(t, pool).do(0, ask("a", 11), ask("b", 1), ask("a", 1))
	want(t, "the second is granted", granted(got[1]), true)
	want(t, "the third is granted", granted(got[2]), false)
}

func TestACycleThatIsOverIsToldWhenTheCallIsFullToo(t *testing.T) {
	s := script(t, admission.PoolPolicy{Lanes: []admission.LanePolicy{{Name: "l", TenantCycleLimit: 1}}})
	s.do(0, plan("a", "k", "l"))
	call := s.do(0, &admission.NextDue{Pool: "p", MaxItems: 1})[0].(*admission.NextDueResult)
	held := s.core.Shedding(s.at, s.wall, admission.SheddingQuery{Pool: "p", HeldRows: 1, Call: call}).Held
	want(t, "reason", held[0].Reason, admission.CycleCap)
}

func TestTheWaitForARequestIDCountsAllThatAreTooMany(t *testing.T) {
	s := script(t, admission.PoolPolicy{})
	for i := range 3 {
		op := ask("a", 1)
		op.RequestID = fmt.Sprint(i)
		s.do(time.Minute, op)
	}
	s.apply(admission.PoolPolicy{Limits: admission.LimitsPolicy{RequestIDs: 2}})
	op := ask("a", 1)
	op.RequestID = "new"
	want(t, "wait", refusal(t, s.do(0, op)[0]).RetryAfter, 9*time.Minute)
}

// No more than 1000 permits expire in one entry; the others still count.
func TestTooManyPermitsExpireInTwoEntries(t *testing.T) {
	s := script(t, admission.PoolPolicy{})
	for i := range 1002 {
		s.index++
		op := ask("a", 1)
		op.TTL = time.Second + time.Duration(i)
		e := admission.Entry{Index: s.index, Ops: []admission.Op{op}}
		s.n.apply(e)
		s.core.Apply(e)
	}
	s.do(time.Minute)
	want(t, "permits after one entry", s.core.Health(s.at, s.wall, "p")[0].Active, 2)
	s.do(0)
	want(t, "permits after two", s.core.Health(s.at, s.wall, "p")[0].Active, 0)
}

func TestARequestIDIsForgottenInTimeThoughNothingIsLogged(t *testing.T) {
	s := script(t, admission.PoolPolicy{})
	op := ask("a", 1)
	op.RequestID = "i"
	s.do(0, op)
	want(t, "replayed in time", s.core.Decide(s.at.Add(10*time.Minute-1), op).Decision.Replayed, true)
	want(t, "replayed after", s.core.Decide(s.at.Add(10*time.Minute), op).Decision.Replayed, false)
}

func TestABlockedBucketWithNumbersIsCutToThem(t *testing.T) {
	pool := func(capacity int64, blocked bool) admission.PoolPolicy {
		return admission.PoolPolicy{
			Buckets: []admission.BucketPolicy{
				{Name: "f", Scope: admission.ScopeTenant, Capacity: capacity, Refill: 1, Period: time.Hour},
			},
			Overrides: []admission.TenantPolicy{
				{ID: "a", Buckets: map[string]admission.BucketOverride{"f": {Blocked: blocked}}},
			},
		}
	}
	s := script(t, pool(3, false))
	s.do(0, ask("a", 3))
	s.apply(pool(1, true))
	want(t, "used", refusal(t, s.do(0, ask("a", 1))[0]).Blocking[0].Used, 1)
	s.apply(pool(1, false))
	want(t, "wait", refusal(t, s.do(0, ask("a", 1))[0]).RetryAfter, time.Hour)
}

// claim gets the only entry that is due.
func (s *scripted) claim(after time.Duration) admission.Claim {
	s.t.Helper()
	got := s.do(after, &admission.NextDue{Pool: "p", MaxItems: 1, TTL: time.Hour})[0].(*admission.NextDueResult)
	if len(got.Claims) != 1 {
		s.t.Fatalf("%d claims", len(got.Claims))
	}
	return got.Claims[0]
}

func (s *scripted) release(c admission.Claim, outcome admission.Outcome, miss bool) {
	s.t.Helper()
	s.do(0, &admission.Release{
		Token: c.Permit.Token, Outcome: outcome, Miss: miss, ActualCost: admission.Absent, RetryAfter: admission.Absent,
	})
}

func TestAGridCatchesUpTheOldestAndCountsTheRest(t *testing.T) {
	s := script(t, admission.PoolPolicy{})
	op := plan("a", "k")
	op.Entries[0].Every = time.Second
	anchor := s.wall
	s.do(0, op)
	for i := range 64 {
		c := s.claim([]time.Duration{99 * time.Second, 0}[min(i, 1)])
		want(t, "boundary", c.DueAt, anchor.Add(time.Duration(i)*time.Second))
		want(t, "more to catch up", c.CatchUp, i < 63)
		s.release(c, []admission.Outcome{admission.OutcomeDone, admission.OutcomeDead}[i%2], false)
	}
	health := s.core.Health(s.at, s.wall, "p")[0]
	want(t, "skipped", health.Skipped, 36)
	want(t, "dead letters", health.Dead, 32)
	c := s.claim(time.Second)
	want(t, "the grid goes on at", c.DueAt, anchor.Add(100*time.Second))
}

func TestACadenceCountsFromTheEndOfTheClaim(t *testing.T) {
	s := script(t, admission.PoolPolicy{
		Cadences: []admission.CadencePolicy{{Name: "c", Base: time.Minute, Factor: 3, Max: 5 * time.Minute}},
		Retry:    admission.RetryPolicy{MaxAttempts: 1},
	})
	op := plan("a", "k")
	op.Entries[0].Cadence = "c"
	s.do(0, op)
	c := s.claim(0)
	for _, miss := range []struct {
		is   bool
		then time.Duration
	}{{true, 3 * time.Minute}, {true, 5 * time.Minute}, {false, time.Minute}} {
		s.release(c, admission.OutcomeDone, miss.is)
		c = s.claim(miss.then)
		want(t, "due when the delay has passed", c.DueAt, s.wall)
	}
	expired := s.wall.Add(time.Hour)
	c = s.claim(time.Hour + 10*time.Minute) // it expires, and its occurrence dies
	want(t, "due after an expiry that was seen late", c.DueAt, expired.Add(3*time.Minute))
	want(t, "dead letters", s.core.Health(s.at, s.wall, "p")[0].Dead, 1)
}
