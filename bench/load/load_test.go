package load

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/admitd/admit/bench/system"
)

// steady answers after the times that it is given, the last again and again.
type steady struct {
	takes []time.Duration
	fails bool
	calls int
}

func (o *steady) Do(context.Context, int) (int, error) {
	time.Sleep(o.takes[min(o.calls, len(o.takes)-1)])
	o.calls++
	if o.fails && o.calls%2 == 0 {
		return 0, errors.New("no")
	}
	return 3, nil
}

func (o *steady) Close() error { return nil }

func TestClosedAsksAgainWhenAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Closed{Callers: 1, For: time.Second}.Run(t.Context(), &steady{takes: []time.Duration{100 * time.Millisecond}})
		if o.Calls != 10 || o.Requests != 30 || o.Failed != 0 || o.Rate() != 30 {
			t.Errorf("%d calls, %d requests, %d failed, rate %v; want 10, 30, 0, 30", o.Calls, o.Requests, o.Failed, o.Rate())
		}
		if o.Quantile(0.5) != 100*time.Millisecond || o.Quantile(1) != 100*time.Millisecond {
			t.Errorf("p50 %v, the last %v; want 100 ms", o.Quantile(0.5), o.Quantile(1))
		}
	})
}

func TestFailuresAreCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &steady{takes: []time.Duration{100 * time.Millisecond}, fails: true}
		o := Closed{Callers: 1, For: time.Second}.Run(t.Context(), op)
		if o.Calls != 5 || o.Failed != 5 || len(o.Took) != 5 || o.Failure == nil {
			t.Errorf("%d calls, %d failed with %v, %d latencies; want 5, 5, an error, 5", o.Calls, o.Failed, o.Failure, len(o.Took))
		}
	})
}

// TestOpenChargesAStallToAllWhoCameMeanwhile has ten calls come in a second, of which
// the first takes half of it.
func TestOpenChargesAStallToAllWhoCameMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := &steady{takes: []time.Duration{500 * time.Millisecond, 0}}
		o := Open{Rate: 10, Callers: 1, For: time.Second}.Run(t.Context(), op)
		want := []time.Duration{0, 0, 0, 0, 0, 100, 200, 300, 400, 500}
		if len(o.Took) != len(want) {
			t.Fatalf("%d calls were answered, want %d", len(o.Took), len(want))
		}
		for i, w := range want {
			if got := o.Took[i].Round(time.Millisecond); got != w*time.Millisecond {
				t.Errorf("latency %d is %v, want %v", i, got, w*time.Millisecond)
			}
		}
	})
}

// few answers so many calls, and has nothing more then.
type few struct{ left int }

func (o *few) Do(context.Context, int) (int, error) {
	if o.left == 0 {
		return 0, system.ErrDrained
	}
	o.left--
	return 1, nil
}

func (o *few) Close() error { return nil }

func TestLoadsEndWhereNothingIsLeft(t *testing.T) {
	for name, l := range map[string]Load{
		"closed": Closed{Callers: 1, For: time.Hour},
		"open":   Open{Rate: 1e6, Callers: 1, For: time.Hour},
		"count":  Count{Calls: 1000},
	} {
		if o := l.Run(t.Context(), &few{left: 3}); o.Calls != 3 || o.Failed != 0 {
			t.Errorf("%s: %d calls and %d failed, want 3 and 0", name, o.Calls, o.Failed)
		}
	}
}

func TestCountMakesSoManyCalls(t *testing.T) {
	if o := (Count{Calls: 5}).Run(t.Context(), &few{left: 9}); o.Calls != 5 {
		t.Errorf("%d calls, want 5", o.Calls)
	}
}

func TestNobodyAnswered(t *testing.T) {
	if got := (Outcome{}).Quantile(0.99); got != 0 {
		t.Errorf("p99 of nothing is %v, want 0", got)
	}
}
