package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
	"github.com/admitd/admit/server/forward"
)

var inPlain = Options{Peers: insecure.NewCredentials()}

// listening has a server take calls at an address, too.
func (h *harness) listening(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = h.server.Serve(l) }() // until the server stops
	return l.Addr().String()
}

// pair is a node that leads, and one that knows it.
type pair struct {
	lead, follow *fakeStore
	leader       *harness
	*harness            // of the follower
	addr         string // the leader's
}

func startPair(t *testing.T, opts Options) *pair {
	t.Helper()
	p := &pair{lead: newFakeStore(), follow: newFakeStore()}
	op, err := readApplyPolicy(&admitv1.ApplyPolicyRequest{Policy: testPolicy()})
	if err != nil {
		t.Fatal(err)
	}
	p.lead.apply(raftstore.Request{Op: op})
	p.follow.apply(raftstore.Request{Op: op})
	p.leader = startWith(t, p.lead, opts, insecure.NewCredentials())
	p.addr = p.leader.listening(t)
	p.follow.leader = raftstore.Leader{NodeID: "n1", GRPCAddr: p.addr}
	p.follow.fail = &raftstore.NotLeaderError{LeaderAddr: p.addr, LeaderID: "n1"}
	p.harness = startWith(t, p.follow, opts, insecure.NewCredentials())
	return p
}

func TestWhatOnlyTheLeaderDecidesGoesThere(t *testing.T) {
	p := startPair(t, inPlain)
	granted, err := p.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "otp"})
	if err != nil || granted.GetDecision().GetPermit() == nil || granted.GetDecided().GetIndex() != p.lead.index {
		t.Fatalf("got %v, %v", granted, err)
	}
	token := granted.GetDecision().GetPermit().GetToken()
	entry := &admitv1.EntrySpec{Tenant: "acme", Key: "k", Category: "otp"}
	for name, call := range map[string]func(context.Context) (proto.Message, error){
		"BatchAcquire": func(ctx context.Context) (proto.Message, error) {
			return p.BatchAcquire(ctx, &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{{Pool: "email", Tenant: "acme"}}})
		},
		"Renew": func(ctx context.Context) (proto.Message, error) {
			return p.Renew(ctx, &admitv1.RenewRequest{Tokens: []string{token}})
		},
		"Release": func(ctx context.Context) (proto.Message, error) {
			return p.Release(ctx, &admitv1.ReleaseRequest{Token: token})
		},
		"BatchRelease": func(ctx context.Context) (proto.Message, error) {
			return p.BatchRelease(ctx, &admitv1.BatchReleaseRequest{Requests: []*admitv1.ReleaseRequest{{Token: token}}})
		},
		"NextDue": func(ctx context.Context) (proto.Message, error) {
			return p.NextDue(ctx, &admitv1.NextDueRequest{Pool: "email"})
		},
		"ReportDemand": func(ctx context.Context) (proto.Message, error) {
			return p.ReportDemand(ctx, &admitv1.ReportDemandRequest{Pool: "email", Tenant: "acme"})
		},
		"LeaseShare": func(ctx context.Context) (proto.Message, error) {
			p.lead.answer = func(raftstore.Request) raftstore.Answer {
				return raftstore.Answer{Result: &admission.LeaseShareResult{Shed: &admission.Shed{}}}
			}
			defer func() { p.lead.answer = nil }()
			return p.shares.LeaseShare(ctx, &admitv1alpha1.LeaseShareRequest{
				Pool: "email", Tenant: "acme", Tokens: 1, Node: &admitv1.NodeShare{Id: "n", Owned: 1, Total: 1},
			})
		},
		"Schedule": func(ctx context.Context) (proto.Message, error) {
			return p.due.Schedule(ctx, &admitv1.ScheduleRequest{Pool: "email", Entries: []*admitv1.EntrySpec{entry}})
		},
		"Redrive": func(ctx context.Context) (proto.Message, error) {
			return p.due.Redrive(ctx, &admitv1.RedriveRequest{Pool: "email"})
		},
		"PurgeDead": func(ctx context.Context) (proto.Message, error) {
			return p.due.PurgeDead(ctx, &admitv1.PurgeDeadRequest{Pool: "email"})
		},
		"ApplyPolicy": func(ctx context.Context) (proto.Message, error) {
			return p.policy.ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{Policy: testPolicy()})
		},
		"PutTenants": func(ctx context.Context) (proto.Message, error) {
			return p.policy.PutTenants(ctx, &admitv1.PutTenantsRequest{Pool: "email", Rows: []*admitv1.TenantPut{{Tenant: &admitv1.Tenant{Id: "acme"}}}})
		},
		"Pause": func(ctx context.Context) (proto.Message, error) {
			return p.policy.Pause(ctx, &admitv1.PauseRequest{Pool: "email", Target: &admitv1.PauseRequest_Tenant{Tenant: "x"}})
		},
		"Resume": func(ctx context.Context) (proto.Message, error) {
			return p.policy.Resume(ctx, &admitv1.ResumeRequest{Pool: "email", Target: &admitv1.ResumeRequest_Tenant{Tenant: "x"}})
		},
	} {
		before := len(p.lead.seen)
		if resp, err := call(soon(t)); err != nil || !resp.ProtoReflect().IsValid() {
			t.Errorf("%s: got %v, %v", name, resp, err)
		}
		if len(p.lead.seen) != before+1 {
			t.Errorf("%s did not reach the leader", name)
		}
	}
	_, err = p.due.Unschedule(soon(t), &admitv1.UnscheduleRequest{Pool: "email", Tenant: "acme", Key: "nope"})
	if got := tell(t, err); got.reason != "ENTRY_NOT_FOUND" || got.code != codes.NotFound {
		t.Errorf("the leader's error arrives as %+v", got)
	}
}

func TestWhatIsWrongGoesNowhere(t *testing.T) {
	p := startPair(t, inPlain)
	_, err := p.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email"})
	if got := tell(t, err); got.fields != "tenant" || len(p.lead.seen) != 0 {
		t.Errorf("got %+v, the leader saw %d requests", got, len(p.lead.seen))
	}
}

func TestAnswersSayWhereTheLeaderIs(t *testing.T) {
	p := startPair(t, inPlain)
	var trailer metadata.MD
	in := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"}
	if _, err := p.Acquire(soon(t), in, grpc.Trailer(&trailer)); err != nil {
		t.Fatal(err)
	}
	if got := trailer.Get(leaderTrailer); len(got) != 1 || got[0] != p.addr {
		t.Errorf("got %v, want %s", got, p.addr)
	}
	trailer = nil
	if _, err := p.leader.Acquire(soon(t), in, grpc.Trailer(&trailer)); err != nil || len(trailer.Get(leaderTrailer)) != 0 {
		t.Errorf("got %v, %v from the leader itself", trailer, err)
	}
}

// Each of two nodes takes the other for the leader.
func TestACallIsForwardedOnce(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.fail = &raftstore.NotLeaderError{LeaderAddr: p.harness.listening(t), LeaderID: "n2"}
	_, err := p.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"})
	if got := tell(t, err); got.reason != "NOT_LEADER" || got.meta["leader_id"] != "n2" || got.retry == 0 {
		t.Errorf("got %+v", got)
	}
	if first, second := len(p.follow.seen), len(p.lead.seen); first != 1 || second != 1 {
		t.Errorf("the nodes saw %d and %d requests", first, second)
	}
}

func TestALeaderThatCanNotBeReached(t *testing.T) {
	p := startPair(t, inPlain)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	p.follow.fail = &raftstore.NotLeaderError{LeaderAddr: gone}
	var trailer metadata.MD
	_, err = p.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"}, grpc.Trailer(&trailer))
	if got := tell(t, err); got.reason != "NOT_LEADER" || got.meta["leader_addr"] != gone {
		t.Errorf("got %+v", got)
	}
	if got := trailer.Get(leaderTrailer); len(got) != 0 {
		t.Errorf("nothing was learnt of a leader, and callers are sent to %v", got)
	}
	_, err = p.status.QueueHealth(soon(t), &admitv1.QueueHealthRequest{})
	if got := tell(t, err); got.reason != "NOT_LEADER" {
		t.Errorf("a read got %+v", got)
	}
}

// A leader that dies over a call may have done it.
func TestALeaderThatDies(t *testing.T) {
	for id, want := range map[string]codes.Code{"": codes.Aborted, "r": codes.Unavailable} {
		p := startPair(t, inPlain)
		p.leaderDies(t)
		_, err := p.Acquire(soon(t), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: id})
		if got := tell(t, err); got.code != want || got.reason != "OUTCOME_UNKNOWN" {
			t.Errorf("with request_id %q: got %+v", id, got)
		}
	}
}

// leaderDies has the leader be killed over the next call.
func (p *pair) leaderDies(t *testing.T) {
	p.lead.park = make(chan struct{})
	go func() {
		<-p.lead.park
		dead, kill := context.WithCancel(t.Context())
		kill()
		p.leader.server.Stop(dead)
	}()
}

// What goes well costs no look at how the call came or who leads.
func TestSuccessIsNotAskedWhoLeads(t *testing.T) {
	r := &router{forwarder: &forward.Forwarder{}}
	if _, elsewhere := r.elsewhere(unasked{t.Context(), t}, nil); elsewhere {
		t.Error("another node is to answer what was answered")
	}
}

// unasked is a context that nobody may look into.
type unasked struct {
	context.Context
	t *testing.T
}

func (u unasked) Value(key any) any {
	u.t.Errorf("asks for %T", key)
	return nil
}

// A forwarded call has its line in the leader's log, with each key once.
func TestForwardedCallsAreLogged(t *testing.T) {
	p := startPair(t, inPlain)
	if _, err := p.due.Unschedule(soon(t), &admitv1.UnscheduleRequest{Pool: "email", Tenant: "acme", Key: "nope"}); err == nil {
		t.Fatal("there was such an entry")
	}
	lines := slices.DeleteFunc(p.leader.log.lines(), func(l string) bool { return !strings.Contains(l, "forwarded=true") })
	if len(lines) != 1 || strings.Count(lines[0], " peer_address=") != 1 || strings.Count(lines[0], " grpc_method=Unschedule") != 1 {
		t.Errorf("got %q", lines)
	}
}

func TestALostCallerIsLostAtTheLeader(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park, p.lead.parted = make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-p.lead.park; cancel() }()
	_, err := p.Acquire(ctx, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme"})
	if status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	select {
	case <-p.lead.parted:
	case <-soon(t).Done():
		t.Error("the call goes on at the leader")
	}
}

// A node that stops has the leader end its waits, and tells what that says.
func TestAStopEndsForwardedWaits(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park = make(chan struct{})
	go func() { <-p.lead.park; p.server.Stop(soon(t)) }()
	_, err := p.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxWait: durationpb.New(time.Minute)})
	if got := tell(t, err); got.reason != "SHUTTING_DOWN" {
		t.Errorf("got %+v", got)
	}
}

// And a leader that stops ends those that came from elsewhere, too.
func TestAStoppingLeaderEndsForwardedWaits(t *testing.T) {
	p := startPair(t, inPlain)
	p.lead.park = make(chan struct{})
	go func() { <-p.lead.park; p.leader.server.Stop(soon(t)) }()
	_, err := p.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "email", MaxWait: durationpb.New(time.Minute)})
	if got := tell(t, err); got.reason != "SHUTTING_DOWN" {
		t.Errorf("got %+v", got)
	}
}

// What a call has waited before it is forwarded is not waited again.
func TestAWaitThatMovesOnIsShorter(t *testing.T) {
	half := func() *durationpb.Duration { return durationpb.New(30 * time.Second) }
	acquire := &admitv1.AcquireRequest{MaxWait: half()}
	poll := &admitv1.NextDueRequest{MaxWait: half()}
	batch := &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{{}, {MaxWait: half()}}}
	for _, c := range []struct {
		req  proto.Message
		wait func() *durationpb.Duration
	}{
		{acquire, acquire.GetMaxWait}, {poll, poll.GetMaxWait},
		{batch, func() *durationpb.Duration { return batch.GetRequests()[1].GetMaxWait() }},
	} {
		if !shorten(c.req, 10*time.Second) || c.wait().AsDuration() != 20*time.Second {
			t.Errorf("%T waits for %v", c.req, c.wait())
		}
		if shorten(c.req, time.Minute); c.wait() == nil || c.wait().AsDuration() != 0 {
			t.Errorf("%T waits for %v", c.req, c.wait())
		}
	}
	if shorten(&admitv1.AcquireRequest{}, 0) || shorten(&admitv1.ReleaseRequest{}, 0) || batch.GetRequests()[0].MaxWait != nil {
		t.Error("what does not wait is said to")
	}
}

// guardOf knows tokens: "node" is a node, all others name their owner.
type guardOf struct{}

func (guardOf) Identify(_ *tls.ConnectionState, token string) (Identity, bool) {
	return Identity{Name: token, Node: token == "node"}, token != ""
}

// as is what a caller shows.
type as string

func (a as) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(a)}, nil
}

func (as) RequireTransportSecurity() bool { return false }

func TestOnlyNodesForward(t *testing.T) {
	h := startWith(t, newFakeStore(), Options{Guard: guardOf{}, Peers: insecure.NewCredentials()}, insecure.NewCredentials())
	for caller, want := range map[as]codes.Code{"node": codes.OK, "acme": codes.PermissionDenied, "": codes.Unauthenticated} {
		ctx, cancel := context.WithCancel(soon(t))
		stream, err := forwardv1.NewForwardServiceClient(h.conn).Forward(ctx, grpc.PerRPCCredentials(caller))
		if err != nil {
			t.Fatal(err)
		}
		call := &forwardv1.Call{Id: 7, Method: forwardv1.ForwardService_ReadPoint_FullMethodName}
		if err := stream.Send(&forwardv1.ForwardRequest{Calls: []*forwardv1.Call{call}}); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if status.Code(err) != want || want == codes.OK && resp.GetAnswers()[0].GetId() != 7 {
			t.Errorf("%q: got %v, %v", caller, resp, err)
		}
		cancel()
	}
	_, err := forwardv1.NewForwardServiceClient(h.conn).ReadPoint(soon(t), &forwardv1.ReadPointRequest{}, grpc.PerRPCCredentials(as("node")))
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a read point by itself: %v", err)
	}
}

// Who calls is known at the leader by name, and is no node there.
func TestThePrincipalIsCarried(t *testing.T) {
	seen := make(chan Identity, 1)
	d := newDispatcher(grpc.NewServer(), newLimiter(), discard(), nil)
	admitv1.RegisterAdmissionServiceServer(d, &identified{seen: seen})
	call := forward.Call{Method: admitv1.AdmissionService_Acquire_FullMethodName}
	call.Principal = "acme"
	ctx := context.WithValue(t.Context(), identityKey{}, Identity{Name: "n2", Node: true})
	if _, err := d.answer(ctx, call); err != nil {
		t.Fatal(err)
	}
	if got := <-seen; got != (Identity{Name: "acme"}) {
		t.Errorf("got %+v", got)
	}
	call.Method = "/admit.v1.AdmissionService/Newer"
	if _, err := d.answer(ctx, call); status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
	call.Method, call.Request = admitv1.AdmissionService_Acquire_FullMethodName, []byte{0xff}
	_, err := d.answer(ctx, call)
	if got := tell(t, err); got.reason != "INVALID_FIELD" {
		t.Errorf("bytes that are no message: %+v", got)
	}
}

// identified tells who calls.
type identified struct {
	admitv1.UnimplementedAdmissionServiceServer
	seen chan Identity
}

func (i *identified) Acquire(ctx context.Context, _ *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	i.seen <- identityOf(ctx)
	return &admitv1.AcquireResponse{}, nil
}
