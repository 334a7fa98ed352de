package raftstore

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/admitd/admit/admission"
	"github.com/admitd/admit/internal/clock"
)

func TestAReadPointIsAfterWhatWasAnswered(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 10 {
				answers, err := n.Do(t.Context(), Request{Op: admission.Pause{Pool: "mail", Kind: admission.TargetLane, Name: "low"}})
				if err != nil {
					t.Error(err)
					return
				}
				p, err := n.ReadPoint(t.Context())
				if err != nil || p.Index < answers[0].Index {
					t.Errorf("got %+v, %v after index %d", p, err, answers[0].Index)
				}
				var at admission.Instant
				n.ViewAt(p, func(st *admission.State, now admission.Instant, _ admission.Wall) { at = now })
				if at < p.T || p.T == 0 || p.W == 0 {
					t.Errorf("looks at %+v at %d", p, at)
				}
			}
		})
	}
	all.Wait()
	if n.Age() != 0 {
		t.Errorf("the leader's age is %v", n.Age())
	}
}

func TestReachWaitsForTheLog(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	p, err := n.ReadPoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Reach(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	reached := make(chan error, 1)
	p.Index++
	go func() { reached <- n.Reach(t.Context(), p) }()
	select {
	case err := <-reached:
		t.Fatalf("reached what is not there: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	n.applyPolicy(testPolicy())
	if err := <-reached; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p.Index += 100
	go func() { reached <- n.Reach(ctx, p) }()
	cancel()
	if err := <-reached; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	go func() { reached <- n.Reach(t.Context(), p) }()
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-reached; !errors.Is(err, ErrShuttingDown) {
		t.Errorf("got %v", err)
	}
	if _, err := n.ReadPoint(t.Context()); !errors.Is(err, ErrShuttingDown) {
		t.Errorf("got %v", err)
	}
}

// A point that another node gave has that one's time.
func TestWithoutTheLeadThePointsTimeCounts(t *testing.T) {
	n := startNode(t, Config{Dir: t.TempDir()}, clock.System())
	n.applyPolicy(testPolicy())
	n.setTerm(nil)
	var last, at admission.Instant
	var w admission.Wall
	look := func(p ReadPoint) {
		n.ViewAt(p, func(st *admission.State, now admission.Instant, wall admission.Wall) {
			last, _ = st.Now()
			at, w = now, wall
		})
	}
	look(ReadPoint{})
	if at != last || w == 0 {
		t.Errorf("shows %d, the last entry was at %d", at, last)
	}
	look(ReadPoint{T: last + 7, W: 9})
	if at != last+7 || w != 9 {
		t.Errorf("shows %d and %d", at, w)
	}
	if p, err := n.Picture(ReadPoint{T: last + 7, W: 9}, "mail"); err != nil || p.At != last+7 {
		t.Errorf("pictures %v, %v", p, err)
	}
	if _, err := n.ReadPoint(t.Context()); !errors.Is(err, ErrNoQuorum) {
		t.Errorf("got %v", err)
	}
}
