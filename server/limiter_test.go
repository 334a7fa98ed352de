package server

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/tap"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// door is a limiter as connections meet it.
type door struct {
	*limiter
	t *testing.T
}

func newDoor(t *testing.T) *door {
	l := newLimiter()
	for _, desc := range []*grpc.ServiceDesc{
		&admitv1.AdmissionService_ServiceDesc, &admitv1.PolicyService_ServiceDesc, &admitv1alpha1.ShareService_ServiceDesc,
	} {
		l.around(desc)
	}
	return &door{l, t}
}

// call has a call come over a connection.
func (d *door) call(from *origin, method string) (context.Context, error) {
	ctx := peer.NewContext(d.t.Context(), &peer.Peer{Addr: from})
	return d.enter(ctx, &tap.Info{FullMethodName: method})
}

// fill has so many Acquires come, of which none is refused.
func (d *door) fill(from *origin, calls int) (under []context.Context) {
	d.t.Helper()
	for range calls {
		ctx, err := d.call(from, admitv1.AdmissionService_Acquire_FullMethodName)
		if err != nil {
			d.t.Fatal(err)
		}
		under = append(under, ctx)
	}
	return under
}

func aConnection() *origin { return &origin{Addr: &net.TCPAddr{}} }

func TestTooManyCallsAreRefusedThatTakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes
		d, flood, quiet := newDoor(t), aConnection(), aConnection()
		under := d.fill(flood, alwaysOpen)
		for method, refused := range map[string]bool{
			admitv1.AdmissionService_Acquire_FullMethodName:      true,
			admitv1.AdmissionService_NextDue_FullMethodName:      true,
			admitv1alpha1.ShareService_LeaseShare_FullMethodName: true,
			admitv1.AdmissionService_Renew_FullMethodName:        false,
			admitv1.AdmissionService_Release_FullMethodName:      false,
			admitv1.AdmissionService_BatchRelease_FullMethodName: false,
			admitv1.PolicyService_ApplyPolicy_FullMethodName:     false,
		} {
			ctx, err := d.call(flood, method)
			if (err != nil) != refused {
				t.Errorf("%s: %v", method, err)
			}
			if err == nil {
				leave(ctx, true)
				continue
			}
			if got := tell(t, err); got.code != codes.ResourceExhausted || got.reason != "OVERLOADED" || got.retry != crowdedTime {
				t.Errorf("%s is told %+v", method, got)
			}
		}
		d.fill(quiet, 1) // it has less than its part
		leave(under[0], true)
		leave(under[0], true) // counts once
		leave(under[1], true)
		d.fill(flood, 1)
		if _, err := d.call(flood, admitv1.AdmissionService_Acquire_FullMethodName); err == nil {
			t.Error("a call more than may be under way was let in")
		}
	})
}

func TestMoreCallsAreUnderWayWhereMoreAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, from := newDoor(t), aConnection()
		for range 5 * alwaysOpen {
			for _, ctx := range d.fill(from, 1) {
				leave(ctx, true)
			}
		}
		time.Sleep(2 * crowdedTime) // in the bubble: what is answered in half of it may be under way
		if got := d.most(time.Now()); got != 5*alwaysOpen/2 {
			t.Errorf("%d may be under way, want %d", got, 5*alwaysOpen/2)
		}
		time.Sleep(crowdedTime)
		if got := d.most(time.Now()); got != alwaysOpen {
			t.Errorf("%d may be under way after a quiet time, want %d", got, alwaysOpen)
		}
	})
}

// Batches may take so long that a connection's worth of calls is far too much. What
// waits for a leader is not late: nothing was decided.
func TestFewerCallsAreUnderWayWhereTheyAreLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, from := newDoor(t), aConnection()
		pass := func(takes time.Duration, calls int, decided bool) int64 {
			under := d.fill(from, calls)
			time.Sleep(takes)
			for _, ctx := range under {
				leave(ctx, decided)
			}
			time.Sleep(crowdedTime - min(takes, crowdedTime))
			return d.most(time.Now())
		}
		for _, step := range []struct {
			what    string
			takes   time.Duration
			calls   int
			decided bool
			want    int64
		}{
			{"in time", crowdedTime, 800, true, alwaysOpen},
			{"in vain", 10 * crowdedTime, 800, false, alwaysOpen},
			{"late", 5 * crowdedTime, 800, true, 160},
			{"few, and late", 2 * crowdedTime, 100, true, leastOpen},
			{"in time again, if not by much", crowdedTime / 2, 100, true, leastOpen},
			{"not late any more", crowdedTime / 5, 100, true, alwaysOpen},
			{"late once more", 2 * crowdedTime, 100, true, leastOpen},
			{"after a quiet time", 0, 0, true, alwaysOpen},
		} {
			if got := pass(step.takes, step.calls, step.decided); got != step.want {
				t.Errorf("%s: %d may be under way, want %d", step.what, got, step.want)
			}
		}
	})
}

// A poll that is parked is not under way, and no call is that has ended, well or not.
func TestCallsLeaveWhenTheyWaitAndWhenTheyEnd(t *testing.T) {
	store := newFakeStore()
	store.park = make(chan struct{})
	h := start(t, store)
	ctx, cancel := context.WithCancel(soon(t))
	polled := make(chan error, 1)
	go func() {
		_, err := h.NextDue(ctx, &admitv1.NextDueRequest{Pool: "p"})
		polled <- err
	}()
	<-store.park
	if got := gauge(t, h, "admit_calls_open"); got != 0 {
		t.Errorf("%v calls are under way while a poll is parked", got)
	}
	if _, err := h.Acquire(soon(t), &admitv1.AcquireRequest{}); err == nil {
		t.Error("an empty Acquire was answered")
	}
	if got := gauge(t, h, "admit_calls_open"); got != 0 {
		t.Errorf("%v calls are under way after one that failed", got)
	}
	cancel()
	if err := <-polled; err == nil {
		t.Error("a poll that was given up was answered")
	}
}

// A call that gRPC ends before it has a handler leaves with that, one of an unknown
// compression for example; one that has leaves with its handler.
func TestCallsLeaveThatGetNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(t)
		for _, handled := range []bool{false, true} {
			coming, end := context.WithCancel(peer.NewContext(t.Context(), &peer.Peer{Addr: aConnection()}))
			ctx, err := d.enter(coming, &tap.Info{FullMethodName: admitv1.AdmissionService_Acquire_FullMethodName})
			if err != nil {
				t.Fatal(err)
			}
			if handled {
				begin(ctx)
			}
			end()
			synctest.Wait()
			if got := d.open.Load() == 1; got != handled {
				t.Errorf("still under way after gRPC ended it: %v, with a handler: %v", got, handled)
			}
		}
	})
}
