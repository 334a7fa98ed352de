package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode is a cluster of one node that grants everything, and remembers. Hooks may
// hold calls or have them fail before they are decided.
type fakeNode struct {
	admitv1.UnimplementedAdmissionServiceServer
	admitv1.UnimplementedDueWorkServiceServer
	admitv1.UnimplementedStatusServiceServer
	health *health.Server
	ttl    time.Duration

	mu sync.Mutex
	// before is called with each request before it is decided, and its number from 1.
	before hook
	// lend answers for shares, of which there were so many; nil lends nothing.
	shares  int
	lend    func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error)
	permits map[string]*fakePermit // by token
	byID    map[string]string      // from request_id to token
	// requests are all that came, traces where they said that they are.
	requests []any
	traces   []string
	messages int
}

type hook func(ctx context.Context, n int, req any) error

// hook has requests looked at from now on; nil no more.
func (f *fakeNode) hook(h hook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = h
}

type fakePermit struct {
	expires time.Time
	outcome admitv1.Outcome // set once it was released
	cost    *int64
}

func newFakeNode() *fakeNode {
	return &fakeNode{
		health: health.NewServer(), ttl: 10 * time.Second,
		permits: make(map[string]*fakePermit), byID: make(map[string]string),
	}
}

// came notes a request, and has the hook look at it.
func (f *fakeNode) came(ctx context.Context, req any) error {
	f.mu.Lock()
	f.requests = append(f.requests, req)
	n := len(f.requests)
	if md := metadata.ValueFromIncomingContext(ctx, "traceparent"); len(md) > 0 {
		f.traces = append(f.traces, md[0])
	}
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	return before(ctx, n, req)
}

// grant returns the permit of a request_id, a new one where it has none.
func (f *fakeNode) grant(id string) (p *admitv1.Permit, replayed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	token, known := f.byID[id]
	if !known || id == "" {
		token = fmt.Sprintf("p%d", len(f.permits)+1)
		f.permits[token] = &fakePermit{expires: time.Now().Add(f.ttl)}
		f.byID[id] = token
	}
	return &admitv1.Permit{
		Token: token, State: admitv1.PermitState_PERMIT_STATE_LIVE, Pool: "email", Tenant: "acme",
		ExpiresIn: durationpb.New(time.Until(f.permits[token].expires)),
	}, known && id != ""
}

// permit returns how a permit stands, and whether it is live.
func (f *fakeNode) permit(token string) (fakePermit, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.permits[token]
	if p == nil {
		return fakePermit{}, false
	}
	return *p, p.outcome == 0 && time.Now().Before(p.expires)
}

// seen returns the requests of a type that came so far.
func seen[Req any](f *fakeNode) (reqs []Req) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if req, ok := r.(Req); ok {
			reqs = append(reqs, req)
		}
	}
	return reqs
}

func (f *fakeNode) Acquire(ctx context.Context, r *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	if r.GetDryRun() {
		return &admitv1.AcquireResponse{Decision: &admitv1.Decision{Outcome: &admitv1.Decision_WouldGrant{WouldGrant: &admitv1.WouldGrant{}}}}, nil
	}
	p, replayed := f.grant(r.GetRequestId())
	return &admitv1.AcquireResponse{Decision: &admitv1.Decision{Replayed: replayed, Outcome: &admitv1.Decision_Permit{Permit: p}}}, nil
}

func (f *fakeNode) BatchAcquire(ctx context.Context, r *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	resp := &admitv1.BatchAcquireResponse{}
	for _, one := range r.GetRequests() {
		p, _ := f.grant(one.GetRequestId())
		resp.Results = append(resp.Results, &admitv1.BatchAcquireResult{Result: &admitv1.BatchAcquireResult_Response{
			Response: &admitv1.AcquireResponse{Decision: &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: p}}},
		}})
	}
	return resp, nil
}

func (f *fakeNode) NextDue(ctx context.Context, r *admitv1.NextDueRequest) (*admitv1.NextDueResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	p, replayed := f.grant(r.GetRequestId())
	return &admitv1.NextDueResponse{Replayed: replayed, Claims: []*admitv1.Claim{{Permit: p, Key: "k"}}}, nil
}

func (f *fakeNode) Renew(ctx context.Context, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := &admitv1.RenewResponse{}
	for _, token := range r.GetTokens() {
		result := &admitv1.RenewResult{Result: admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST}
		switch p := f.permits[token]; {
		case p == nil:
		case p.outcome != 0:
			result.Result = admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED
		case time.Now().Before(p.expires):
			p.expires = time.Now().Add(f.ttl)
			result.Result, result.ExpiresIn = admitv1.LeaseResult_LEASE_RESULT_RENEWED, durationpb.New(f.ttl)
		}
		resp.Results = append(resp.Results, result)
	}
	return resp, nil
}

func (f *fakeNode) Release(ctx context.Context, r *admitv1.ReleaseRequest) (*admitv1.ReleaseResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	return f.release(r), nil
}

func (f *fakeNode) BatchRelease(ctx context.Context, r *admitv1.BatchReleaseRequest) (*admitv1.BatchReleaseResponse, error) {
	if err := f.came(ctx, r); err != nil {
		return nil, err
	}
	resp := &admitv1.BatchReleaseResponse{}
	for _, one := range r.GetRequests() {
		resp.Results = append(resp.Results, &admitv1.BatchReleaseResult{Result: &admitv1.BatchReleaseResult_Response{Response: f.release(one)}})
	}
	return resp, nil
}

func (f *fakeNode) release(r *admitv1.ReleaseRequest) *admitv1.ReleaseResponse {
	f.mu.Lock()
	defer f.mu.Unlock()
	resp := &admitv1.ReleaseResponse{Result: admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST}
	switch p := f.permits[r.GetToken()]; {
	case p == nil:
	case p.outcome != 0:
		resp.Result = admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED
	case time.Now().Before(p.expires):
		p.outcome, p.cost = max(r.GetOutcome(), admitv1.Outcome_OUTCOME_DONE), r.ActualCost
		resp.Result = admitv1.LeaseResult_LEASE_RESULT_RELEASED
	}
	return resp
}

func (f *fakeNode) ReportDemand(ctx context.Context, r *admitv1.ReportDemandRequest) (*admitv1.ReportDemandResponse, error) {
	return &admitv1.ReportDemandResponse{}, f.came(ctx, r)
}

func (f *fakeNode) Schedule(ctx context.Context, r *admitv1.ScheduleRequest) (*admitv1.ScheduleResponse, error) {
	return &admitv1.ScheduleResponse{Results: []*admitv1.ScheduleResult{{Status: admitv1.ScheduleResult_STATUS_SCHEDULED}}}, f.came(ctx, r)
}

func (f *fakeNode) Redrive(ctx context.Context, r *admitv1.RedriveRequest) (*admitv1.RedriveResponse, error) {
	return &admitv1.RedriveResponse{}, f.came(ctx, r)
}

func (f *fakeNode) WatchShedding(r *admitv1.WatchSheddingRequest, stream admitv1.StatusService_WatchSheddingServer) error {
	if err := f.came(stream.Context(), r); err != nil {
		return err
	}
	for range 2 {
		if err := stream.Send(&admitv1.WatchSheddingResponse{}); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}

// fakeEnvoy answers Envoy's requests.
type fakeEnvoy struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	f *fakeNode
}

func (fe fakeEnvoy) ShouldRateLimit(ctx context.Context, r *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OVER_LIMIT}, fe.f.came(ctx, r)
}

// fakeShares lends as the test says.
type fakeShares struct {
	admitv1alpha1.UnimplementedShareServiceServer
	f *fakeNode
}

func (fs fakeShares) LeaseShare(ctx context.Context, r *admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
	if err := fs.f.came(ctx, r); err != nil {
		return nil, err
	}
	fs.f.mu.Lock()
	defer fs.f.mu.Unlock()
	if fs.f.lend == nil {
		return nil, refusal(codes.FailedPrecondition, reasonNotShared, nil)
	}
	resp, err := fs.f.lend(r)
	if s := resp.GetShare(); s != nil {
		fs.f.shares++
		s.Token = fmt.Sprintf("s%d", fs.f.shares)
		fs.f.permits[s.GetToken()] = &fakePermit{expires: time.Now().Add(s.GetExpiresIn().AsDuration())}
	}
	return resp, err
}

// fakeSessions answers the calls of sessions as the node answers them by themselves.
type fakeSessions struct {
	admitv1alpha1.UnimplementedSessionServiceServer
	f *fakeNode
}

func (fs fakeSessions) Session(stream admitv1alpha1.SessionService_SessionServer) error {
	var sending sync.Mutex
	var running sync.WaitGroup
	defer running.Wait()
	open := map[uint64]context.CancelFunc{}
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fs.f.mu.Lock()
		fs.f.messages++
		fs.f.mu.Unlock()
		for _, id := range req.GetAbandoned() {
			open[id]()
		}
		for _, c := range req.GetCalls() {
			ctx, cancel := context.WithCancel(metadata.NewIncomingContext(stream.Context(), metadata.MD{}))
			if c.GetTraceparent() != "" {
				ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("traceparent", c.GetTraceparent()))
			}
			open[c.GetId()] = cancel
			running.Go(func() {
				defer cancel()
				a := fs.answer(ctx, c)
				sending.Lock()
				defer sending.Unlock()
				_ = stream.Send(&admitv1alpha1.SessionResponse{Answers: []*admitv1alpha1.SessionAnswer{a}}) // fails where the sidecar has gone
			})
		}
	}
}

func (fs fakeSessions) answer(ctx context.Context, c *admitv1alpha1.SessionCall) *admitv1alpha1.SessionAnswer {
	out := &admitv1alpha1.SessionAnswer{Id: c.GetId()}
	var err error
	switch in := c.GetRequest().(type) {
	case *admitv1alpha1.SessionCall_Acquire:
		a := &admitv1alpha1.SessionAnswer_Acquire{}
		out.Outcome = a
		a.Acquire, err = fs.f.Acquire(ctx, in.Acquire)
	case *admitv1alpha1.SessionCall_Renew:
		a := &admitv1alpha1.SessionAnswer_Renew{}
		out.Outcome = a
		a.Renew, err = fs.f.Renew(ctx, in.Renew)
	case *admitv1alpha1.SessionCall_Release:
		a := &admitv1alpha1.SessionAnswer_Release{}
		out.Outcome = a
		a.Release, err = fs.f.Release(ctx, in.Release)
	}
	if err != nil {
		p := status.Convert(err).Proto()
		out.Outcome = &admitv1alpha1.SessionAnswer_Failure{Failure: &admitv1alpha1.CallStatus{Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails()}}
	}
	return out
}

// machine is a sidecar between a fake cluster and the workers of a test.
type machine struct {
	t        *testing.T
	node     *fakeNode
	server   *Server
	reg      *prometheus.Registry
	listener *bufconn.Listener
	// connect lets the sidecar reach the node, stop stops it.
	connect, stop func()
}

// onAMachine runs a test with a sidecar on virtual time.
func onAMachine(t *testing.T, opts Options, test func(t *testing.T, m *machine)) {
	t.Helper()
	onALonelyMachine(t, opts, func(t *testing.T, m *machine) {
		m.connect()
		test(t, m)
	})
}

// onALonelyMachine is onAMachine for a sidecar that does not reach the node until the
// test has it connect.
func onALonelyMachine(t *testing.T, opts Options, test func(t *testing.T, m *machine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &machine{t: t, node: newFakeNode(), reg: prometheus.NewRegistry(), listener: bufconn.Listen(1 << 16)}
		upstream, reached := bufconn.Listen(1<<16), make(chan struct{})
		m.connect = sync.OnceFunc(func() { close(reached) })
		node := grpc.NewServer(grpc.WaitForHandlers(true))
		admitv1.RegisterAdmissionServiceServer(node, m.node)
		admitv1.RegisterDueWorkServiceServer(node, m.node)
		admitv1.RegisterStatusServiceServer(node, m.node)
		admitv1alpha1.RegisterSessionServiceServer(node, fakeSessions{f: m.node})
		admitv1alpha1.RegisterShareServiceServer(node, fakeShares{f: m.node})
		ratelimitv3.RegisterRateLimitServiceServer(node, fakeEnvoy{f: m.node})
		grpc_health_v1.RegisterHealthServer(node, m.node.health)
		up, err := client.Dial("passthrough:///node", client.WithSession(), client.WithTracing(noop.NewTracerProvider()),
			client.WithDialOptions(grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				select {
				case <-reached:
					return upstream.DialContext(ctx)
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})))
		if err != nil {
			t.Fatal(err)
		}
		if opts.MaxPermits == 0 {
			opts.MaxPermits = 1000
		}
		if m.server, err = New(up, opts, slog.New(slog.DiscardHandler), m.reg); err != nil {
			t.Fatal(err)
		}
		var serving sync.WaitGroup
		serving.Go(func() { _ = node.Serve(upstream) })
		serving.Go(func() {
			if err := m.server.Serve(m.listener); err != nil {
				t.Error(err)
			}
		})
		m.stop = sync.OnceFunc(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			m.server.Stop(ctx)
		})
		test(t, m)
		m.stop()
		if err := up.Close(); err != nil {
			t.Error(err)
		}
		node.Stop()
		serving.Wait()
	})
}

// conn is a worker with one connection, which can be cut.
type conn struct {
	*grpc.ClientConn
	admitv1.AdmissionServiceClient
	cut func()
}

// worker returns one that calls the sidecar. It is gone at the test's end.
func (m *machine) worker() *conn {
	m.t.Helper()
	c, err := grpc.NewClient("passthrough:///sidecar", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return m.listener.DialContext(ctx) }))
	if err != nil {
		m.t.Fatal(err)
	}
	cut := sync.OnceFunc(func() { _ = c.Close() })
	m.t.Cleanup(cut)
	return &conn{c, admitv1.NewAdmissionServiceClient(c), cut}
}

// acquire asks for a permit, which must be granted, and returns its token.
func (c *conn) acquire(t *testing.T, req *admitv1.AcquireRequest, opts ...grpc.CallOption) string {
	t.Helper()
	resp, err := c.Acquire(t.Context(), req, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetDecision().GetPermit().GetToken()
}

// goes lets so much time go by.
func goes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// held returns the tokens that the sidecar keeps.
func (m *machine) held() (tokens []string) {
	m.server.table.mu.Lock()
	defer m.server.table.mu.Unlock()
	for token := range m.server.table.holds {
		tokens = append(tokens, token)
	}
	slices.Sort(tokens)
	return tokens
}
