package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// leader is a node that answers what is forwarded to it.
type leader struct {
	forwardv1.UnimplementedForwardServiceServer
	*Receiver
	addr    string
	server  *grpc.Server
	stop    context.CancelFunc
	streams int
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
	stopping, stop := context.WithCancel(t.Context())
	l := &leader{
		addr: listener.Addr().String(), server: grpc.NewServer(grpc.WaitForHandlers(true)), stop: stop,
		Receiver: &Receiver{
			Admit: func(context.Context) error { return nil }, Answer: answer,
			Overloaded: status.Error(codes.ResourceExhausted, "too many"), Stopping: stopping.Done(), Metrics: NewMetrics(),
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

func forwarder(t *testing.T) *Forwarder {
	f := New(insecure.NewCredentials(), slog.New(slog.DiscardHandler), NewMetrics())
	t.Cleanup(f.Close)
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
	l, f := lead(t, echo), forwarder(t)
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

func TestStatusesArriveWhole(t *testing.T) {
	st, err := status.New(codes.NotFound, "no such pool").WithDetails(&errdetails.ErrorInfo{Reason: "POOL_NOT_FOUND"})
	if err != nil {
		t.Fatal(err)
	}
	l, f := lead(t, func(context.Context, Call) ([]byte, error) { return nil, st.Err() }), forwarder(t)
	_, err = f.Do(soon(t), l.addr, Call{}, nil)
	got := status.Convert(err)
	if got.Code() != codes.NotFound || got.Message() != "no such pool" || len(got.Details()) != 1 ||
		got.Details()[0].(*errdetails.ErrorInfo).GetReason() != "POOL_NOT_FOUND" {
		t.Errorf("got %v", got.Proto())
	}
}

func TestTheDeadlineIsCarried(t *testing.T) {
	left := make(chan time.Duration, 2)
	l, f := lead(t, func(ctx context.Context, _ Call) ([]byte, error) {
		deadline, ok := ctx.Deadline()
		if !ok {
			deadline = time.Now()
		}
		left <- time.Until(deadline)
		return nil, nil
	}), forwarder(t)
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
	l, f := lead(t, answer), forwarder(t)
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
	l, f := lead(t, answer), forwarder(t)
	stop := make(chan struct{})
	go func() { <-began; close(stop) }()
	if _, err := f.Do(t.Context(), l.addr, Call{}, stop); status.Code(err) != codes.Canceled || errors.Is(err, ErrLost) {
		t.Errorf("got %v, want the leader's answer", err)
	}
}

func TestALostStreamEndsItsCalls(t *testing.T) {
	answer, began, ended := parking()
	l := lead(t, answer)
	f := New(insecure.NewCredentials(), slog.New(slog.DiscardHandler), NewMetrics())
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
	l, f := lead(t, answer), forwarder(t)
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
	finish := make(chan struct{})
	began := make(chan struct{}, 1)
	l, f := lead(t, func(context.Context, Call) ([]byte, error) {
		began <- struct{}{}
		<-finish
		return []byte("done"), nil
	}), forwarder(t)
	first := make(chan error, 1)
	go func() {
		got, err := f.Do(soon(t), l.addr, Call{}, nil)
		if err == nil && string(got) != "done" {
			err = fmt.Errorf("got %q", got)
		}
		first <- err
	}()
	<-began
	l.stop()
	second := make(chan error, 1)
	until(t, "a call that is not begun any more", func() bool {
		go func() {
			_, err := f.Do(soon(t), l.addr, Call{}, nil)
			second <- err
		}()
		select {
		case <-began: // it was in time
			return false
		case <-time.After(20 * time.Millisecond):
			return true
		}
	})
	close(finish)
	if err := <-first; err != nil {
		t.Error(err)
	}
	until(t, "the late call's error", func() bool { return errors.Is(<-second, ErrNotSent) })
}

func TestAStrangersStreamIsRefused(t *testing.T) {
	l, f := lead(t, func(context.Context, Call) ([]byte, error) {
		t.Error("a stranger's call was answered")
		return nil, nil
	}), forwarder(t)
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
	l, next, f := lead(t, answer), lead(t, echo), forwarder(t)
	f.Lead(l.addr)
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

func TestALinkTakesSoMuch(t *testing.T) {
	l := &link{wake: make(chan struct{}, 1), sent: map[uint64]*pending{}, metrics: NewMetrics()}
	enter := func(bytes int) error {
		return l.enter(&pending{frame: &forwardv1.Call{Request: make([]byte, bytes)}, done: make(chan struct{})})
	}
	if err := enter(MaxRequest + 1); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	for range maxQueuedBytes / MaxRequest {
		if err := enter(MaxRequest); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter(MaxRequest); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v beyond the bytes", err)
	}
	for range maxCalls - maxQueuedBytes/MaxRequest {
		if err := enter(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := enter(0); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v beyond the calls", err)
	}
	// What is sent makes room for bytes, not for calls.
	for l.take(time.Now()) != nil {
	}
	if l.bytes != 0 {
		t.Errorf("%d bytes of nothing are queued", l.bytes)
	}
	if err := enter(0); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v while all are on their way", err)
	}
}

func TestAMessageHoldsSoMuch(t *testing.T) {
	l := &link{wake: make(chan struct{}, 1), sent: map[uint64]*pending{}, metrics: NewMetrics()}
	for _, size := range []int{batchBytes + 1, 10, batchBytes - 10, 1} {
		if err := l.enter(&pending{frame: &forwardv1.Call{Request: make([]byte, size)}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	for req := l.take(time.Now()); req != nil; req = l.take(time.Now()) {
		got = append(got, len(req.GetCalls()))
	}
	if fmt.Sprint(got) != "[1 2 1]" {
		t.Errorf("messages have %v calls", got)
	}
}
