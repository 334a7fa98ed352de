package raftstore

import (
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
