package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// claims returns n claims of 30 s, numbered from first.
func claims(first, n int) []*admitv1.Claim {
	cs := make([]*admitv1.Claim, n)
	for i := range cs {
		name := fmt.Sprint(first + i)
		cs[i] = &admitv1.Claim{
			Permit: permit("c"+name, 30*time.Second), Key: "k" + name, Category: "otp", Route: "r", Group: "g",
			DueAt: timestamppb.New(time.Unix(1000, 0)), Attempt: 2,
		}
	}
	return cs
}

// running is a worker at work in the background of a test.
type running struct {
	stop  context.CancelFunc
	ended chan error
}

func start(t *testing.T, w *client.Worker) *running {
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- w.Run(ctx) }()
	return r
}

func (r *running) drain(t *testing.T) {
	t.Helper()
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestWorkerHandlesWhatIsDue(t *testing.T) {
	f := &fake{onNextDue: func(_ context.Context, n int, r *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		if n == 0 {
			return claims(0, int(r.GetMaxItems())), nil
		}
		return nil, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{
			Client: c, Pool: "email", Concurrency: 3, Lanes: []string{"top"}, TTL: 9 * time.Second, ID: "w1",
			Handler: func(_ context.Context, c *client.Claim) error {
				if c.Category != "otp" || c.Route != "r" || c.Group != "g" || c.Attempt != 2 || c.DueAt.Unix() != 1000 || c.Tenant != "acme" {
					t.Errorf("was handed %+v", c)
				}
				return map[string]error{"k0": nil, "k1": errors.New("no"), "k2": client.Throttled{}}[c.Key]
			},
		}
		r := start(t, w)
		synctest.Wait()
		outcomes := map[string]admitv1.Outcome{}
		for _, call := range noted(f, &f.releases) {
			outcomes[call.req.GetToken()] = call.req.GetOutcome()
		}
		want := map[string]admitv1.Outcome{
			"c0": admitv1.Outcome_OUTCOME_DONE, "c1": admitv1.Outcome_OUTCOME_FAILED, "c2": admitv1.Outcome_OUTCOME_THROTTLED,
		}
		if fmt.Sprint(outcomes) != fmt.Sprint(want) {
			t.Errorf("released %v, want %v", outcomes, want)
		}
		poll := noted(f, &f.polls)[0].req
		if poll.GetMaxItems() != 3 || poll.GetLanes()[0] != "top" || poll.GetTtl().AsDuration() != 9*time.Second || poll.GetWorkerId() != "w1" || poll.GetRequestId() == "" || poll.GetMaxWait() == nil {
			t.Errorf("polled with %v", poll)
		}
		r.drain(t)
	})
}

func TestWorkerClaimsOnlyWhatItCanBegin(t *testing.T) {
	var inHand, most, next atomic.Int64
	f := &fake{onNextDue: func(_ context.Context, _ int, r *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		n := int64(r.GetMaxItems())
		return claims(int(next.Add(n)-n), int(n)), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Concurrency: 4, Handler: func(ctx context.Context, _ *client.Claim) error {
			most.Store(max(most.Load(), inHand.Add(1)))
			hold(ctx, time.Second)
			inHand.Add(-1)
			return nil
		}}
		r := start(t, w)
		<-time.After(10500 * time.Millisecond)
		if most.Load() != 4 {
			t.Errorf("had up to %d in hand, want 4", most.Load())
		}
		if n := len(noted(f, &f.releases)); n < 40 {
			t.Errorf("handled %d in 10 s, want 40", n)
		}
		r.drain(t)
	})
}

func TestWorkerRenewsItsClaimsTogether(t *testing.T) {
	f := &fake{onNextDue: func(_ context.Context, n int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		if n == 0 {
			return claims(0, 8), nil
		}
		return nil, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Concurrency: 8, Handler: func(ctx context.Context, _ *client.Claim) error {
			hold(ctx, 55*time.Second)
			return context.Cause(ctx)
		}}
		r := start(t, w)
		<-time.After(time.Minute + time.Second)
		calls := noted(f, &f.renews)
		if len(calls) > 6 {
			t.Errorf("renewed with %d calls in a minute, want 6 at most", len(calls))
		}
		for _, call := range calls {
			if n := len(call.req.GetTokens()); n != 8 {
				t.Errorf("renewed %d claims in a call, want 8", n)
			}
		}
		for _, call := range noted(f, &f.releases) {
			if call.req.GetOutcome() != admitv1.Outcome_OUTCOME_DONE {
				t.Errorf("%s ended as %v", call.req.GetToken(), call.req.GetOutcome())
			}
		}
		r.drain(t)
	})
}

func TestWorkerDrains(t *testing.T) {
	f := &fake{onNextDue: func(_ context.Context, n int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		if n == 0 {
			return claims(0, 1), nil
		}
		return nil, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Concurrency: 2, Handler: func(ctx context.Context, _ *client.Claim) error {
			hold(ctx, 10*time.Second)
			return context.Cause(ctx)
		}}
		r := start(t, w)
		<-time.After(time.Second)
		r.drain(t)
		if took := time.Since(f.began); took != 10*time.Second {
			t.Errorf("drained after %v, want when the handler was done, 10s", took)
		}
		calls := noted(f, &f.releases)
		if len(calls) != 1 || calls[0].req.GetOutcome() != admitv1.Outcome_OUTCOME_DONE {
			t.Errorf("released %v, want one DONE", calls)
		}
	})
}

func TestWorkerDrainsInTime(t *testing.T) {
	f := &fake{onNextDue: func(_ context.Context, n int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		if n == 0 {
			return claims(0, 1), nil
		}
		return nil, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", DrainTimeout: 3 * time.Second, Handler: func(ctx context.Context, _ *client.Claim) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), client.ErrDrained) {
				t.Errorf("ended for %v, want ErrDrained", context.Cause(ctx))
			}
			return client.NotStarted{}
		}}
		r := start(t, w)
		<-time.After(time.Second)
		r.drain(t)
		if took := time.Since(f.began); took != 4*time.Second {
			t.Errorf("drained after %v, want 3s after it was told to", took)
		}
	})
}

// A poll that is given up may have claimed: the worker finds out and gives back.
func TestWorkerGivesBackWhatItDidNotBegin(t *testing.T) {
	f := &fake{onNextDue: func(ctx context.Context, n int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		if n == 0 {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return claims(0, 2), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Concurrency: 2, Handler: func(context.Context, *client.Claim) error {
			t.Error("began to work after it was told to drain")
			return nil
		}}
		r := start(t, w)
		synctest.Wait()
		r.drain(t)
		polls := noted(f, &f.polls)
		if len(polls) != 2 || polls[0].req.GetRequestId() != polls[1].req.GetRequestId() || polls[1].req.MaxWait != nil {
			t.Errorf("polled %v, want the same request again without a wait", polls)
		}
		calls := noted(f, &f.releases)
		if len(calls) != 2 {
			t.Fatalf("released %d claims, want 2", len(calls))
		}
		for _, call := range calls {
			if call.req.GetOutcome() != admitv1.Outcome_OUTCOME_NOT_STARTED {
				t.Errorf("released %v, want NOT_STARTED", call.req)
			}
		}
	})
}

func TestWorkerOutlastsAnOutage(t *testing.T) {
	f := &fake{}
	f.onNextDue = func(_ context.Context, n int, _ *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		switch {
		case time.Since(f.began) < 5*time.Minute:
			return nil, refusal(codes.Unavailable, "NO_QUORUM", 0)
		case len(noted(f, &f.releases)) == 0:
			return claims(n, 1), nil
		default:
			return nil, nil
		}
	}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Handler: func(context.Context, *client.Claim) error { return nil }}
		r := start(t, w)
		<-time.After(5*time.Minute + 10*time.Second)
		if n := len(noted(f, &f.releases)); n != 1 {
			t.Errorf("handled %d claims after the outage, want 1", n)
		}
		r.drain(t)
	})
}

func TestWorkerEndsWhereAskingAgainCantHelp(t *testing.T) {
	f := &fake{onNextDue: func(context.Context, int, *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		return nil, refusal(codes.NotFound, "POOL_NOT_FOUND", 0)
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "emial", Handler: func(context.Context, *client.Claim) error { return nil }}
		if err := w.Run(t.Context()); status.Code(err) != codes.NotFound {
			t.Errorf("ended with %v, want NOT_FOUND", err)
		}
	})
}

// An empty answer before its time is not asked for again at once.
func TestWorkerDoesNotSpin(t *testing.T) {
	f := &fake{onNextDue: func(_ context.Context, _ int, r *admitv1.NextDueRequest) ([]*admitv1.Claim, error) {
		r.MaxWait = nil
		return nil, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := &client.Worker{Client: c, Pool: "email", Handler: func(context.Context, *client.Claim) error { return nil }}
		r := start(t, w)
		<-time.After(time.Second)
		if n := len(noted(f, &f.polls)); n > 6 {
			t.Errorf("polled %d times in a second", n)
		}
		r.drain(t)
	})
}
