package raftstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
)

// What a release frees goes to a parked poll or to who waits in line, whichever
// comes first in fair order.
func TestAReleaseServesPollsAndWaitersInOneOrder(t *testing.T) {
	n, _ := startMail(t, Config{})
	held := n.fill()
	n.schedule(0, "k") // before anybody waits, and so first
	poll := n.poll(t.Context(), 1, time.Hour)
	n.waitParked(1)
	wait := n.ask(t.Context(), waitOp("globex", "", time.Minute))
	n.waitWaiting(1, 1)
	n.release(held[0])
	if p := receive(t, poll); p.err != nil || len(p.claims) != 1 {
		t.Fatalf("the poll: %+v", p)
	}
	n.waitWaiting(1, 1)
	n.release(held[1])
	if a := told(t, wait); a.err != nil || !a.Decision.Granted() {
		t.Fatalf("the waiter: %+v", a)
	}
}

func TestWhatIsPlannedGoesToAParkedPollAtOnce(t *testing.T) {
	n, _ := startMail(t, Config{})
	poll := n.poll(t.Context(), 1, time.Hour)
	n.waitParked(1)
	before := n.index()
	n.schedule(0, "k")
	if p := receive(t, poll); p.err != nil || len(p.claims) != 1 || p.answer.Index != before+1 {
		t.Fatalf("%+v at %d, want one claim at %d", p.claims, p.answer.Index, before+1)
	}
}

// A poll that was attached in vain stays where it was, however often.
func TestAPollThatAReleaseDoesNotServeStaysParked(t *testing.T) {
	n, _ := startMail(t, Config{})
	p := testPolicy()
	p.Pools[0].MaxActive = 0
	p.Pools[0].Overrides = []admission.TenantPolicy{{ID: "acme", MaxActive: 1}}
	n.applyPolicy(p)
	own := n.mustAcquire("acme")
	n.schedule(0, "k")
	poll := n.poll(t.Context(), 1, time.Hour)
	n.waitParked(1)
	for range 2 * emptyPolls {
		n.release(n.mustAcquire("globex"))
		n.waitParked(1)
	}
	n.release(own)
	if p := receive(t, poll); p.err != nil || len(p.claims) != 1 {
		t.Fatalf("%+v", p)
	}
}

// However many polls wait elsewhere, those of the pool are found.
func TestWhatIsPlannedFindsThePollsOfItsPool(t *testing.T) {
	n, _ := startMail(t, Config{})
	p := testPolicy()
	other := p.Pools[0]
	other.Name = "other"
	p.Pools = append(p.Pools, other)
	n.applyPolicy(p)
	ctx, cancel := context.WithCancel(t.Context())
	var elsewhere sync.WaitGroup
	const many = 4 * attachLook
	for i := range many {
		op := &admission.NextDue{Pool: "other", MaxItems: 1, Node: admission.Node{ID: fmt.Sprint(i), Owned: 1, Total: 1}}
		elsewhere.Go(func() {
			if _, err := n.NextDue(ctx, Request{Op: op}, time.Hour); !errors.Is(err, context.Canceled) {
				t.Errorf("a poll elsewhere: %v", err)
			}
		})
	}
	for i := range 4 {
		n.waitParked(many)
		poll := n.poll(t.Context(), 1, time.Hour)
		n.waitParked(many + 1)
		before := n.index()
		n.schedule(0, fmt.Sprint(i))
		p := receive(t, poll)
		if p.err != nil || len(p.claims) != 1 || p.answer.Index != before+1 {
			t.Fatalf("%+v at %d, want one claim at %d", p.claims, p.answer.Index, before+1)
		}
		n.release(p.claims[0].Permit.Token)
	}
	cancel()
	elsewhere.Wait()
}

// A look at a few groups comes to all in turn, some of which it drops.
func TestGroupsAreLookedAtInTurn(t *testing.T) {
	ps := &polls{groups: make(map[string]*pollGroup), pools: make(map[string]*turns)}
	for i := range 5 {
		ps.group(fmt.Sprint(i), "mail").out = 1
	}
	var seen []string
	look := func(n int) {
		for g := range ps.all.next(n) {
			if seen = append(seen, g.key); g.key == "2" {
				g.out = 0
				ps.dropIfEmpty(g)
			}
		}
	}
	for range 3 {
		look(2)
	}
	look(9)
	if got, want := fmt.Sprint(seen), "[0 1 2 3 4 0 1 3 4 0]"; got != want {
		t.Errorf("they were looked at as %v, want %v", got, want)
	}
	if len(ps.groups) != 4 || ps.pools["mail"].Len() != 4 {
		t.Errorf("%d groups are left, and %d of the pool", len(ps.groups), ps.pools["mail"].Len())
	}
}
