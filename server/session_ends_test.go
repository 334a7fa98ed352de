package server

import (
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/admission"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// What is abandoned by the message that would begin it does not begin.
func TestACallAbandonedAsItBegins(t *testing.T) {
	store := newFakeStore()
	store.hold = holdWaits
	c := start(t, store).session(t, soon(t))
	m := call(waiting("acme"))
	m.Id = 1
	if err := c.stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{m}, Abandoned: []uint64{1}}); err != nil {
		t.Fatal(err)
	}
	if err := failed(c.answer(1)); status.Code(err) != codes.Canceled {
		t.Errorf("answered with %v", err)
	}
	if n := store.inLine(); n != 0 {
		t.Errorf("%d are in line", n)
	}
}

// A panic over a message ends the session, and nothing else.
func TestAPanicOfTheStoreIsOneSessionsEnd(t *testing.T) {
	store := newFakeStore()
	store.hold = func(admission.Op) bool { panic("the store fails") }
	h := start(t, store)
	c := h.session(t, soon(t))
	c.send(otp("acme"))
	if err := c.end(); status.Code(err) != codes.Internal {
		t.Errorf("ended with %v", err)
	}
	store.mu.Lock()
	store.hold = nil
	store.mu.Unlock()
	if a := h.session(t, soon(t)).ask(otp("acme")); a.GetOutcome() == nil {
		t.Error("the next session has no answer")
	}
	if open := gauge(t, h, "admit_session_calls_open"); open != 0 {
		t.Errorf("%v calls are open", open)
	}
}
