package admission

import (
	"fmt"
	"testing"
	"time"
)

// mailing is a pool whose one lane sends in batches of three.
func mailing(batch BatchPolicy) PoolPolicy {
	batch.Size = 3
	return PoolPolicy{
		MaxActive: 4, PermitTTL: 10 * time.Second, Lanes: []LanePolicy{{Name: "l", Batch: batch}},
		Buckets: []BucketPolicy{
			{Name: "calls", Scope: ScopePool, Capacity: 100, Refill: 1, Period: time.Hour, PerPermit: true},
			{Name: "mails", Scope: ScopePool, Capacity: 100, Refill: 1, Period: time.Hour},
		},
	}
}

func inBatches(n *NextDue) { n.Batch = true }

// due schedules n entries that are due now.
func (s *story) due(tenant string, from, n int) {
	s.Helper()
	for i := from; i < from+n; i++ {
		s.plan(in(0, tenant, fmt.Sprint("k", i)))
	}
}

func (s *story) used() string {
	b := s.pools.byName("p").buckets
	return fmt.Sprint(s.pools.byName("p").active, " ", b[0].used, " ", b[1].used)
}

// One slot, one call, a token for each entry; one tag: the other tenant is next.
func TestBatchIsOnePermit(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{}))
	s.due("a", 1, 7)
	s.due("b", 8, 1)
	claims := s.claimFor(20, inBatches).Claims
	want(t, "claims", fmt.Sprint(keys(claims)), "[k1 k2 k3 k8 k4 k5 k6 k7]")
	var batches []int32
	for _, c := range claims {
		batches = append(batches, c.Batch)
	}
	want(t, "batches", fmt.Sprint(batches), "[1 1 1 0 2 2 2 0]")
	want(t, "active and used", s.used(), "4 4 8")
}

func TestBatchIsCut(t *testing.T) {
	p := mailing(BatchPolicy{})
	p.Buckets[1].Capacity = 5
	s := tell(t, p)
	s.due("a", 1, 9)
	want(t, "by what is left of max_items", len(s.claimFor(2, inBatches).Claims), 2)
	want(t, "by tokens", len(s.claimFor(9, inBatches).Claims), 3)
	want(t, "active and used", s.used(), "2 2 5")
	want(t, "no tokens", len(s.claimFor(9, inBatches).Claims), 0)
}

// A batch leaves the tokens that its lane must.
func TestBatchLeavesTokens(t *testing.T) {
	p := mailing(BatchPolicy{})
	p.Buckets[1].Capacity = 4
	p.Lanes = []LanePolicy{{Name: "high"}, {Name: "low", LeaveTokens: map[string]int64{"mails": 2}, Batch: BatchPolicy{Size: 3}}}
	s := tell(t, p)
	s.due("a", 1, 9)
	want(t, "claims", len(s.claimFor(9, inBatches).Claims), 2)
	want(t, "active and used", s.used(), "1 1 2")
}

// Each entry has its own end; the slot is free with the last.
func TestPartsEndOneByOne(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{}))
	s.due("a", 1, 3)
	claims := s.claimFor(3, inBatches).Claims
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k2"})
	token := func(i int) Token { return claims[i].Permit.Token }
	want(t, "failed", s.release(token(0), with(OutcomeFailed), func(r *Release) { r.ActualCost = 0 }).Result, LeaseReleased)
	want(t, "again", s.release(token(0)).Result, LeaseAlreadyReleased)
	want(t, "settled", s.used(), "1 1 2")
	want(t, "unscheduled", s.release(token(1)).Result, LeaseCancelled)
	want(t, "active", s.used(), "1 1 2")
	want(t, "done", s.release(token(2)).Result, LeaseReleased)
	want(t, "free", s.used(), "0 1 2")
	s.wait(time.Second)
	again := s.claimFor(3, inBatches).Claims
	want(t, "what failed comes again", fmt.Sprint(keys(again), again[0].Attempt, again[0].Batch), "[k1] 2 0")
}

// The token of the permit itself was given to nobody, and names nothing.
func TestBatchHasNoTokenOfItsOwn(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{}))
	s.due("a", 1, 2)
	part := s.claimFor(2, inBatches).Claims[0].Permit.Token
	whole := Token{Epoch: part.Epoch, Index: part.Index, Position: part.Position - 1}
	want(t, "is there", s.permit(whole.key()) != nil, true)
	want(t, "released", s.release(whole).Result, LeaseLost)
}

func TestRenewingOnePartRenewsAll(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{}))
	s.due("a", 1, 3)
	claims := s.claimFor(3, inBatches).Claims
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k3"})
	s.wait(9 * time.Second)
	renew := func(i int) LeaseResult {
		return s.do(&Renew{Tokens: []Token{claims[i].Permit.Token}})[0].(*RenewResult).Renewals[0].Result
	}
	want(t, "cancelled part", renew(2), LeaseCancelled)
	want(t, "first part", renew(0), LeaseRenewed)
	s.wait(9 * time.Second)
	want(t, "second part lives", s.release(claims[1].Permit.Token).Result, LeaseReleased)
	s.wait(time.Second)
	want(t, "expires together", renew(0), LeaseLost)
	want(t, "active", s.used(), "0 1 3")
}

func TestBatchIsReplayed(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{}))
	s.due("a", 1, 7)
	op := NextDue{Pool: "p", MaxItems: 9, Batch: true, RequestID: "r"}
	claims := s.do(&op)[0].(*NextDueResult).Claims
	s.release(claims[1].Permit.Token)
	again := s.do(&op)[0].(*NextDueResult)
	var got []string
	for _, c := range again.Claims {
		got = append(got, fmt.Sprint(c.Key, c.Batch))
	}
	want(t, "replayed", fmt.Sprint(again.Replayed, got), "true [k11 k31 k42 k52 k62 k70]")
}

func TestOnlyBatches(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{Only: true}))
	s.due("a", 1, 2)
	shed := s.shed("a", BatchOnly)
	want(t, "no time to come back", shed.RetryAfter == Absent && shed.PollAfter == Absent, true)
	single := s.claimFor(9, func(*NextDue) {})
	want(t, "singles", len(single.Claims), 0)
	held := s.Shedding(s.t, s.w, SheddingQuery{Pool: "p", HeldRows: 1, Call: single})
	want(t, "held", held.Held[0].Reason, BatchOnly)
	want(t, "total", held.Totals[0], HeldTotal{BatchOnly, 1})
	_, ok := s.PollDelay(s.t, s.w, &NextDue{Pool: "p", MaxItems: 1})
	want(t, "worth a single poll", ok, false)
	want(t, "in a batch", len(s.claimFor(9, inBatches).Claims), 2)
}

// A partial batch waits for more, or until its oldest entry has waited enough.
func TestPartialBatchLingers(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{Linger: time.Minute}))
	s.due("a", 1, 2)
	op := NextDue{Pool: "p", MaxItems: 9, Batch: true}
	want(t, "two", len(s.claimFor(9, inBatches).Claims), 0)
	wait, _ := s.PollDelay(s.t, s.w, &op)
	want(t, "wait", wait, time.Minute)
	due, _ := s.Due()
	want(t, "time moves on", due, s.w.Add(time.Minute))
	restored(t, s.State)
	s.due("a", 3, 1)
	whole := s.claimFor(9, inBatches).Claims
	want(t, "three", len(whole), 3)
	for _, c := range whole {
		s.release(c.Permit.Token)
	}
	s.due("a", 4, 1)
	s.wait(time.Minute - 1)
	want(t, "one, too early", len(s.claimFor(9, inBatches).Claims), 0)
	s.wait(1)
	want(t, "one, after a minute", len(s.claimFor(9, inBatches).Claims), 1)
}

func TestLingeringEndsWithItsEntries(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{Linger: time.Minute}))
	s.due("a", 1, 2)
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k1"})
	s.do(Unschedule{Pool: "p", Tenant: "a", Key: "k2"})
	_, ok := s.Due()
	want(t, "anything due", ok, false)
	s.due("a", 3, 1)
	s.put(mailing(BatchPolicy{}))
	want(t, "without linger", len(s.claimFor(9, inBatches).Claims), 1)
}

// What one part's holder tells of the tenant's bucket counts at once, while the
// permit lives on in the other parts.
func TestAPartThrottlesTheTenant(t *testing.T) {
	p := mailing(BatchPolicy{})
	p.Buckets = append(p.Buckets, BucketPolicy{Name: "own", Scope: ScopeTenant, Capacity: 100, Refill: 1, Period: time.Hour})
	s := tell(t, p)
	s.plan(in(0, "a", "1"), in(0, "a", "2"), in(0, "a", "3"), in(0, "a", "4"))
	call := &NextDue{Pool: "p", MaxItems: 3, Batch: true}
	claims := s.do(call)[0].(*NextDueResult).Claims
	s.release(claims[0].Permit.Token, func(r *Release) { r.Outcome, r.Bucket, r.RetryAfter = OutcomeThrottled, "own", time.Minute })
	want(t, "claims while paused", len(s.poll(9)), 0)
}

// What comes due may be what a batch waits for.
func TestAPollIsWorthItWhenABatchFills(t *testing.T) {
	s := tell(t, mailing(BatchPolicy{Linger: time.Minute}))
	s.plan(in(0, "a", "k1"), in(0, "a", "k2"), in(time.Second, "a", "k3"))
	wait, _ := s.PollDelay(s.t, s.w, &NextDue{Pool: "p", MaxItems: 9, Batch: true})
	want(t, "wait", wait, time.Second)
}
