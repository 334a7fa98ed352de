package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leader is a node that answers what is forwarded to it.
type leader struct {
	forwardv1.UnimplementedForwardServiceServer
	*Receiver
	addr   string
	server *grpc.Server
	// stopping is its Receiver's.
	stopping chan struct{}
	streams  int
}

func (l *leader) Forward(stream forwardv1.ForwardService_ForwardServer) error {
	l.streams++
	return l.Receiver.Forward(stream)
}

func lead(t *testing.T, answer func(ctx context.Context, c Call) ([]byte, error)) *leader {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stopping := make(chan struct{})
	l := &leader{
		addr: listener.Addr().String(), server: grpc.NewServer(grpc.WaitForHandlers(true)), stopping: stopping,
		Receiver: &Receiver{
			Admit: func(context.Context) error { return nil }, Answer: answer,
			Overloaded: status.Error(codes.ResourceExhausted, "too many"), Stopping: stopping, Metrics: NewMetrics(),
		},
	}
	forwardv1.RegisterForwardServiceServer(l.server, l)
	served := make(chan error, 1)
	go func() { served <- l.server.Serve(listener) }()
	t.Cleanup(func() {
		l.server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l
}

// led is a leader, and who follows it.
func led(t *testing.T, answer func(ctx context.Context, c Call) ([]byte, error)) (*leader, *Forwarder) {
	l := lead(t, answer)
	return l, forwarder(t, l)
}

// forwarder follows a leader.
func forwarder(t *testing.T, l *leader) *Forwarder {
	f := New(insecure.NewCredentials(), nil, slog.New(slog.DiscardHandler), NewMetrics())
	t.Cleanup(f.Close)
	f.Lead(l.addr)
	return f
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for ctx := soon(t); !ok(); {
		select {
		case <-ctx.Done():
			t.Fatalf("not in time: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// value returns what a counter or gauge shows.
func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

func echo(_ context.Context, c Call) ([]byte, error) {
	return fmt.Appendf(nil, "%s %s for %s", c.Method, c.Request, c.Principal), nil
}

func TestCallsShareAStream(t *testing.T) {
	l, f := led(t, echo)
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			got, err := f.Do(soon(t), l.addr, Call{Method: "/m", Request: fmt.Append(nil, i), Principal: "p"}, nil)
			if want := fmt.Sprintf("/m %d for p", i); err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	all.Wait()
	if l.streams != 1 {
		t.Errorf("took %d streams, want 1", l.streams)
	}
	if n := value(t, f.metrics.calls.WithLabelValues(answered)); n != 300 {
		t.Errorf("counted %v answered calls", n)
	}
	if sent, received := value(t, f.metrics.open), value(t, l.Metrics.serving); sent != 0 || received != 0 {
		t.Errorf("%v sent and %v received calls are open", sent, received)
	}
}

func TestLeadersAreDialedFromWhereTheNodeServes(t *testing.T) {
	l := lead(t, func(ctx context.Context, _ Call) ([]byte, error) {
		from, _ := peer.FromContext(ctx)
		return []byte(from.Addr.(*net.TCPAddr).IP.String()), nil
	})
	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2), Port: 7420}
	f := New(insecure.NewCredentials(), at, slog.New(slog.DiscardHandler), NewMetrics())
	defer f.Close()
	got, err := f.Do(soon(t), l.addr, Call{}, nil)
	if err != nil || string(got) != "127.0.0.2" {
		t.Errorf("the leader is called from %q, %v", got, err)
	}
}

func TestStatusesArriveWhole(t *testing.T) {
	st, err := status.New(codes.NotFound, "no such pool").WithDetails(&errdetails.ErrorInfo{Reason: "POOL_NOT_FOUND"})
	if err != nil {
		t.Fatal(err)
	}
	l, f := led(t, func(context.Context, Call) ([]byte, error) { return nil, st.Err() })
	_, err = f.Do(soon(t), l.addr, Call{}, nil)
	got := status.Convert(err)
	if got.Code() != codes.NotFound || got.Message() != "no such pool" || len(got.Details()) != 1 ||
		got.Details()[0].(*errdetails.ErrorInfo).GetReason() != "POOL_NOT_FOUND" {
		t.Errorf("got %v", got.Proto())
	}
}

func TestTheDeadlineIsCarried(t *testing.T) {
	left := make(chan time.Duration, 2)
	l, f := led(t, func(ctx context.Context, _ Call) ([]byte, error) {
		deadline, ok := ctx.Deadline()
		if !ok {
			deadline = time.Now()
		}
		left <- time.Until(deadline)
		return nil, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := f.Do(ctx, l.addr, Call{}, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-left; got > time.Minute || got < 50*time.Second {
		t.Errorf("%v are left, want about a minute", got)
	}
	if _, err := f.Do(t.Context(), l.addr, Call{}, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-left; got > 0 {
		t.Errorf("%v are left of no deadline", got)
	}
}

// parking answers calls that wait until they are to end, as an idle poll does.
func parking() (answer func(ctx context.Context, c Call) ([]byte, error), began, ended chan string) {
	began, ended = make(chan string, 10), make(chan string, 10)
	return func(ctx context.Context, c Call) ([]byte, error) {
		began <- c.Method
		<-ctx.Done()
		ended <- c.Method
		return nil, status.Error(codes.Canceled, "ended at the leader")
	}, began, ended
}

func TestALostCallerEndsItsCall(t *testing.T) {
	answer, began, ended := parking()
	l, f := led(t, answer)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Do(ctx, l.addr, Call{Method: "/poll"}, nil)
		done <- err
	}()
	<-began
	cancel()
	if err := <-done; !errors.Is(err, ErrLost) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := <-ended; got != "/poll" {
		t.Errorf("ended %q", got)
	}
}

func TestAStopWaitsForTheLeadersWord(t *testing.T) {
	answer, began, _ := parking()
	l, f := led(t, answer)
	stop := make(chan struct{})
	go func() { <-began; close(stop) }()
	if _, err := f.Do(t.Context(), l.addr, Call{}, stop); status.Code(err) != codes.Canceled || errors.Is(err, ErrLost) {
		t.Errorf("got %v, want the leader's answer", err)
	}
}

func TestALostStreamEndsItsCalls(t *testing.T) {
	answer, began, ended := parking()
	l := lead(t, answer)
	f := New(insecure.NewCredentials(), nil, slog.New(slog.DiscardHandler), NewMetrics())
	done := make(chan error, 1)
	go func() {
		_, err := f.Do(t.Context(), l.addr, Call{Method: "/poll"}, nil)
		done <- err
	}()
	<-began
	f.Close()
	<-ended
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want it lost", err)
	}
	if _, err := f.Do(soon(t), l.addr, Call{}, nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("got %v after the end", err)
	}
}

func TestADeadLeadersCallsAreLost(t *testing.T) {
	answer, began, _ := parking()
	l, f := led(t, answer)
	go func() { <-began; l.server.Stop() }()
	if _, err := f.Do(soon(t), l.addr, Call{}, nil); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want it lost", err)
	}
	// And the next is refused, since nobody is there.
	if _, err := f.Do(soon(t), l.addr, Call{}, nil); !errors.Is(err, ErrNotSent) {
		t.Errorf("got %v, want it not sent", err)
	}
	if n := value(t, f.metrics.calls.WithLabelValues(lost)); n != 1 {
		t.Errorf("counted %v lost calls", n)
	}
}

// A node that stops answers what it has begun, and what comes too late is known not
// to have been.
func TestAStoppingLeaderAnswersWhatItBegan(t *testing.T) {
	began, finish := make(chan struct{}), make(chan struct{})
	var begun, answered atomic.Int32
	l, f := led(t, func(_ context.Context, c Call) ([]byte, error) {
		if begun.Add(1); c.Method == "/first" {
			close(began)
			<-finish
		}
		return []byte("done"), nil
	})
	do := func(method string) error {
		got, err := f.Do(soon(t), l.addr, Call{Method: method}, nil)
		if err == nil && string(got) != "done" {
			t.Errorf("got %q", got)
		}
		if err == nil {
			answered.Add(1)
		}
		return err
	}
	var callers sync.WaitGroup
	callers.Go(func() {
		if err := do("/first"); err != nil {
			t.Errorf("the call that was begun: %v", err)
		}
	})
	<-began
	for range 8 {
		callers.Go(func() {
			err := do("/late")
			for ; err == nil; err = do("/late") { // it was in time
			}
			if !errors.Is(err, ErrNotSent) {
				t.Errorf("a call that came too late: %v", err)
			}
		})
	}
	l.stopping <- struct{}{} // the stream has noticed
	close(l.stopping)
	close(finish)
	callers.Wait()
	if begun, answered := begun.Load(), answered.Load(); begun != answered {
		t.Errorf("%d calls were begun, %d answered", begun, answered)
	}
}

func TestAStrangersStreamIsRefused(t *testing.T) {
	l, f := led(t, func(context.Context, Call) ([]byte, error) {
		t.Error("a stranger's call was answered")
		return nil, nil
	})
	l.Admit = func(context.Context) error { return status.Error(codes.PermissionDenied, "no node of this cluster") }
	_, err := f.Do(soon(t), l.addr, Call{}, nil)
	if !errors.Is(err, ErrNotSent) || !strings.Contains(err.Error(), "no node of this cluster") {
		t.Errorf("got %v", err)
	}
	if n := value(t, f.metrics.calls.WithLabelValues(notSent)); n != 1 {
		t.Errorf("counted %v calls that were not sent", n)
	}
}

// One that leads no longer may answer what it was sent, but not for ever.
func TestAFormerLeaderIsCutOff(t *testing.T) {
	answer, began, _ := parking()
	l, next := lead(t, answer), lead(t, echo)
	f := forwarder(t, l)
	done := make(chan error, 1)
	go func() {
		_, err := f.Do(soon(t), l.addr, Call{}, nil)
		done <- err
	}()
	<-began
	f.Lead(next.addr)
	if _, err := f.Do(soon(t), next.addr, Call{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want it lost", err)
	}
	if _, err := f.Do(soon(t), next.addr, Call{}, nil); err != nil {
		t.Errorf("the leader's link was cut too: %v", err)
	}
}

// Who has not heard of the new leader yet calls the former one. That link is cut, and
// not the new leader's.
func TestAStaleViewCutsNothing(t *testing.T) {
	answer, began, _ := parking()
	l, former := lead(t, answer), lead(t, echo)
	f := forwarder(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := f.Do(ctx, l.addr, Call{}, nil)
		done <- err
	}()
	<-began
	if _, err := f.Do(soon(t), former.addr, Call{}, nil); err != nil {
		t.Fatal(err)
	}
	var left []string
	until(t, "one of two links is cut", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		left = slices.Collect(maps.Keys(f.links))
		return len(left) == 1
	})
	if left[0] != l.addr {
		t.Error("the leader's link was cut")
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the leader's call ended with %v", err)
	}
}

// outcomes collects what started calls are told.
type outcomes chan struct {
	response []byte
	err      error
}

func (o outcomes) tell(response []byte, err error) {
	o <- struct {
		response []byte
		err      error
	}{response, err}
}

// A call can be begun and told of later, and means the same.
func TestStartedCallsAreTold(t *testing.T) {
	answer, began, ended := parking()
	deadlines := make(chan time.Time, 2)
	l, f := led(t, func(ctx context.Context, c Call) ([]byte, error) {
		if c.Method == "/poll" {
			return answer(ctx, c)
		}
		deadline, _ := ctx.Deadline()
		deadlines <- deadline
		return []byte("done"), nil
	})
	told := make(outcomes, 1)
	f.Start(l.addr, Call{Method: "/call"}, time.Time{}, told.tell)
	if got := <-told; got.err != nil || string(got.response) != "done" {
		t.Errorf("got %q, %v", got.response, got.err)
	}
	if d := <-deadlines; !d.IsZero() {
		t.Errorf("there is a deadline, %v", d)
	}
	f.Start(l.addr, Call{Method: "/call"}, time.Now().Add(time.Minute), told.tell)
	<-told
	if d := time.Until(<-deadlines); d > time.Minute || d < 50*time.Second {
		t.Errorf("%v are left, want about a minute", d)
	}
	abandon := f.Start(l.addr, Call{Method: "/poll"}, time.Time{}, told.tell)
	<-began
	abandon()
	<-ended
	if got := <-told; status.Code(got.err) != codes.Canceled || errors.Is(got.err, ErrLost) {
		t.Errorf("got %v, want the leader's answer", got.err)
	}
	abandon() // it has ended
	f.Start(l.addr, Call{Request: make([]byte, MaxRequest+1)}, time.Time{}, told.tell)
	if got := <-told; !errors.Is(got.err, ErrTooLarge) {
		t.Errorf("got %v", got.err)
	}
}
