package admission

import (
	"testing"
	"time"
)

// A poll that is sent twice, both in one entry, claims once: the second is told
// of the first one's claims.
func TestOneRequestIDIsOnePollWithinAnEntry(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.plan(in(0, "a", "one"), in(0, "a", "two"))
	poll := func(nonce uint64) *NextDue {
		return &NextDue{Pool: "p", MaxItems: 1, RequestID: "id", Nonce: nonce}
	}
	results := s.do(poll(1), poll(2))
	first, second := results[0].(*NextDueResult), results[1].(*NextDueResult)
	want(t, "live permits", s.permits.Len(), 1)
	want(t, "the second is a replay", second.Replayed, true)
	if len(first.Claims) != 1 || len(second.Claims) != 1 || first.Claims[0].Permit.Token != second.Claims[0].Permit.Token {
		t.Errorf("claims %+v and %+v, want the same one", first.Claims, second.Claims)
	}
}

// An Acquire that is sent twice in one entry is granted once.
func TestOneRequestIDIsOneAcquireWithinAnEntry(t *testing.T) {
	s := tell(t, PoolPolicy{})
	ask := func(nonce uint64) *Acquire {
		return &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id", Nonce: nonce}
	}
	results := s.do(ask(1), ask(2))
	first, second := results[0].(*AcquireResult).Decision, results[1].(*AcquireResult).Decision
	want(t, "replayed", second.Replayed, true)
	want(t, "token", second.Permit.Token, first.Permit.Token)
}

// Within ten minutes an id stands for its first request; then it is free again.
func TestRequestIDsAreRememberedForTheWindow(t *testing.T) {
	s := tell(t, PoolPolicy{})
	ask := &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id", TTL: time.Hour}
	first := s.acquire(ask)
	s.wait(memoryWindow - 1)
	want(t, "replayed just inside the window", s.acquire(ask).Replayed, true)
	other := *ask
	other.Tenant = "b"
	want(t, "another tenant's same id is another one", s.acquire(&other).Replayed, false)
	s.wait(1)
	second := s.acquire(ask)
	want(t, "replayed after the window", second.Replayed, false)
	want(t, "a new token", second.Permit.Token != first.Permit.Token, true)
}

// Under the id of a request nothing else can be asked.
func TestAnIDIsOneRequest(t *testing.T) {
	for name, differ := range map[string]func(*Acquire){
		"category":   func(a *Acquire) { a.Category = "c" },
		"cost":       func(a *Acquire) { a.Cost = 2 },
		"ttl":        func(a *Acquire) { a.TTL = time.Hour },
		"worker_id":  func(a *Acquire) { a.WorkerID = "w" },
		"lock_key":   func(a *Acquire) { a.LockKey = "k" },
		"dedupe_key": func(a *Acquire) { a.DedupeKey = "k" },
		"rate_only":  func(a *Acquire) { a.RateOnly = true },
		"settle":     func(a *Acquire) { a.Settle = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, PoolPolicy{Categories: map[string]string{"c": "l"}, Lanes: []LanePolicy{{Name: "l"}}})
			ask := Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id", TTL: time.Minute}
			s.acquire(&ask)
			differ(&ask)
			r := s.do(&ask)[0].(*AcquireResult)
			if r.Err == nil || r.Err.Reason != RequestMismatch {
				t.Errorf("another request under the id: %+v, want a mismatch", r)
			}
		})
	}
}

// A replay tells what has become of the permit since.
func TestReplaysTellThePresentState(t *testing.T) {
	s := tell(t, PoolPolicy{})
	ask := func(id string) *Acquire {
		return &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: id, TTL: time.Minute}
	}
	released, lost := s.acquire(ask("released")), s.acquire(ask("lost"))
	s.wait(20 * time.Second)
	live := s.acquire(ask("lost")).Permit
	want(t, "state of a live permit", live.State, PermitLive)
	want(t, "time left", live.ExpiresIn, 40*time.Second)
	s.release(released.Permit.Token)
	s.wait(40 * time.Second)
	want(t, "state of a released permit", s.acquire(ask("released")).Permit.State, PermitReleased)
	want(t, "state of an expired permit", s.acquire(ask("lost")).Permit.State, PermitLost)
	want(t, "fence of an expired permit", s.acquire(ask("lost")).Permit.Fence, lost.Permit.Fence)
}

// A pool that can remember no more ids refuses to grant under a new one, says when
// it can, and then does; without an id nothing is refused.
func TestFullMemoryOfRequestIDsRefusesForATime(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{RequestIDs: 1}})
	ask := func(id string) *Acquire { return &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: id} }
	s.acquire(ask("one"))
	s.wait(time.Minute)
	shed := s.acquire(ask("two")).Shed
	if shed == nil || shed.Reason != Cardinality || shed.RetryAfter != memoryWindow-time.Minute {
		t.Fatalf("second id: %+v, want it shed until the first is forgotten", shed)
	}
	s.granted("a")
	at := s.t.Add(shed.RetryAfter)
	if d := s.Decide(at, ask("two")).Decision; d.Shed != nil {
		t.Errorf("decided when the first is forgotten: shed %s, want a grant", d.Shed.Reason)
	}
	s.wait(shed.RetryAfter)
	if d := s.acquire(ask("two")); d.Shed != nil {
		t.Errorf("applied when the first is forgotten: shed %s, want a grant", d.Shed.Reason)
	}
}
