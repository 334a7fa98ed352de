package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc"

	"github.com/admitd/admit/bench/system"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

// SessionPermits opens callers that take a permit and give it back, all on one session:
// what they ask at the same time goes out in one message.
func SessionPermits(at Target) system.Open { return onSession(at, permitCall) }

// SessionTokens opens callers on one session that do what those of Tokens do.
func SessionTokens(at Target) system.Open { return onSession(at, tokenCall) }

// permitCall asks for a permit, or gives back the one that is held.
func permitCall(caller int, held string) *admitv1alpha1.SessionCall {
	if held != "" {
		return &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Release{Release: &admitv1.ReleaseRequest{Token: held}}}
	}
	return acquireCall(&admitv1.AcquireRequest{Pool: Wide, Tenant: tenant(caller)})
}

func tokenCall(caller int, _ string) *admitv1alpha1.SessionCall {
	return acquireCall(tokenRequest(Wide, caller))
}

func acquireCall(req *admitv1.AcquireRequest) *admitv1alpha1.SessionCall {
	return &admitv1alpha1.SessionCall{Request: &admitv1alpha1.SessionCall_Acquire{Acquire: req}}
}

func onSession(at Target, next func(caller int, held string) *admitv1alpha1.SessionCall) system.Open {
	return func(ctx context.Context, callers int) (system.Operation, error) {
		conn, err := system.Dial(at())
		if err != nil {
			return nil, err
		}
		ctx, end := context.WithCancelCause(context.WithoutCancel(ctx))
		stream, err := admitv1alpha1.NewSessionServiceClient(conn).Session(ctx)
		if err != nil {
			end(nil)
			return nil, errors.Join(fmt.Errorf("open a session: %w", err), conn.Close())
		}
		o := &session{
			conn: conn, stream: stream, ctx: ctx, end: end, next: next,
			calls: make(chan *admitv1alpha1.SessionCall, callers), closed: make(chan struct{}),
			held: make([]string, callers),
		}
		for range callers {
			o.answers = append(o.answers, make(chan *admitv1alpha1.SessionAnswer, 1))
		}
		o.loops.Go(o.send)
		o.loops.Go(o.receive)
		return o, nil
	}
}

type session struct {
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[admitv1alpha1.SessionRequest, admitv1alpha1.SessionResponse]
	// ctx is the stream's; its cause says why it has ended.
	ctx context.Context
	end context.CancelCauseFunc
	// next is what a caller asks who holds that token, or none.
	next   func(caller int, held string) *admitv1alpha1.SessionCall
	loops  sync.WaitGroup
	calls  chan *admitv1alpha1.SessionCall
	closed chan struct{}
	// answers and held are each caller's; a call's id is its caller's number and one.
	answers []chan *admitv1alpha1.SessionAnswer
	held    []string
}

func (o *session) Do(ctx context.Context, caller int) (int, error) {
	call := o.next(caller, o.held[caller])
	call.Id = uint64(caller) + 1
	o.held[caller] = ""
	o.calls <- call
	var answer *admitv1alpha1.SessionAnswer
	select {
	case answer = <-o.answers[caller]:
	case <-o.ctx.Done():
		return 0, context.Cause(o.ctx)
	}
	if f := answer.GetFailure(); f != nil {
		return 0, fmt.Errorf("code %d: %s", f.GetCode(), f.GetMessage())
	}
	if call.GetRelease() != nil {
		return 1, nil
	}
	p, err := granted(answer.GetAcquire())
	o.held[caller] = p.GetToken()
	return 1, err
}

// messageSize is the most calls in a message.
const messageSize = 1000

// send sends what is asked, as much of it at a time as there is.
func (o *session) send() {
	for {
		req := &admitv1alpha1.SessionRequest{}
		select {
		case call := <-o.calls:
			req.Calls = append(req.Calls, call)
		case <-o.closed:
			return
		}
		for more := true; more && len(req.Calls) < messageSize; {
			select {
			case call := <-o.calls:
				req.Calls = append(req.Calls, call)
			default:
				more = false
			}
		}
		if err := o.stream.Send(req); err != nil {
			o.end(fmt.Errorf("send: %w", err))
			return
		}
	}
}

// receive hands answers to their callers until the session ends.
func (o *session) receive() {
	for {
		resp, err := o.stream.Recv()
		if err != nil {
			o.end(fmt.Errorf("receive: %w", err))
			return
		}
		for _, a := range resp.GetAnswers() {
			o.answers[a.GetId()-1] <- a
		}
	}
}

// Close ends the session, and gives back what is held.
func (o *session) Close() error {
	close(o.closed)
	o.end(nil)
	o.loops.Wait()
	c := &clients{conns: []*grpc.ClientConn{o.conn}, stubs: []admitv1.AdmissionServiceClient{admitv1.NewAdmissionServiceClient(o.conn)}}
	return errors.Join(c.giveBack(context.Background(), o.held), c.Close())
}
