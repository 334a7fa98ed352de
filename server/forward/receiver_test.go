package forward

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
)

// family is a context that counts what was derived from it and has not ended.
type family struct {
	context.Context
	children atomic.Int32
}

// Value hides which kind of context it is, so that AfterFunc is asked.
func (*family) Value(any) any { return nil }

func (f *family) AfterFunc(do func()) (stop func() bool) {
	f.children.Add(1)
	forget := context.AfterFunc(f.Context, do)
	return func() bool {
		f.children.Add(-1)
		return forget()
	}
}

func TestACallThatIsAnsweredIsForgotten(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &family{Context: ctx}
	in := &incoming{
		r: &Receiver{Answer: echo, Metrics: NewMetrics()}, ctx: f,
		wake: make(chan struct{}, 1), calls: make(map[uint64]context.CancelFunc),
	}
	in.begin(&forwardv1.Call{Id: 1})
	in.begin(&forwardv1.Call{Id: 2, Timeout: durationpb.New(time.Hour)})
	in.running.Wait()
	if n := f.children.Load(); n != 0 || len(in.calls) != 0 || len(in.answers) != 2 {
		t.Errorf("%d contexts and %d calls are left, %d answered", n, len(in.calls), len(in.answers))
	}
}
