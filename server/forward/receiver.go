package forward

import (
	"context"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	forwardv1 "github.com/admitd/admit/proto/admit/forward/v1"
)

// Receiver answers what other nodes forward.
type Receiver struct {
	// Admit returns why the caller of a stream is no node of the cluster, as a
	// status, or nil if it is one.
	Admit func(ctx context.Context) error
	// Answer answers a call, with an error that becomes a status. It must return
	// soon after ctx has ended.
	Answer func(ctx context.Context, c Call) ([]byte, error)
	// Overloaded is what calls are told beyond as many as a node may have open.
	Overloaded error
	// Stopping is closed when no further call is to be begun. Those under way are
	// still answered; Answer sees to it that they end.
	Stopping <-chan struct{}
	Metrics  *Metrics
}

// incoming are the calls of one stream.
type incoming struct {
	r   *Receiver
	ctx context.Context
	// wake tells that there is an answer, or that there will be none.
	wake    chan struct{}
	running sync.WaitGroup

	mu sync.Mutex
	// closed says that no call is begun any more.
	closed  bool
	calls   map[uint64]context.CancelFunc
	answers []*forwardv1.Answer
}

// Forward is ForwardService.Forward.
func (r *Receiver) Forward(stream forwardv1.ForwardService_ForwardServer) error {
	if err := r.Admit(stream.Context()); err != nil {
		return err
	}
	if err := stream.SendHeader(metadata.MD{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(stream.Context())
	in := &incoming{r: r, ctx: ctx, wake: make(chan struct{}, 1), calls: make(map[uint64]context.CancelFunc)}
	go in.read(stream) // until the stream ends, which is when this returns
	err := in.write(stream)
	in.close()
	cancel()
	in.running.Wait()
	return err
}

// read begins and ends calls as it is told.
func (in *incoming) read(stream forwardv1.ForwardService_ForwardServer) {
	defer in.close()
	for {
		req, err := stream.Recv()
		if err != nil {
			return
		}
		for _, c := range req.GetCalls() {
			in.begin(c)
		}
		in.end(req.GetAbandoned())
	}
}

// begin answers a call in the background, unless nothing is begun any more.
func (in *incoming) begin(c *forwardv1.Call) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return
	}
	if len(in.calls) >= maxCalls {
		in.answerLocked(c.GetId(), nil, in.r.Overloaded)
		return
	}
	var ctx context.Context
	var cancel context.CancelFunc
	if t := c.GetTimeout(); t != nil {
		ctx, cancel = context.WithTimeout(in.ctx, t.AsDuration())
	} else {
		ctx, cancel = context.WithCancel(in.ctx)
	}
	in.calls[c.GetId()] = cancel
	in.r.Metrics.received.Inc()
	in.r.Metrics.serving.Inc()
	in.running.Go(func() {
		response, err := in.r.Answer(ctx, Call{
			Method: c.GetMethod(), Request: c.GetRequest(), Principal: c.GetPrincipal(), Traceparent: c.GetTraceparent(),
		})
		cancel()
		in.r.Metrics.serving.Dec()
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.calls, c.GetId())
		in.answerLocked(c.GetId(), response, err)
	})
}

// end has calls end whose callers have gone.
func (in *incoming) end(ids []uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, id := range ids {
		if cancel := in.calls[id]; cancel != nil {
			cancel()
		}
	}
}

func (in *incoming) answerLocked(id uint64, response []byte, err error) {
	a := &forwardv1.Answer{Id: id, Outcome: &forwardv1.Answer_Response{Response: response}}
	if err != nil {
		st := status.Convert(err).Proto()
		a.Outcome = &forwardv1.Answer_Failure{Failure: &forwardv1.Failure{
			Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails(),
		}}
	}
	in.answers = append(in.answers, a)
	in.notify()
}

func (in *incoming) notify() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// close begins no further call.
func (in *incoming) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.notify()
}

// write sends answers until all is answered that there will be, or the stream
// breaks.
func (in *incoming) write(stream forwardv1.ForwardService_ForwardServer) error {
	stopping := in.r.Stopping
	for {
		answers, over := in.take()
		if len(answers) > 0 {
			if err := stream.Send(&forwardv1.ForwardResponse{Answers: answers}); err != nil {
				return err
			}
			continue
		}
		if over {
			return nil
		}
		select {
		case <-in.wake:
		case <-stopping:
			in.close()
			stopping = nil
		case <-in.ctx.Done():
			return in.ctx.Err()
		}
	}
}

// take returns the answers of the next message; over says that none will follow.
func (in *incoming) take() (answers []*forwardv1.Answer, over bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	n, size := 0, 0
	for n < len(in.answers) && n < batchCalls && size < batchBytes {
		size += len(in.answers[n].GetResponse())
		n++
	}
	answers, in.answers = in.answers[:n:n], in.answers[n:]
	return answers, n == 0 && in.closed && len(in.calls) == 0
}
