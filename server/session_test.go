package server

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	spb "google.golang.org/genproto/googleapis/rpc/status"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
	"github.com/admitd/admit/raftstore"
)

// caller is the other end of a session.
type caller struct {
	t      *testing.T
	stream admitv1alpha1.SessionService_SessionClient
	// answers are those that came and nobody asked for yet.
	answers map[uint64]*admitv1alpha1.SessionAnswer
	leader  string
	last    uint64
}

func (h *harness) session(t *testing.T, ctx context.Context) *caller {
	t.Helper()
	stream, err := admitv1alpha1.NewSessionServiceClient(h.conn).Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{t: t, stream: stream, answers: make(map[uint64]*admitv1alpha1.SessionAnswer)}
}

// call makes a call of a request.
func call(req proto.Message) *admitv1alpha1.SessionCall {
	switch r := req.(type) {
	case *admitv1.AcquireRequest:
		return &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Acquire{Acquire: r}}
	case *admitv1.RenewRequest:
		return &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Renew{Renew: r}}
	case *admitv1.ReleaseRequest:
		return &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Release{Release: r}}
	}
	return &admitv1alpha1.SessionCall{}
}

// send sends requests in one message, and returns the id of the first.
func (c *caller) send(reqs ...proto.Message) (first uint64) {
	c.t.Helper()
	first = c.last + 1
	msg := &admitv1alpha1.SessionRequest{}
	for _, r := range reqs {
		c.last++
		m := call(r)
		m.Id = c.last
		msg.Calls = append(msg.Calls, m)
	}
	if err := c.stream.Send(msg); err != nil {
		c.t.Fatal(err)
	}
	return first
}

// answer waits for the answer to a call. An id is answered once.
func (c *caller) answer(id uint64) *admitv1alpha1.SessionAnswer {
	c.t.Helper()
	for c.answers[id] == nil {
		resp, err := c.stream.Recv()
		if err != nil {
			c.t.Fatalf("waiting for the answer to %d: %v", id, err)
		}
		if resp.GetLeaderAddr() != "" {
			c.leader = resp.GetLeaderAddr()
		}
		for _, a := range resp.GetAnswers() {
			if c.answers[a.GetId()] != nil {
				c.t.Errorf("%d was answered twice", a.GetId())
			}
			c.answers[a.GetId()] = a
		}
	}
	return c.answers[id]
}

// ask is send and answer for one.
func (c *caller) ask(req proto.Message) *admitv1alpha1.SessionAnswer {
	c.t.Helper()
	return c.answer(c.send(req))
}

// end is how the stream ended, once all has come.
func (c *caller) end() error {
	c.t.Helper()
	for {
		resp, err := c.stream.Recv()
		if err != nil {
			return err
		}
		for _, a := range resp.GetAnswers() {
			c.answers[a.GetId()] = a
		}
	}
}

// failed is a call's own failure as an error, nil if it has none.
func failed(a *admitv1alpha1.SessionAnswer) error {
	f := a.GetFailure()
	return status.FromProto(&spb.Status{Code: f.GetCode(), Message: f.GetMessage(), Details: f.GetDetails()}).Err()
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !holds(); <-tick.C {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s: not in 10 s", what)
		}
	}
}

func otp(tenant string) *admitv1.AcquireRequest {
	return &admitv1.AcquireRequest{Pool: "email", Tenant: tenant, Category: "otp"}
}

func waiting(tenant string) *admitv1.AcquireRequest {
	in := otp(tenant)
	in.MaxWait = durationpb.New(time.Minute)
	return in
}

func holdWaits(op admission.Op) bool {
	a, ok := op.(*admission.Acquire)
	return ok && a.MaxWait > 0
}

func TestASessionCarriesCalls(t *testing.T) {
	h, _ := startWithPolicy(t)
	c := h.session(t, soon(t))
	first := c.send(otp("acme"), otp("trial"), otp("trial"))
	granted := c.answer(first).GetAcquire()
	p := granted.GetDecision().GetPermit()
	if p.GetToken() == "" || p.GetTenant() != "acme" || len(granted.GetShedding().GetLanes()) != 2 || granted.GetDecided().GetIndex() == 0 {
		t.Errorf("got %v", granted)
	}
	if c.answer(first+1).GetAcquire().GetDecision().GetPermit() == nil {
		t.Errorf("got %v", c.answer(first+1))
	}
	if s := c.answer(first + 2).GetAcquire().GetDecision().GetShed(); s.GetReason() != admitv1.Reason_REASON_TENANT_CAP {
		t.Errorf("got %v", c.answer(first+2))
	}
	renewed := c.ask(&admitv1.RenewRequest{Tokens: []string{p.GetToken()}, Ttl: durationpb.New(time.Hour)}).GetRenew()
	if got := renewed.GetResults()[0].GetExpiresIn().AsDuration(); got != time.Hour {
		t.Errorf("renewed for %v", got)
	}
	release := &admitv1.ReleaseRequest{Token: p.GetToken()}
	first = c.send(release, release)
	if got := c.answer(first).GetRelease().GetResult(); got != admitv1.LeaseResult_LEASE_RESULT_RELEASED {
		t.Errorf("got %v", got)
	}
	if got := c.answer(first + 1).GetRelease().GetResult(); got != admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED {
		t.Errorf("got %v", got)
	}
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := c.end(); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
}

// A call fails as it would have by itself, and others beside it don't.
func TestCallsOfASessionFailAsByThemselves(t *testing.T) {
	notLeader := &raftstore.NotLeaderError{LeaderAddr: "host:1", LeaderID: "n1"}
	withID := func(in *admitv1.AcquireRequest) *admitv1.AcquireRequest { in.RequestId = "r"; return in }
	for name, c := range map[string]struct {
		req  proto.Message
		fail error
	}{
		"fields at fault":                 {req: &admitv1.AcquireRequest{Cost: proto.Int64(-1)}},
		"tokens that can't be read":       {req: &admitv1.RenewRequest{Tokens: []string{"x", goodToken, "y"}}},
		"a release of nothing":            {req: &admitv1.ReleaseRequest{}},
		"an unknown pool":                 {req: &admitv1.AcquireRequest{Pool: "nowhere", Tenant: "acme"}},
		"an unknown category":             {req: &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", Category: "no"}},
		"no leader here":                  {req: otp("acme"), fail: notLeader},
		"no leader at all":                {req: otp("acme"), fail: raftstore.ErrNoQuorum},
		"a full queue":                    {req: otp("acme"), fail: &raftstore.OverloadedError{Queue: "grants", RetryAfter: time.Second}},
		"an unknown outcome":              {req: otp("acme"), fail: raftstore.ErrOutcomeUnknown},
		"an unknown outcome, to be asked": {req: withID(otp("acme")), fail: raftstore.ErrOutcomeUnknown},
		"an unknown outcome of a release": {req: &admitv1.ReleaseRequest{Token: goodToken}, fail: raftstore.ErrOutcomeUnknown},
		"too late":                        {req: otp("acme"), fail: context.DeadlineExceeded},
		"a fault of ours":                 {req: otp("acme"), fail: errors.New("the disk is full")},
	} {
		t.Run(name, func(t *testing.T) {
			h, store := startWithPolicy(t)
			store.mu.Lock()
			store.fail = c.fail
			store.mu.Unlock()
			want := tell(t, alone(h, t, c.req))
			s := h.session(t, soon(t))
			got := tell(t, failed(s.ask(c.req)))
			if got.code != want.code || got.reason != want.reason || got.fields != want.fields || got.retry != want.retry ||
				got.text != want.text || len(got.meta) != len(want.meta) {
				t.Errorf("got %+v, want %+v", got, want)
			}
			store.mu.Lock()
			store.fail = nil
			store.mu.Unlock()
			if s.ask(otp("acme")).GetAcquire() == nil {
				t.Error("the next call failed, too")
			}
		})
	}
}

// alone makes a call by itself.
func alone(h *harness, t *testing.T, req proto.Message) (err error) {
	switch r := req.(type) {
	case *admitv1.AcquireRequest:
		_, err = h.Acquire(soon(t), r)
	case *admitv1.RenewRequest:
		_, err = h.Renew(soon(t), r)
	case *admitv1.ReleaseRequest:
		_, err = h.Release(soon(t), r)
	}
	return err
}

func TestACallWithoutARequest(t *testing.T) {
	h, _ := startWithPolicy(t)
	c := h.session(t, soon(t))
	if got := tell(t, failed(c.ask(nil))); got.code != codes.InvalidArgument || got.fields != "request" {
		t.Errorf("got %+v", got)
	}
}

// A fault in one call is the failure of that alone.
func TestAPanicIsOneCallsFailure(t *testing.T) {
	h, store := startWithPolicy(t)
	store.answer = func(r raftstore.Request) raftstore.Answer {
		if a, ok := r.Op.(*admission.Acquire); ok && a.Tenant == "acme" {
			return raftstore.Answer{Result: (*admission.AcquireResult)(nil)}
		}
		return store.apply(r)
	}
	c := h.session(t, soon(t))
	first := c.send(otp("acme"), otp("other"))
	if got := tell(t, failed(c.answer(first))); got.reason != "INTERNAL" {
		t.Errorf("got %+v", got)
	}
	if c.answer(first+1).GetAcquire().GetDecision().GetPermit() == nil {
		t.Errorf("got %v", c.answer(first+1))
	}
}

func TestMessagesThatBreakALimit(t *testing.T) {
	many := func(n int) []*admitv1alpha1.SessionCall {
		calls := make([]*admitv1alpha1.SessionCall, n)
		for i := range calls {
			calls[i] = call(otp("acme"))
			calls[i].Id = uint64(i + 10)
		}
		return calls
	}
	twice := many(3)
	twice[2].Id = twice[0].Id
	nameless := many(2)
	nameless[1].Id = 0
	taken := many(2)
	taken[1].Id = 1
	for name, c := range map[string]struct {
		msg  *admitv1alpha1.SessionRequest
		want string
	}{
		"empty":                      {&admitv1alpha1.SessionRequest{}, "calls"},
		"1001 calls":                 {&admitv1alpha1.SessionRequest{Calls: many(1001)}, "calls"},
		"too many are given up":      {&admitv1alpha1.SessionRequest{Abandoned: make([]uint64, 4097)}, "abandoned"},
		"no id":                      {&admitv1alpha1.SessionRequest{Calls: nameless}, "calls[1].id"},
		"an id twice":                {&admitv1alpha1.SessionRequest{Calls: twice}, "calls[2].id"},
		"the id of a call under way": {&admitv1alpha1.SessionRequest{Calls: taken}, "calls[1].id"},
	} {
		t.Run(name, func(t *testing.T) {
			h, store := startWithPolicy(t)
			store.hold = holdWaits
			s := h.session(t, soon(t))
			s.send(waiting("acme"))
			if err := s.stream.Send(c.msg); err != nil {
				t.Fatal(err)
			}
			until(t, "the first call is in line", func() bool { return store.inLine() == 1 })
			store.serve(t.Context(), 1)
			if got := tell(t, s.end()); got.code != codes.InvalidArgument || got.fields != c.want {
				t.Errorf("it ended with %+v", got)
			}
			if s.answers[1].GetAcquire() == nil || len(s.answers) != 1 {
				t.Errorf("the answers are %v", s.answers)
			}
		})
	}
}

func TestAMessageThatIsTooLarge(t *testing.T) {
	h, store := startWithPolicy(t)
	before := len(store.seen)
	c := h.session(t, soon(t))
	large := otp("acme")
	large.WorkerId = strings.Repeat("w", maxReceiveBytes)
	c.send(large)
	if err := c.end(); status.Code(err) != codes.ResourceExhausted || len(store.seen) != before {
		t.Errorf("it ended with %v", err)
	}
}

// Beyond so many calls the server reads no further, and goes on once some are answered.
func TestASessionHasOnlySoManyCallsOpen(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = holdWaits
	c := h.session(t, soon(t))
	reqs := make([]proto.Message, 1000)
	for i := range reqs {
		reqs[i] = waiting("acme")
	}
	for range 6 {
		c.send(reqs...)
	}
	until(t, "four messages are in line", func() bool { return store.inLine() == 4000 })
	answered := func(n uint64) {
		for id := range n {
			if c.answer(id+1).GetAcquire() == nil {
				t.Fatalf("%d got %v", id+1, c.answer(id+1))
			}
		}
	}
	store.serve(t.Context(), 904)
	answered(904) // who reads no answers holds up the calls too
	until(t, "the fifth is", func() bool { return store.inLine() == 4096 })
	store.serve(t.Context(), 4096)
	answered(5000) // what is not taken leaves no room either
	until(t, "the last is", func() bool { return store.inLine() == 1000 })
	store.serve(t.Context(), 1000)
	answered(6000)
	if store.longest != maxSessionCalls {
		t.Errorf("%d calls were under way at once", store.longest)
	}
}

// A node that stops ends the waits, answers what it has begun and refuses the rest.
func TestADrainedSession(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = func(op admission.Op) bool { return holdWaits(op) || op.(*admission.Acquire).Tenant == "slow" }
	c := h.session(t, soon(t))
	first := c.send(waiting("acme"), otp("slow"))
	until(t, "both are under way", func() bool { return store.inLine() == 2 })
	stopped := make(chan struct{})
	go func() { h.server.Stop(soon(t)); close(stopped) }()
	if got := tell(t, failed(c.answer(first))); got.code != codes.Unavailable || got.reason != "SHUTTING_DOWN" || got.retry == 0 {
		t.Errorf("who waits is told %+v", got)
	}
	if got := tell(t, failed(c.ask(otp("late")))); got.reason != "SHUTTING_DOWN" {
		t.Errorf("who comes late is told %+v", got)
	}
	store.serve(t.Context(), 1)
	if c.answer(first+1).GetAcquire().GetDecision().GetPermit() == nil {
		t.Errorf("what was begun got %v", c.answer(first+1))
	}
	if got := tell(t, c.end()); got.code != codes.Unavailable || got.reason != "SHUTTING_DOWN" {
		t.Errorf("it ended with %+v", got)
	}
	<-stopped
}

func TestAnAbandonedCallLeavesTheLine(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = holdWaits
	c := h.session(t, soon(t))
	first := c.send(waiting("acme"), waiting("acme"))
	until(t, "both are in line", func() bool { return store.inLine() == 2 })
	if err := c.stream.Send(&admitv1alpha1.SessionRequest{Abandoned: []uint64{first, 99}}); err != nil {
		t.Fatal(err)
	}
	if got := tell(t, failed(c.answer(first))); got.code != codes.Canceled {
		t.Errorf("got %+v", got)
	}
	store.serve(t.Context(), 1)
	if c.answer(first+1).GetAcquire().GetDecision().GetPermit() == nil {
		t.Errorf("the other got %v", c.answer(first+1))
	}
}

func TestALostSessionLeavesTheLine(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = holdWaits
	ctx, cancel := context.WithCancel(t.Context())
	c := h.session(t, ctx)
	c.send(waiting("acme"), waiting("other"))
	until(t, "both are in line", func() bool { return store.inLine() == 2 })
	cancel()
	until(t, "both have left it", func() bool { return store.inLine() == 0 })
}

func TestTimeoutsOfASessionsCalls(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = holdWaits
	c := h.session(t, soon(t))
	timed := call(waiting("acme"))
	timed.Id, timed.Timeout = 1, durationpb.New(time.Minute)
	untimed := call(waiting("acme"))
	untimed.Id = 2
	began := time.Now()
	if err := c.stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{timed, untimed}}); err != nil {
		t.Fatal(err)
	}
	until(t, "both are in line", func() bool { return store.inLine() == 2 })
	if got := store.line[0].Deadline.Sub(began); got < time.Minute || got > 2*time.Minute {
		t.Errorf("the deadline is in %v", got)
	}
	if !store.line[1].Deadline.IsZero() {
		t.Errorf("there is a deadline at %v", store.line[1].Deadline)
	}
	store.serve(t.Context(), 2)
	c.answer(2)
}

func TestSessionsAreCounted(t *testing.T) {
	h, store := startWithPolicy(t)
	store.hold = holdWaits
	c := h.session(t, soon(t))
	c.ask(otp("acme"))
	c.send(waiting("acme"))
	until(t, "it is in line", func() bool { return store.inLine() == 1 })
	if open, calls := gauge(t, h, "admit_sessions_open"), gauge(t, h, "admit_session_calls_open"); open != 1 || calls != 1 {
		t.Errorf("%v sessions and %v calls are open", open, calls)
	}
	c.ask(&admitv1.ReleaseRequest{Token: "x"})
	if decisions, answered := gauge(t, h, "admit_decisions_total"), gauge(t, h, "admit_session_calls_total"); decisions != 1 || answered != 2 {
		t.Errorf("%v decisions and %v answers were counted", decisions, answered)
	}
	if got := scrape(t, h.reg); !strings.Contains(got, `admit_session_calls_total{call="Release",grpc_code="InvalidArgument"} 1`) {
		t.Errorf("got %s", got)
	}
	store.serve(t.Context(), 1)
	c.answer(2)
	if err := c.stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_ = c.end()
	until(t, "nothing is open", func() bool {
		return gauge(t, h, "admit_sessions_open") == 0 && gauge(t, h, "admit_session_calls_open") == 0
	})
}

// gauge is the sum of a metric's series.
func gauge(t *testing.T, h *harness, name string) (sum float64) {
	for _, f := range gather(t, h.reg) {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}

func TestSessionsOfWhoIsNotKnown(t *testing.T) {
	store := newFakeStore()
	h := startWith(t, store, Options{Guard: fakeGuard("secret")}, insecure.NewCredentials())
	c := h.session(t, soon(t))
	if got := tell(t, c.end()); got.code != codes.Unauthenticated || got.reason != "UNAUTHENTICATED" {
		t.Errorf("it ended with %+v", got)
	}
	c = h.session(t, metadata.AppendToOutgoingContext(soon(t), "authorization", "Bearer secret"))
	if got := tell(t, failed(c.ask(otp("acme")))); got.reason != "POOL_NOT_FOUND" {
		t.Errorf("got %+v", got)
	}
}
