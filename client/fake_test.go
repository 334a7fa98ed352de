package client_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call is one request that reached the fake, and when.
type call[Req any] struct {
	req *Req
	at  time.Duration
}

// fake is an admit that answers as a test tells it to. By default every Acquire
// is granted for 30 s, every Renew renews, every Release releases, and there is
// nothing due.
type fake struct {
	admitv1.UnimplementedAdmissionServiceServer
	began time.Time

	onAcquire func(n int, r *admitv1.AcquireRequest) (*admitv1.Decision, error)
	onRenew   func(ctx context.Context, n int, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error)
	onRelease func(n int, r *admitv1.ReleaseRequest) (admitv1.LeaseResult, error)
	onNextDue func(ctx context.Context, n int, r *admitv1.NextDueRequest) ([]*admitv1.Claim, error)
	onReport  func(n int) error
	// leader is what Acquire says of where the leader is, if anything.
	leader string

	mu       sync.Mutex
	acquires []call[admitv1.AcquireRequest]
	renews   []call[admitv1.RenewRequest]
	releases []call[admitv1.ReleaseRequest]
	polls    []call[admitv1.NextDueRequest]
	reports  []call[admitv1.ReportDemandRequest]
}

// note adds a call to a list and returns its place in it, from 0.
func note[Req any](f *fake, calls *[]call[Req], req *Req) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	*calls = append(*calls, call[Req]{req, time.Since(f.began)})
	return len(*calls) - 1
}

// noted returns what a list has so far.
func noted[Req any](f *fake, calls *[]call[Req]) []call[Req] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(*calls)
}

func (f *fake) Acquire(ctx context.Context, r *admitv1.AcquireRequest) (*admitv1.AcquireResponse, error) {
	n := note(f, &f.acquires, r)
	if f.leader != "" {
		if err := grpc.SetTrailer(ctx, metadata.Pairs("admit-leader", f.leader)); err != nil {
			return nil, err
		}
	}
	if f.onAcquire == nil {
		return &admitv1.AcquireResponse{Decision: granted(permit("p", 30*time.Second))}, nil
	}
	d, err := f.onAcquire(n, r)
	return &admitv1.AcquireResponse{Decision: d}, err
}

func (f *fake) Renew(ctx context.Context, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
	n := note(f, &f.renews, r)
	if f.onRenew != nil {
		return f.onRenew(ctx, n, r)
	}
	return renewed(r, 30*time.Second), nil
}

func (f *fake) Release(_ context.Context, r *admitv1.ReleaseRequest) (*admitv1.ReleaseResponse, error) {
	n := note(f, &f.releases, r)
	if f.onRelease == nil {
		return &admitv1.ReleaseResponse{Result: admitv1.LeaseResult_LEASE_RESULT_RELEASED}, nil
	}
	result, err := f.onRelease(n, r)
	return &admitv1.ReleaseResponse{Result: result}, err
}

func (f *fake) NextDue(ctx context.Context, r *admitv1.NextDueRequest) (*admitv1.NextDueResponse, error) {
	n := note(f, &f.polls, r)
	var (
		claims []*admitv1.Claim
		err    error
	)
	if f.onNextDue != nil {
		claims, err = f.onNextDue(ctx, n, r)
	}
	if err == nil && len(claims) == 0 {
		hold(ctx, r.GetMaxWait().AsDuration())
	}
	return &admitv1.NextDueResponse{Claims: claims}, err
}

func (f *fake) ReportDemand(_ context.Context, r *admitv1.ReportDemandRequest) (*admitv1.ReportDemandResponse, error) {
	return &admitv1.ReportDemandResponse{}, f.onReport(note(f, &f.reports, r))
}

// hold waits as a parked poll does.
func hold(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ways are how a client's calls may travel; none of them may notice.
var ways = map[string][]client.Option{"by themselves": nil, "in a session": {client.WithSession()}}

// inBubble runs a test against the fake on virtual time, each way.
func inBubble(t *testing.T, f *fake, test func(t *testing.T, c *client.Client)) {
	t.Helper()
	for way, opts := range ways {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := serve(f)
				defer n.stop()
				c := dialled(t, "passthrough:///fake", map[string]*fakeNode{"fake": n}, opts...)
				test(t, c)
				if err := c.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
		})
	}
}

// fakeNode is a fake that is served.
type fakeNode struct {
	sessions *fakeSessions
	listener *bufconn.Listener
	server   *grpc.Server
	served   chan error
	stopped  sync.Once
}

func serve(f *fake) *fakeNode {
	f.began = time.Now()
	f.acquires, f.renews, f.releases, f.polls, f.reports = nil, nil, nil, nil, nil
	n := newNode()
	admitv1.RegisterAdmissionServiceServer(n.server, f)
	n.sessions = &fakeSessions{f: f}
	admitv1alpha1.RegisterSessionServiceServer(n.server, n.sessions)
	n.start()
	return n
}

func newNode(opts ...grpc.ServerOption) *fakeNode {
	return &fakeNode{
		listener: bufconn.Listen(1 << 16), served: make(chan error, 1),
		server: grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...),
	}
}

func (n *fakeNode) start() { go func() { n.served <- n.server.Serve(n.listener) }() }

// stop ends the node; it may be called again.
func (n *fakeNode) stop() {
	n.stopped.Do(func() {
		n.server.Stop()
		<-n.served
	})
}

// dialled returns a client of nodes at addresses.
func dialled(t *testing.T, target string, nodes map[string]*fakeNode, opts ...client.Option) *client.Client {
	c, err := client.Dial(target, append(opts[:len(opts):len(opts)], client.WithDialOptions(
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			if n := nodes[addr]; n != nil {
				return n.listener.DialContext(ctx)
			}
			return nil, errors.New("nobody is at " + addr)
		})))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func permit(token string, ttl time.Duration) *admitv1.Permit {
	return &admitv1.Permit{
		Token: token, Fence: 7, Pool: "email", Tenant: "acme", Lane: "default",
		State: admitv1.PermitState_PERMIT_STATE_LIVE, ExpiresIn: durationpb.New(ttl),
	}
}

func granted(p *admitv1.Permit) *admitv1.Decision {
	return &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: p}}
}

func shed(s *admitv1.Shed) *admitv1.Decision {
	return &admitv1.Decision{Outcome: &admitv1.Decision_Shed{Shed: s}}
}

func renewed(r *admitv1.RenewRequest, ttl time.Duration) *admitv1.RenewResponse {
	resp := &admitv1.RenewResponse{}
	for range r.GetTokens() {
		resp.Results = append(resp.Results, &admitv1.RenewResult{
			Result: admitv1.LeaseResult_LEASE_RESULT_RENEWED, ExpiresIn: durationpb.New(ttl),
		})
	}
	return resp
}

// refusal is a status as the server makes it.
func refusal(code codes.Code, reason string, retryIn time.Duration) error {
	st, err := status.New(code, "as told").WithDetails(
		&errdetails.ErrorInfo{Reason: reason, Domain: "admit"},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(retryIn)})
	if err != nil {
		panic(err)
	}
	return st.Err()
}
