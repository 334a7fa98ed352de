package server

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// Any node takes a session, and has the leader decide.
func TestASessionWithAnotherNode(t *testing.T) {
	p := startPair(t, inPlain)
	c := p.session(t, soon(t))
	got := c.ask(otp("acme")).GetAcquire()
	token := got.GetDecision().GetPermit().GetToken()
	if token == "" || got.GetDecided().GetIndex() != p.lead.index || c.leader != p.addr {
		t.Fatalf("got %v, of the leader at %q", got, c.leader)
	}
	if got := c.ask(&admitv1.RenewRequest{Tokens: []string{token}}).GetRenew(); len(got.GetResults()) != 1 {
		t.Errorf("got %v", got)
	}
	first := c.send(&admitv1.ReleaseRequest{Token: token}, &admitv1.AcquireRequest{Pool: "nowhere", Tenant: "acme"}, otp(""))
	if got := c.answer(first).GetRelease().GetResult(); got != admitv1.LeaseResult_LEASE_RESULT_RELEASED {
		t.Errorf("got %v", got)
	}
	if got := tell(t, failed(c.answer(first+1))); got.reason != "POOL_NOT_FOUND" || got.code != codes.NotFound {
		t.Errorf("the leader's error arrives as %+v", got)
	}
	before := len(p.lead.seen)
	if got := tell(t, failed(c.answer(first+2))); got.fields != "tenant" || len(p.lead.seen) != before {
		t.Errorf("what is wrong got %+v", got)
	}
}

func TestASessionWithTheLeaderNamesNoOther(t *testing.T) {
	p := startPair(t, inPlain)
	c := p.leader.session(t, soon(t))
	if c.ask(otp("acme")).GetAcquire() == nil || c.leader != "" {
		t.Errorf("the leader is said to be at %q", c.leader)
	}
}

func TestASessionWhereTheLeaderIsNotKnown(t *testing.T) {
	p := startPair(t, inPlain)
	p.follow.fail = &raftstore.NotLeaderError{}
	c := p.session(t, soon(t))
	if got := tell(t, failed(c.ask(otp("acme")))); got.reason != "NOT_LEADER" || got.code != codes.Unavailable || c.leader != "" {
		t.Errorf("got %+v", got)
	}
}

// Each of two nodes takes the other for the leader.
func TestACallOfASessionIsForwardedOnce(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.fail = &raftstore.NotLeaderError{LeaderAddr: p.harness.listening(t), LeaderID: "n2"}
	c := p.session(t, soon(t))
	if got := tell(t, failed(c.ask(otp("acme")))); got.reason != "NOT_LEADER" || got.meta["leader_id"] != "n2" {
		t.Errorf("got %+v", got)
	}
	if first, second := len(p.follow.seen), len(p.lead.seen); first != 1 || second != 1 {
		t.Errorf("the nodes saw %d and %d requests", first, second)
	}
}

func TestALeaderThatDiesOverASession(t *testing.T) {
	for id, want := range map[string]codes.Code{"": codes.Aborted, "r": codes.Unavailable} {
		p := startPair(t, inPlain)
		p.leaderDies(t)
		c := p.session(t, soon(t))
		in := otp("acme")
		in.RequestId = id
		if got := tell(t, failed(c.ask(in))); got.code != want || got.reason != "OUTCOME_UNKNOWN" {
			t.Errorf("with request_id %q: got %+v", id, got)
		}
	}
}

// What is given up here ends at the leader, too, and so does what a node that stops has
// forwarded.
func TestForwardedWaitsOfASessionEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(p *pair, c *caller)
		code   codes.Code
		reason string
	}{
		"given up": {func(p *pair, c *caller) {
			if err := c.stream.Send(&admitv1alpha1.SessionRequest{Abandoned: []uint64{1}}); err != nil {
				t.Error(err)
			}
		}, codes.Canceled, ""},
		"the node stops":   {func(p *pair, _ *caller) { go p.server.Stop(soon(t)) }, codes.Unavailable, "SHUTTING_DOWN"},
		"the leader stops": {func(p *pair, _ *caller) { go p.leader.server.Stop(soon(t)) }, codes.Unavailable, "SHUTTING_DOWN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPair(t, inPlain)
			p.lead.park = make(chan struct{})
			s := p.session(t, soon(t))
			s.send(waiting("acme"))
			<-p.lead.park
			c.end(p, s)
			if got := tell(t, failed(s.answer(1))); got.code != c.code || got.reason != c.reason {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestALostSessionIsLostAtTheLeader(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park, p.lead.parted = make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	s := p.session(t, ctx)
	s.send(waiting("acme"))
	<-p.lead.park
	cancel()
	select {
	case <-p.lead.parted:
	case <-soon(t).Done():
		t.Error("the call goes on at the leader")
	}
}

func TestForwardedCallsOfASessionKeepTheirTimeout(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park, p.lead.parted = make(chan struct{}), make(chan struct{})
	c := p.session(t, soon(t))
	m := call(waiting("acme"))
	m.Id, m.Timeout = 1, durationpb.New(50*time.Millisecond)
	if err := c.stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{m}}); err != nil {
		t.Fatal(err)
	}
	if got := tell(t, failed(c.answer(1))); got.code != codes.DeadlineExceeded {
		t.Errorf("got %+v", got)
	}
}
