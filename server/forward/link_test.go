package forward

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
)

// The leader may itself take a second to learn what became of a call that is to end.
func TestAStopWaitsForASlowWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := bareLink()
		stop := make(chan struct{})
		go func() {
			<-l.wake
			l.take(time.Now())
			close(stop)
			time.AfterFunc(1500*time.Millisecond, func() { l.settle(nil) })
		}()
		if _, err := l.do(t.Context(), Call{}, stop); err != nil {
			t.Errorf("got %v, want the leader's answer", err)
		}
	})
}

// A call that is to end and of which the leader says nothing is lost in the end.
func TestPartingTakesSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := bareLink(), time.Now()
		p, done := newPending(Call{}), make(chan struct{})
		p.done = func() { close(done) }
		if err := l.enter(p); err != nil {
			t.Fatal(err)
		}
		l.take(began)
		l.part(p)
		<-done
		if took := time.Since(began); !errors.Is(p.err, ErrLost) || took != partingTime {
			t.Errorf("got %v after %v, want it to be lost after %v", p.err, took, partingTime)
		}
	})
}

// bareLink is a link whose messages a test takes.
func bareLink() *link {
	return &link{wake: make(chan struct{}, 1), sent: map[uint64]*pending{}, metrics: NewMetrics()}
}

func TestALinkTakesSoMuch(t *testing.T) {
	l := bareLink()
	enter := func(bytes int) error {
		return l.enter(&pending{frame: &forwardv1.Call{Request: make([]byte, bytes)}, done: func() {}})
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
	l := bareLink()
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
	// What is to end leaves a large request its room.
	for id := range uint64(2*batchCalls + 1) {
		l.abandoned = append(l.abandoned, 1<<60+id)
	}
	if err := l.enter(&pending{frame: &forwardv1.Call{Request: make([]byte, MaxRequest)}}); err != nil {
		t.Fatal(err)
	}
	ended, called := 0, 0
	for req := l.take(time.Now()); req != nil; req = l.take(time.Now()) {
		if size := proto.Size(req); size > 4<<20 || len(req.GetAbandoned()) > batchCalls {
			t.Errorf("a message of %d bytes ends %d calls", size, len(req.GetAbandoned()))
		}
		ended, called = ended+len(req.GetAbandoned()), called+len(req.GetCalls())
	}
	if ended != 2*batchCalls+1 || called != 1 {
		t.Errorf("%d were ended, %d called", ended, called)
	}
}
