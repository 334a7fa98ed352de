package sidecar

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var parked = &admitv1.NextDueRequest{Pool: "email", MaxWait: durationpb.New(30 * time.Second)}

// refusal is a status as a node makes it.
func refusal(code codes.Code, reason string, meta map[string]string) error {
	st, err := status.New(code, "as told").WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: "admit", Metadata: meta})
	if err != nil {
		panic(err)
	}
	return st.Err()
}

// first has the first request of a test fail so.
func first(m *machine, err error) {
	m.node.hook(func(_ context.Context, n int, _ any) error {
		if n == 1 {
			return err
		}
		return nil
	})
}

// A call without a request_id is given one, which its worker is told, so that it can be
// sent again: then it has the effect of one.
func TestIDsAreGiven(t *testing.T) {
	settling := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RateOnly: true, Settle: true}
	for name, req := range map[string]*admitv1.AcquireRequest{"a slot": work, "tokens to settle": settling} {
		t.Run(name, func(t *testing.T) {
			onAMachine(t, Options{}, func(t *testing.T, m *machine) {
				first(m, refusal(codes.Unavailable, reasonOutcomeUnknown, nil))
				var header metadata.MD
				w := m.worker()
				w.acquire(t, req, grpc.Header(&header))
				got := seen[*admitv1.AcquireRequest](m.node)
				told := header.Get(idHeader)
				if len(got) != 2 || len(told) != 1 || got[0].GetRequestId() != told[0] || got[1].GetRequestId() != told[0] {
					t.Errorf("the worker was told %q, the node %v", told, got)
				}
			})
		})
	}
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		first(m, refusal(codes.Unavailable, reasonOutcomeUnknown, nil))
		w := m.worker()
		if _, err := w.NextDue(t.Context(), due); err != nil {
			t.Fatal(err)
		}
		if got := seen[*admitv1.NextDueRequest](m.node); len(got) != 2 || got[0].GetRequestId() == "" || got[0].GetRequestId() != got[1].GetRequestId() {
			t.Errorf("the node was asked %v", got)
		}
		both := &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{work, {Pool: "email", Tenant: "acme", RequestId: "mine"}}}
		if _, err := w.BatchAcquire(t.Context(), both); err != nil {
			t.Fatal(err)
		}
		got := seen[*admitv1.BatchAcquireRequest](m.node)[0].GetRequests()
		if got[0].GetRequestId() == "" || got[1].GetRequestId() != "mine" {
			t.Errorf("the node was asked %v", got)
		}
	})
}

// A dry run needs none, nor does what takes tokens alone: that is sent once, and a failure
// is told.
func TestIDsAreNotGiven(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		first(m, refusal(codes.Unavailable, reasonOutcomeUnknown, nil))
		w := m.worker()
		if _, err := w.Acquire(t.Context(), &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RateOnly: true}); status.Code(err) != codes.Aborted {
			t.Errorf("the worker was told %v", err)
		}
		w.acquire(t, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", DryRun: true})
		for _, r := range seen[*admitv1.AcquireRequest](m.node) {
			if r.GetRequestId() != "" {
				t.Errorf("the node was asked %v", r)
			}
		}
		if n := len(seen[*admitv1.AcquireRequest](m.node)); n != 2 {
			t.Errorf("the node was asked %d times", n)
		}
	})
}

// A worker is told what the cluster says, but not where the leader is, and of what may
// have had effect that it may send it again only if that is harmless for a worker.
func TestWhatWorkersAreTold(t *testing.T) {
	mine := &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RequestId: "mine"}
	elsewhere := refusal(codes.Unavailable, reasonNotLeader, map[string]string{"leader_addr": "10.0.0.9:7420"})
	for _, c := range []struct {
		name   string
		req    *admitv1.AcquireRequest
		err    error
		code   codes.Code
		reason string
	}{
		{"at fault", work, refusal(codes.InvalidArgument, "INVALID_FIELD", nil), codes.InvalidArgument, "INVALID_FIELD"},
		{"no quorum", work, refusal(codes.Unavailable, "NO_QUORUM", nil), codes.Unavailable, "NO_QUORUM"},
		{"no leader", work, elsewhere, codes.Unavailable, reasonNotLeader},
		{"unknown, without an id", work, refusal(codes.Unavailable, reasonOutcomeUnknown, nil), codes.Aborted, reasonOutcomeUnknown},
		{"unknown, with an id", mine, refusal(codes.Unavailable, reasonOutcomeUnknown, nil), codes.Unavailable, reasonOutcomeUnknown},
		{"silent, without an id", work, nil, codes.Aborted, reasonOutcomeUnknown},
		{"silent, with an id", mine, nil, codes.Unavailable, reasonOutcomeUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			onAMachine(t, Options{}, func(t *testing.T, m *machine) {
				m.node.hook(func(ctx context.Context, _ int, _ any) error {
					if c.err == nil {
						<-ctx.Done()
						return ctx.Err()
					}
					return c.err
				})
				_, err := m.worker().Acquire(t.Context(), c.req)
				if status.Code(err) != c.code || reasonOf(err) != c.reason {
					t.Errorf("the worker was told %v", err)
				}
				if strings.Contains(fmt.Sprint(status.Convert(err).Details()), "10.0.0.9") {
					t.Errorf("the worker was told where the leader is: %v", err)
				}
			})
		})
	}
}

// A wait goes on for what is left of it where the first try fails, and a poll too.
func TestAWaitGoesOn(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		var failed sync.Map // by the type of the request
		m.node.hook(func(_ context.Context, _ int, req any) error {
			if _, ok := req.(*admitv1.RenewRequest); ok {
				return nil
			}
			if _, again := failed.LoadOrStore(fmt.Sprintf("%T", req), true); again {
				return nil
			}
			<-time.After(10 * time.Second)
			return status.Error(codes.Unavailable, "come again")
		})
		w := m.worker()
		w.acquire(t, &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", MaxWait: durationpb.New(30 * time.Second)})
		if _, err := w.NextDue(t.Context(), parked); err != nil {
			t.Fatal(err)
		}
		acquires, polls := seen[*admitv1.AcquireRequest](m.node), seen[*admitv1.NextDueRequest](m.node)
		for what, left := range map[string]time.Duration{
			"line": acquires[1].GetMaxWait().AsDuration(), "poll": polls[1].GetMaxWait().AsDuration(),
		} {
			if left > 20*time.Second || left < 19*time.Second {
				t.Errorf("the %s went on for %v", what, left)
			}
		}
	})
}

// Calls of many workers that are made while the stream can't take them travel together.
func TestCallsShareTheStream(t *testing.T) {
	onALonelyMachine(t, Options{}, func(t *testing.T, m *machine) {
		var running sync.WaitGroup
		for range 10 {
			w := m.worker()
			for range 30 {
				running.Go(func() { w.acquire(t, work) })
			}
		}
		synctest.Wait()
		m.connect()
		running.Wait()
		if m.node.messages != 1 {
			t.Errorf("300 calls took %d messages", m.node.messages)
		}
	})
}

// A caller's place in a trace is told to the node: on the stream, and of calls that are
// passed on.
func TestTracesPassThrough(t *testing.T) {
	const place = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		w := m.worker()
		ctx := metadata.AppendToOutgoingContext(t.Context(), traceHeader, place)
		if _, err := w.Acquire(ctx, work); err != nil {
			t.Fatal(err)
		}
		if _, err := admitv1.NewDueWorkServiceClient(w).Schedule(ctx, &admitv1.ScheduleRequest{}); err != nil {
			t.Fatal(err)
		}
		w.acquire(t, work)
		if got := m.node.traces; len(got) != 2 || got[0] != place || got[1] != place {
			t.Errorf("the node was told %q", got)
		}
	})
}

// Other services are passed on: reads and what names what it changes again where that
// helps, streams as they come.
func TestOtherServices(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		w := m.worker()
		dueWork := admitv1.NewDueWorkServiceClient(w)
		m.node.hook(func(_ context.Context, n int, _ any) error {
			if n <= 2 {
				return refusal(codes.Unavailable, reasonOutcomeUnknown, nil)
			}
			return nil
		})
		if _, err := dueWork.Redrive(t.Context(), &admitv1.RedriveRequest{Pool: "email"}); status.Code(err) != codes.Aborted {
			t.Errorf("a Redrive of which nothing is known ended with %v", err)
		}
		resp, err := dueWork.Schedule(t.Context(), &admitv1.ScheduleRequest{Pool: "email"})
		if err != nil || resp.GetResults()[0].GetStatus() != admitv1.ScheduleResult_STATUS_SCHEDULED {
			t.Errorf("a Schedule ended with %v, %v", resp, err)
		}
		if n := len(seen[*admitv1.RedriveRequest](m.node)); n != 1 {
			t.Errorf("it was sent %d times", n)
		}
		if got := seen[*admitv1.ScheduleRequest](m.node); len(got) != 2 || got[1].GetPool() != "email" {
			t.Errorf("the node was asked %v", got)
		}
		ctx, cancel := context.WithCancel(t.Context())
		watch, err := admitv1.NewStatusServiceClient(w).WatchShedding(ctx, &admitv1.WatchSheddingRequest{Pool: "email"})
		for range 2 {
			if err == nil {
				_, err = watch.Recv()
			}
		}
		if err != nil {
			t.Errorf("a watch ended with %v", err)
		}
		cancel()
		if _, err := watch.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("a watch that was given up ended with %v", err)
		}
		if _, err := dueWork.GetEntry(t.Context(), &admitv1.GetEntryRequest{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("what the node does not know ended with %v", err)
		}
		if _, err := admitv1.NewPolicyServiceClient(w).GetPolicy(t.Context(), &admitv1.GetPolicyRequest{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("a policy was answered: %v", err)
		}
		if _, err := w.ReportDemand(t.Context(), &admitv1.ReportDemandRequest{Pool: "email", Tenant: "acme"}); err != nil {
			t.Error(err)
		}
	})
}

// Envoy's requests are passed on, once each: sent again they would take twice.
func TestEnvoysRequests(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		first(m, refusal(codes.Unavailable, "NO_QUORUM", nil))
		envoy := ratelimitv3.NewRateLimitServiceClient(m.worker())
		if _, err := envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "email"}); status.Code(err) != codes.Unavailable {
			t.Errorf("without a quorum Envoy was told %v", err)
		}
		resp, err := envoy.ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{Domain: "email"})
		if err != nil || resp.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
			t.Errorf("Envoy was told %v, %v", resp, err)
		}
		if got := seen[*ratelimitv3.RateLimitRequest](m.node); len(got) != 2 || got[0].GetDomain() != "email" {
			t.Errorf("the node was asked %v", got)
		}
	})
}

// More is refused than may be kept, or be under way, and room is there again once it is;
// what gives back is not refused.
func TestLimits(t *testing.T) {
	overloaded := func(t *testing.T, err error) {
		t.Helper()
		if status.Code(err) != codes.ResourceExhausted || reasonOf(err) != reasonOverloaded {
			t.Errorf("the worker was told %v", err)
		}
	}
	onAMachine(t, Options{MaxPermits: 3}, func(t *testing.T, m *machine) {
		w := m.worker()
		a := w.acquire(t, work)
		w.acquire(t, work)
		_, err := w.NextDue(t.Context(), &admitv1.NextDueRequest{Pool: "email", MaxItems: 2})
		overloaded(t, err)
		w.acquire(t, work)
		_, err = w.Acquire(t.Context(), work)
		overloaded(t, err)
		if _, err := w.Release(t.Context(), &admitv1.ReleaseRequest{Token: a}); err != nil {
			t.Fatal(err)
		}
		w.acquire(t, work)
		m.node.grant("")
		if _, err := w.Renew(t.Context(), &admitv1.RenewRequest{Tokens: []string{"p5"}}); err != nil || len(m.held()) != 3 {
			t.Errorf("a Renew ended with %v; the sidecar keeps %v", err, m.held())
		}
	})
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		m.server.gate.most = 1
		reached, answer := make(chan struct{}), make(chan struct{})
		m.node.hook(func(_ context.Context, n int, _ any) error {
			if n == 1 {
				close(reached)
				<-answer
			}
			return nil
		})
		w := m.worker()
		var running sync.WaitGroup
		running.Go(func() { w.acquire(t, work) })
		<-reached
		_, err := w.Acquire(t.Context(), work)
		overloaded(t, err)
		if _, err := w.Release(t.Context(), &admitv1.ReleaseRequest{Token: "p1"}); err != nil {
			t.Error(err)
		}
		close(answer)
		running.Wait()
		w.acquire(t, work)
	})
}

// Health says what is true of the cluster.
func TestHealthFollowsTheCluster(t *testing.T) {
	onAMachine(t, Options{}, func(t *testing.T, m *machine) {
		w := m.worker()
		want := func(name string, want grpc_health_v1.HealthCheckResponse_ServingStatus) {
			t.Helper()
			goes(time.Second)
			resp, err := grpc_health_v1.NewHealthClient(w).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
			if err != nil || resp.GetStatus() != want || m.server.Serving() != (want == grpc_health_v1.HealthCheckResponse_SERVING) {
				t.Errorf("%q is %v, %v", name, resp.GetStatus(), err)
			}
		}
		want("", grpc_health_v1.HealthCheckResponse_SERVING)
		want("admit.v1.AdmissionService", grpc_health_v1.HealthCheckResponse_SERVING)
		m.node.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		want("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		want("admit.v1.DueWorkService", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		m.node.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
		want("admit.v1.StatusService", grpc_health_v1.HealthCheckResponse_SERVING)
		synctest.Wait()
	})
}
