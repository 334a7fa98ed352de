package admission

import (
	"testing"
	"time"
)

// A released permit is known as such for ten minutes; then its token says no more
// than one that was never granted.
func TestReleasedPermitsAreRememberedForTheWindow(t *testing.T) {
	s := tell(t, PoolPolicy{})
	p := s.granted("a")
	s.release(p.Token)
	s.wait(memoryWindow - 1)
	want(t, "just inside the window", s.release(p.Token).Result, LeaseAlreadyReleased)
	renewed := s.do(&Renew{Tokens: []Token{p.Token}})[0].(*RenewResult)
	want(t, "renewing it", renewed.Renewals[0].Result, LeaseAlreadyReleased)
	want(t, "whose it was", renewed.Tenant, "a")
	s.wait(1)
	want(t, "after the window", s.release(p.Token).Result, LeaseLost)
	want(t, "rows left", s.ended.Len(), 0)
}

// As many are remembered as the limit says, the youngest.
func TestReleasedPermitsAreLimited(t *testing.T) {
	s := tell(t, PoolPolicy{Limits: LimitsPolicy{EndedPermits: 2}})
	var tokens []Token
	for range 3 {
		tokens = append(tokens, s.granted("a").Token)
	}
	for _, token := range tokens {
		s.release(token)
	}
	for i, wanted := range []LeaseResult{LeaseLost, LeaseAlreadyReleased, LeaseAlreadyReleased} {
		want(t, "release again", s.release(tokens[i]).Result, wanted)
	}
}

// No log entry forgets more than its bound; those beyond the window that are still
// there count as forgotten.
func TestForgettingIsBounded(t *testing.T) {
	s := tell(t, PoolPolicy{})
	s.quick = true
	var asks []Op
	for i := range forgetBatch + 10 {
		asks = append(asks, &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: string(rune('a'+i%26)) + string(rune('0'+i/26))})
	}
	s.do(asks...)
	s.wait(memoryWindow)
	want(t, "ids after one entry", s.requests.Len(), 10)
	last := asks[len(asks)-1].(*Acquire)
	s.wait(0)
	want(t, "ids after two", s.requests.Len(), 0)
	want(t, "replayed", s.acquire(last).Replayed, false)
	check(t, s.State)
}

// A queue gives back what it was given, in order, and keeps no more room than it
// needs.
func TestFifo(t *testing.T) {
	var q fifo[int]
	next, taken := 0, 0
	for round := range 1000 {
		for range round % 7 {
			q.push(next)
			next++
		}
		for range round % 5 {
			if q.len() == 0 {
				break
			}
			want(t, "front", q.front(), taken)
			want(t, "pop", q.pop(), taken)
			taken++
		}
		want(t, "length", q.len(), next-taken)
		want(t, "room", len(q.items) <= 2*q.len()+1, true)
	}
}

// A request id whose time is over may be used again before it is forgotten.
func TestAnIDOfBeforeIsReplaced(t *testing.T) {
	s := tell(t, PoolPolicy{})
	ask := &Acquire{Pool: "p", Tenant: "a", Cost: 1, RequestID: "id"}
	s.acquire(ask)
	s.wait(memoryWindow + time.Second)
	want(t, "replayed", s.acquire(ask).Replayed, false)
	s.wait(memoryWindow - 1)
	want(t, "replayed within its own window", s.acquire(ask).Replayed, true)
}
