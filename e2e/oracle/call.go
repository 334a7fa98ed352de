package oracle

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// Call is one try of a call that was answered.
type Call struct {
	Method string
	// First is before the first try of the same call, Sent before this one.
	First, Sent, Got  judge.Moment
	Request, Response proto.Message
}

// String names the call.
func (c Call) String() string { return fmt.Sprintf("%s{%v}", c.Method, c.Request) }

// decidedAt is where a call, or a part of it, was decided.
type decidedAt struct {
	place
	// logged says that there is an entry; otherwise the state at the index decided.
	logged bool
	// waitEnd says that the place is among the waits that the entry ended.
	waitEnd bool
}

// places are where the call says it was decided.
func (c Call) places() []decidedAt {
	var told []*admitv1.LogPosition
	switch r := c.Response.(type) {
	case interface{ GetDecided() *admitv1.LogPosition }:
		told = append(told, r.GetDecided())
	case interface {
		GetDecided() []*admitv1.LogPosition
	}:
		told = r.GetDecided()
	}
	var at []decidedAt
	for _, p := range told {
		if p != nil {
			at = append(at, decidedAt{place{p.GetIndex(), int(p.GetPosition())}, p.Position != nil, p.GetWaitEnd()})
		}
	}
	return at
}

// Recorder writes down the answered calls of clients. Its methods may be called
// concurrently.
type Recorder struct {
	now func() judge.Moment

	mu    sync.Mutex
	calls []Call
	// first are when calls that may be sent again were sent first.
	first map[string]judge.Moment
}

// NewRecorder returns a recorder with the clock of a history.
func NewRecorder(now func() judge.Moment) *Recorder {
	return &Recorder{now: now, first: map[string]judge.Moment{}}
}

// Intercept writes down each answered call of a client: whoever retries, each try is
// a call.
func (r *Recorder) Intercept(ctx context.Context, method string, req, resp any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c := Call{Method: path.Base(method), Request: proto.Clone(req.(proto.Message)), Response: resp.(proto.Message)}
	c.Sent = r.now()
	c.First = r.began(c)
	if err := invoke(ctx, method, req, resp, conn, opts...); err != nil {
		return err
	}
	c.Got = r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return nil
}

// began returns when a call was sent first.
func (r *Recorder) began(c Call) judge.Moment {
	lines, _ := askedBy(c)
	name := strings.Join(lines, "\n")
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.first[name]; !known {
		r.first[name] = c.Sent
	}
	return r.first[name]
}

// Calls returns what was written down so far. What clients do afterwards does not
// change it.
func (r *Recorder) Calls() []Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// FirstSent returns how long after a moment the first call was answered by an entry
// of the log that was sent after it; false if none was.
func (r *Recorder) FirstSent(after judge.Moment) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, found := time.Duration(0), false
	for i := len(r.calls) - 1; i >= 0 && r.calls[i].Got >= after; i-- { // in the order of their answers, nearly
		if c := r.calls[i]; c.Sent >= after && anyLogged(c) && (!found || c.Got-after < first) {
			first, found = c.Got-after, true
		}
	}
	return first, found
}

// LongestSilence returns the longest time between two moments in which no call was
// answered that the log decided.
func (r *Recorder) LongestSilence(from, to judge.Moment) time.Duration {
	r.mu.Lock()
	moments := []judge.Moment{from, to}
	for _, c := range r.calls {
		if c.Got > from && c.Got < to && anyLogged(c) {
			moments = append(moments, c.Got)
		}
	}
	r.mu.Unlock()
	slices.Sort(moments)
	longest := time.Duration(0)
	for i := range moments[1:] {
		longest = max(longest, moments[i+1]-moments[i])
	}
	return longest
}

func anyLogged(c Call) bool {
	for _, p := range c.places() {
		if p.logged {
			return true
		}
	}
	return false
}
