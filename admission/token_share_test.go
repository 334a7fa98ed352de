package admission

import (
	"testing"
	"time"
)

func sharing(max int64, change ...func(*BucketPolicy)) PoolPolicy {
	b := BucketPolicy{Name: "rate", Scope: ScopePool, Capacity: 10, Refill: 1, Period: time.Second, Share: TokenShare{Max: max, TTL: 10 * time.Second}}
	for _, f := range change {
		f(&b)
	}
	return PoolPolicy{Buckets: []BucketPolicy{b}}
}

// lease asks for tokens as one of so many like sidecars.
func (s *story) lease(node string, tokens, of int64) *LeaseShareResult {
	s.Helper()
	r := s.do(&LeaseShare{Pool: "p", Tenant: "a", Tokens: tokens, Node: Node{ID: node, Owned: 1, Total: of}, Nonce: 7})[0].(*LeaseShareResult)
	if r.Err != nil {
		s.Fatalf("lease: %v", r.Err)
	}
	return r
}

// What a sidecar holds does not refill, whether it spends it or not, until it is over.
func TestTokensThatAreHeldDoNotRefill(t *testing.T) {
	s := tell(t, sharing(10))
	share := s.lease("n", 6, 1)
	want(t, "tokens", share.Tokens, 6)
	for range 4 {
		s.granted("a")
	}
	s.shed("a", PoolRate)
	s.wait(4 * time.Second)
	want(t, "what others took is back, and no more", s.left("", "rate"), 4)
	s.wait(3 * time.Second)
	want(t, "still", s.left("", "rate"), 4)
	s.release(share.Permit.Token, func(r *Release) { r.ActualCost = 5 })
	want(t, "what was not spent is back", s.left("", "rate"), 5)
	s.wait(2 * time.Second)
	want(t, "what was spent refills", s.left("", "rate"), 7)
}

// A share that nobody gives back counts as spent, and is never renewed.
func TestAShareExpiresAsSpent(t *testing.T) {
	s := tell(t, sharing(10))
	token := s.lease("n", 10, 1).Permit.Token
	shed := s.shed("a", PoolRate)
	want(t, "no time alone helps", shed.RetryAfter, time.Duration(Absent))
	want(t, "but that of the share", shed.EarliestExpiry, 10*time.Second)
	s.wait(5 * time.Second)
	renewed := s.do(&Renew{Tokens: []Token{token}, TTL: time.Hour})[0].(*RenewResult)
	want(t, "renewal", renewed.Renewals[0].Result, LeaseCancelled)
	s.wait(5 * time.Second)
	want(t, "nothing is back at once", s.left("", "rate"), 0)
	s.wait(3 * time.Second)
	want(t, "it refills since", s.left("", "rate"), 3)
	want(t, "it is over", s.release(token).Result, LeaseLost)
}

// Sidecars that want more than there is get equal parts as they come, who wants less
// leaves more to the others, and no crowd of ids gives one more than its part.
func TestSidecarsGetFairParts(t *testing.T) {
	s := tell(t, sharing(9))
	want(t, "the first may hold all", s.lease("n", 5, 1).Tokens, 5)
	want(t, "the second what is left", s.lease("m", 20, 1).Tokens, 4)
	r := s.lease("o", 3, 1)
	want(t, "the third nothing yet, and no limit blocks it", r.Shed != nil && len(r.Shed.Blocking) == 0 && r.Shed.Reason == PoolRate, true)
	want(t, "until a share ends", r.Shed.EarliestExpiry, 10*time.Second)
	s = tell(t, sharing(9))
	s.lease("n", 1, 1)
	s.lease("m", 2, 1)
	want(t, "who comes late has all that the others do not want", s.lease("o", 20, 1).Tokens, 6)
	s = tell(t, sharing(9))
	want(t, "one of four holds a fourth, rounded up", s.lease("n", 20, 4).Tokens, 3)
	want(t, "and no more", s.lease("n", 1, 4).Shed != nil, true)
	s = tell(t, sharing(9))
	others := s.lease("m", 7, 1).Permit.Token
	want(t, "who wants much has what is left", s.lease("n", 20, 1).Tokens, 2)
	s.release(others, func(r *Release) { r.ActualCost = 0 })
	same := s.lease("o", 20, 1)
	want(t, "who wants as much has the half, though more is left", same.Tokens, 5)
	s.release(same.Permit.Token, func(r *Release) { r.ActualCost = 0 })
	want(t, "and wants little later", s.lease("n", 1, 1).Tokens, 1)
	want(t, "which is what counts", s.lease("o", 20, 1).Tokens, 6)
}

// A lowered capacity takes nothing back from who holds it, and forgives no more than
// what the bucket can't owe.
func TestAShareOutlivesItsPolicy(t *testing.T) {
	s := tell(t, sharing(10))
	token := s.lease("n", 10, 1).Permit.Token
	s.put(sharing(1, func(b *BucketPolicy) { b.Capacity = 2 }))
	s.shed("a", PoolRate)
	s.wait(3 * time.Second)
	s.shed("a", PoolRate)
	s.release(token)
	s.wait(2 * time.Second)
	s.shed("a", PoolRate)
	s.wait(time.Second)
	s.granted("a")
	s.wait(time.Second)
	token = s.lease("n", 1, 1).Permit.Token
	s.put(PoolPolicy{Buckets: []BucketPolicy{{Name: "other", Scope: ScopePool, Capacity: 1, Refill: 1, Period: time.Second}}})
	want(t, "it can be given back", s.release(token, func(r *Release) { r.ActualCost = 0 }).Result, LeaseReleased)
	want(t, "to no bucket that did not lend it", s.left("", "other"), 1)
}

// Where some bucket is not shared there are no shares, and more than so many there are
// not at a time.
func TestWhatIsNotShared(t *testing.T) {
	ask := &LeaseShare{Pool: "p", Tenant: "a", Tokens: 1, Node: Node{ID: "n", Owned: 1, Total: 1}}
	refused := func(what string, p PoolPolicy) {
		t.Helper()
		if err := tell(t, p).do(ask)[0].(*LeaseShareResult).Err; err == nil || err.Reason != NotShared {
			t.Errorf("%s: %v, want NOT_SHARED", what, err)
		}
	}
	refused("no bucket", PoolPolicy{})
	mixed := sharing(10)
	mixed.Buckets = append(mixed.Buckets, BucketPolicy{Name: "own", Scope: ScopeTenant, Capacity: 1, Refill: 1, Period: time.Second})
	refused("a bucket without a share", mixed)
	shadow := sharing(10)
	shadow.Shadow = true
	refused("a pool that only watches", shadow)
	mixed.Buckets[1].Share.Max = 1
	mixed.Overrides = []TenantPolicy{{ID: "a", Buckets: map[string]BucketOverride{"own": {Blocked: true}}}}
	refused("a tenant whose bucket is blocked", mixed)
	few := sharing(10)
	few.Limits.Shares = 1
	s := tell(t, few)
	s.lease("n", 1, 1)
	shed := s.lease("m", 1, 1).Shed
	want(t, "one too many", shed.Reason, Cardinality)
	want(t, "by limits.shares", shed.Blocking[0].Name, "limits.shares")
}
