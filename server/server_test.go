package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

// answering returns a store whose every answer has this result.
func answering(r admission.Result) *fakeStore {
	f := newFakeStore()
	f.answer = func(raftstore.Request) raftstore.Answer {
		return raftstore.Answer{Result: r, NextDueIn: admission.Absent}
	}
	return f
}

// rawCodec sends bytes as they are, so that a test may send what is no message.
type rawCodec struct{ encoding.Codec }

func (rawCodec) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { *v.(*[]byte) = data; return nil }
func (rawCodec) Name() string                       { return "proto" }

func TestBrokenMessagesAreBadRequests(t *testing.T) {
	store := newFakeStore()
	h := start(t, store)
	for name, in := range map[string][]byte{
		"text that is not UTF-8": {0x0a, 1, 0xff},
		"cut short":              {0x0a, 200, 1, 'x'},
	} {
		var out []byte
		err := h.conn.Invoke(soon(t), admitv1.AdmissionService_Acquire_FullMethodName, &in, &out, grpc.ForceCodec(rawCodec{}))
		if got := tell(t, err); got.code != codes.InvalidArgument || got.reason != "INVALID_FIELD" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if len(store.seen) > 0 {
		t.Errorf("the store was asked %d times", len(store.seen))
	}
}

func TestFiveMegabytesAreRefusedUnread(t *testing.T) {
	h := start(t, newFakeStore())
	_, err := h.Acquire(soon(t), &admitv1.AcquireRequest{Pool: strings.Repeat("x", 5_000_000)})
	if got := tell(t, err); got.code != codes.ResourceExhausted || got.reason != "" {
		t.Errorf("got %+v", got)
	}
	// The connection and the process live on.
	_, err = h.Acquire(soon(t), &admitv1.AcquireRequest{})
	if got := tell(t, err); got.code != codes.InvalidArgument || got.fields != "pool tenant" {
		t.Errorf("got %+v", got)
	}
}

func TestAPanicFailsItsCallAlone(t *testing.T) {
	store := newFakeStore()
	store.answer = func(raftstore.Request) raftstore.Answer { panic("boom") }
	h := start(t, store)
	_, err := h.Acquire(soon(t), acquire(nil))
	if got := tell(t, err); got.code != codes.Internal || got.reason != "INTERNAL" || strings.Contains(got.text, "boom") {
		t.Errorf("got %+v", got)
	}
	lines := h.log.lines()
	if len(lines) != 1 || !strings.Contains(lines[0], "panic: boom") || !strings.Contains(lines[0], "server_test.go") {
		t.Errorf("the log has no stack: %q", lines)
	}
}

func TestAResultOfTheWrongKindIsOurFault(t *testing.T) {
	h := start(t, answering(&admission.PauseResult{}))
	_, err := h.Acquire(soon(t), acquire(nil))
	if got := tell(t, err); got.reason != "INTERNAL" {
		t.Errorf("got %+v", got)
	}
}

func TestFailedCallsAreLoggedOnceWithTheirCause(t *testing.T) {
	store := newFakeStore()
	store.fail = errors.New("disk is gone")
	h := start(t, store)
	_, err := h.Acquire(soon(t), acquire(nil))
	if got := tell(t, err); got.reason != "INTERNAL" || strings.Contains(got.text, "disk") {
		t.Errorf("got %+v", got)
	}
	lines := h.log.lines()
	if len(lines) != 1 {
		t.Fatalf("got %d lines: %q", len(lines), lines)
	}
	for _, want := range []string{"level=ERROR", "grpc_method=Acquire", "grpc_code=Internal", "disk is gone"} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("%q is missing in %q", want, lines[0])
		}
	}
}

func TestAnswersAreNotLogged(t *testing.T) {
	h := start(t, answering(&admission.ReleaseResult{Result: admission.LeaseReleased}))
	if _, err := h.Release(soon(t), &admitv1.ReleaseRequest{Token: goodToken}); err != nil {
		t.Fatal(err)
	}
	if lines := h.log.lines(); lines[0] != "" {
		t.Errorf("got %q", lines)
	}
}

// A change of leader refuses many calls, which is no news call by call.
func TestRefusalsForWantOfALeaderAreNotLogged(t *testing.T) {
	store := newFakeStore()
	store.fail = raftstore.ErrNoQuorum
	h := start(t, store)
	if _, err := h.Acquire(soon(t), acquire(nil)); err == nil {
		t.Fatal("it was decided")
	}
	if lines := h.log.lines(); lines[0] != "" {
		t.Errorf("got %q", lines)
	}
}

func TestUnknownOutcomesDependOnTheRequestID(t *testing.T) {
	store := newFakeStore()
	store.fail = raftstore.ErrOutcomeUnknown
	h := start(t, store)
	_, err := h.Acquire(soon(t), acquire(nil))
	if got := tell(t, err); got.code != codes.Aborted || got.reason != "OUTCOME_UNKNOWN" || got.retry != 0 {
		t.Errorf("without: got %+v", got)
	}
	_, err = h.Acquire(soon(t), acquire(func(r *admitv1.AcquireRequest) { r.RequestId = "r" }))
	if got := tell(t, err); got.code != codes.Unavailable || got.reason != "OUTCOME_UNKNOWN" || got.retry == 0 {
		t.Errorf("with: got %+v", got)
	}
}

// A request that is refused never reaches the store.
func TestBadRequestsChangeNothing(t *testing.T) {
	store := newFakeStore()
	h := start(t, store)
	calls := map[string]func(context.Context) error{
		"Acquire": func(ctx context.Context) error { _, err := h.Acquire(ctx, &admitv1.AcquireRequest{}); return err },
		"BatchAcquire": func(ctx context.Context) error {
			_, err := h.BatchAcquire(ctx, &admitv1.BatchAcquireRequest{})
			return err
		},
		"ReportDemand": func(ctx context.Context) error {
			_, err := h.ReportDemand(ctx, &admitv1.ReportDemandRequest{})
			return err
		},
		"Renew":   func(ctx context.Context) error { _, err := h.Renew(ctx, &admitv1.RenewRequest{}); return err },
		"Release": func(ctx context.Context) error { _, err := h.Release(ctx, &admitv1.ReleaseRequest{}); return err },
		"BatchRelease": func(ctx context.Context) error {
			_, err := h.BatchRelease(ctx, &admitv1.BatchReleaseRequest{})
			return err
		},
		"NextDue":  func(ctx context.Context) error { _, err := h.NextDue(ctx, &admitv1.NextDueRequest{}); return err },
		"Schedule": func(ctx context.Context) error { _, err := h.due.Schedule(ctx, &admitv1.ScheduleRequest{}); return err },
		"Unschedule": func(ctx context.Context) error {
			_, err := h.due.Unschedule(ctx, &admitv1.UnscheduleRequest{})
			return err
		},
		"ListEntries": func(ctx context.Context) error {
			_, err := h.due.ListEntries(ctx, &admitv1.ListEntriesRequest{})
			return err
		},
		"ListDead": func(ctx context.Context) error { _, err := h.due.ListDead(ctx, &admitv1.ListDeadRequest{}); return err },
		"GetEntry": func(ctx context.Context) error { _, err := h.due.GetEntry(ctx, &admitv1.GetEntryRequest{}); return err },
		"Redrive":  func(ctx context.Context) error { _, err := h.due.Redrive(ctx, &admitv1.RedriveRequest{}); return err },
		"PurgeDead": func(ctx context.Context) error {
			_, err := h.due.PurgeDead(ctx, &admitv1.PurgeDeadRequest{})
			return err
		},
		"ApplyPolicy": func(ctx context.Context) error {
			_, err := h.policy.ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{})
			return err
		},
		"Pause":  func(ctx context.Context) error { _, err := h.policy.Pause(ctx, &admitv1.PauseRequest{}); return err },
		"Resume": func(ctx context.Context) error { _, err := h.policy.Resume(ctx, &admitv1.ResumeRequest{}); return err },
		"QueueHealth": func(ctx context.Context) error {
			_, err := h.status.QueueHealth(ctx, &admitv1.QueueHealthRequest{Pool: " "})
			return err
		},
	}
	for name, call := range calls {
		if got := tell(t, call(soon(t))); got.code != codes.InvalidArgument || got.reason != "INVALID_FIELD" || got.fields == "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	if len(store.seen) > 0 {
		t.Errorf("the store was asked: %+v", store.seen)
	}
}

func TestPollsCarryTheirWait(t *testing.T) {
	store := answering(&admission.NextDueResult{})
	h := start(t, store)
	in := &admitv1.NextDueRequest{Pool: "p", MaxWait: durationpb.New(3 * time.Second), HeldRows: 5, Lanes: []string{"a"}}
	if _, err := h.NextDue(soon(t), in); err != nil {
		t.Fatal(err)
	}
	op := store.seen[0].Op.(*admission.NextDue)
	if store.waits[0] != 3*time.Second || store.seen[0].HeldRows != 5 || !slices.Equal(op.Lanes, []string{"a"}) {
		t.Errorf("got %v, %+v, %+v", store.waits, store.seen[0], op)
	}
}

// healthOf asks for the health of a service.
func healthOf(t *testing.T, h *harness, service string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	t.Helper()
	resp, err := grpc_health_v1.NewHealthClient(h.conn).Check(soon(t), &grpc_health_v1.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetStatus()
}

func TestHealthFollowsTheStoreUntilTheEnd(t *testing.T) {
	const serving, not = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING
	store := newFakeStore()
	store.ready = false
	h := start(t, store)
	services := []string{"", "admit.v1.AdmissionService", "admit.v1.DueWorkService", "admit.v1.PolicyService", "admit.v1.StatusService"}
	for _, s := range services {
		if got := healthOf(t, h, s); got != not {
			t.Errorf("before the store is ready %q is %s", s, got)
		}
	}
	watch, err := grpc_health_v1.NewHealthClient(h.conn).Watch(soon(t), &grpc_health_v1.HealthCheckRequest{Service: services[4]})
	if err != nil {
		t.Fatal(err)
	}
	next := func(want grpc_health_v1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got, err := watch.Recv(); err != nil || got.GetStatus() != want {
			t.Fatalf("got %s, %v, want %s", got.GetStatus(), err, want)
		}
	}
	next(not)
	store.setReady(true)
	next(serving)
	store.setReady(false)
	next(not)
	store.setReady(true)
	next(serving)
	for _, s := range services {
		if got := healthOf(t, h, s); got != serving {
			t.Errorf("once ready %q is %s", s, got)
		}
	}
	h.server.SetNotServing()
	next(not)
	for _, s := range services {
		if got := healthOf(t, h, s); got != not {
			t.Errorf("while draining %q is %s", s, got)
		}
	}
}

func TestStopEndsPollsAtOnce(t *testing.T) {
	store := newFakeStore()
	store.park = make(chan struct{})
	h := start(t, store)
	polled := make(chan error, 1)
	go func() {
		_, err := h.NextDue(soon(t), &admitv1.NextDueRequest{Pool: "p", MaxWait: durationpb.New(time.Minute)})
		polled <- err
	}()
	<-store.park
	// The context is far from its end: only the drain can end the poll.
	h.server.Stop(soon(t))
	if got := tell(t, <-polled); got.code != codes.Unavailable || got.reason != "SHUTTING_DOWN" || got.retry == 0 {
		t.Errorf("got %+v", got)
	}
}

func TestStopEndsWaitsAtOnce(t *testing.T) {
	wait := durationpb.New(time.Minute)
	for name, call := range map[string]func(*harness) error{
		"Acquire": func(h *harness) error {
			_, err := h.Acquire(soon(t), acquire(func(r *admitv1.AcquireRequest) { r.MaxWait = wait }))
			return err
		},
		"BatchAcquire": func(h *harness) error {
			_, err := h.BatchAcquire(soon(t), &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{
				acquire(nil), acquire(func(r *admitv1.AcquireRequest) { r.MaxWait = wait }),
			}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore()
			store.park = make(chan struct{})
			h := start(t, store)
			ended := make(chan error, 1)
			go func() { ended <- call(h) }()
			<-store.park
			h.server.Stop(soon(t))
			if got := tell(t, <-ended); got.code != codes.Unavailable || got.reason != "SHUTTING_DOWN" || got.retry == 0 {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestStopEndsWatchesAtOnce(t *testing.T) {
	h := start(t, newFakeStore())
	watch, err := grpc_health_v1.NewHealthClient(h.conn).Watch(soon(t), &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx := soon(t)
	h.server.Stop(ctx)
	if ctx.Err() != nil {
		t.Error("the watch was cut off")
	}
	for err == nil { // the news that it does not serve may come first
		_, err = watch.Recv()
	}
	if got := tell(t, err); got.code != codes.Unavailable || got.reason != "SHUTTING_DOWN" {
		t.Errorf("got %+v", got)
	}
}

func TestReflectionListsTheServices(t *testing.T) {
	h := start(t, newFakeStore())
	stream, err := reflectionpb.NewServerReflectionClient(h.conn).ServerReflectionInfo(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	ask := &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(ask); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range resp.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"admit.v1.AdmissionService", "admit.v1.StatusService", "grpc.health.v1.Health"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesARegistryInUse(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(newMetrics().collectors()...)
	if _, err := New(newFakeStore(), Options{}, discard(), reg); err == nil {
		t.Error("two servers share a registry")
	}
}
