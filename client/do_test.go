package client_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func nothing(context.Context, *client.Permit) error { return nil }

func TestDoComesBackNoEarlierThanTold(t *testing.T) {
	retryAfter := shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_RATE, RetryAfter: durationpb.New(400 * time.Millisecond)})
	pollAfter := shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_CAP, PollAfter: durationpb.New(time.Second)})
	f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return []*admitv1.Decision{retryAfter, pollAfter, granted(permit("p", 30*time.Second))}[n], nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		if err := c.Do(t.Context(), work, nothing); err != nil {
			t.Fatal(err)
		}
		calls := noted(f, &f.acquires)
		for i, told := range []time.Duration{400 * time.Millisecond, time.Second} {
			if waited := calls[i+1].at - calls[i].at; waited < told || waited > told+told/10+time.Millisecond {
				t.Errorf("came back after %v, was told %v", waited, told)
			}
		}
	})
}

func TestDoGivesUpWhereWaitingCantHelp(t *testing.T) {
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_NEVER_GRANTABLE, Blocking: []*admitv1.Limit{{Name: "resend"}}}), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		err := c.Do(t.Context(), work, nothing)
		var shed *client.ShedError
		if !errors.As(err, &shed) || shed.Shed.GetReason() != admitv1.Reason_REASON_NEVER_GRANTABLE {
			t.Fatalf("got %v, want a ShedError", err)
		}
		if want := "not admitted: NEVER_GRANTABLE (resend)"; err.Error() != want {
			t.Errorf("says %q, want %q", err, want)
		}
	})
}

func TestDoEndsWithItsContextAndTellsWhatHeldIt(t *testing.T) {
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_CAP, PollAfter: durationpb.New(time.Minute)}), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Do(ctx, work, nothing)
		var shed *client.ShedError
		if !errors.As(err, &shed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want both the deadline and the refusal", err)
		}
	})
}

func TestDoAsksAnewWhenItsPermitIsGoneAlready(t *testing.T) {
	gone := permit("p1", 0)
	gone.State = admitv1.PermitState_PERMIT_STATE_LOST
	f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return []*admitv1.Decision{granted(gone), granted(permit("p2", 30*time.Second))}[n], nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		err := c.Do(t.Context(), work, func(_ context.Context, p *client.Permit) error {
			if p.Token != "p2" {
				t.Errorf("works under %s", p.Token)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		calls := noted(f, &f.acquires)
		if calls[0].req.GetRequestId() == calls[1].req.GetRequestId() {
			t.Error("asked with the same request_id, which only tells the old permit again")
		}
	})
}

func TestDoDoesNotRepeatARequestThatHasEnded(t *testing.T) {
	ended := permit("p1", 0)
	ended.State = admitv1.PermitState_PERMIT_STATE_RELEASED
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) { return granted(ended), nil }}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		named := work
		named.RequestID = "job-1"
		if err := c.Do(t.Context(), named, nothing); !errors.Is(err, client.ErrPermitLost) {
			t.Errorf("got %v, want ErrPermitLost", err)
		}
		if n := len(noted(f, &f.acquires)); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

func TestDoReleasesWithTheOutcomeOfTheError(t *testing.T) {
	said := errors.New("the provider said no")
	for name, c := range map[string]struct {
		err        error
		outcome    admitv1.Outcome
		retryAfter time.Duration
		bucket     string
	}{
		"done":            {nil, admitv1.Outcome_OUTCOME_DONE, 0, ""},
		"nothing found":   {fmt.Errorf("poll: %w", client.ErrNothingFound), admitv1.Outcome_OUTCOME_DONE, 0, ""},
		"failed":          {said, admitv1.Outcome_OUTCOME_FAILED, 0, ""},
		"throttled":       {client.Throttled{RetryAfter: 2 * time.Second, Bucket: "resend", Err: said}, admitv1.Outcome_OUTCOME_THROTTLED, 2 * time.Second, "resend"},
		"not started":     {client.NotStarted{Err: said}, admitv1.Outcome_OUTCOME_NOT_STARTED, 0, ""},
		"dead":            {client.Dead{Err: said}, admitv1.Outcome_OUTCOME_DEAD, 0, ""},
		"dead, wrapped":   {fmt.Errorf("send: %w", client.Dead{}), admitv1.Outcome_OUTCOME_DEAD, 0, ""},
		"throttled alone": {client.Throttled{}, admitv1.Outcome_OUTCOME_THROTTLED, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			inBubble(t, f, func(t *testing.T, cl *client.Client) {
				err := cl.Do(t.Context(), work, func(_ context.Context, p *client.Permit) error {
					p.SetActualCost(5)
					return c.err
				})
				if c.err == nil && err != nil || c.err != nil && !errors.Is(err, c.err) {
					t.Errorf("returned %v, want %v", err, c.err)
				}
				r := noted(f, &f.releases)[0].req
				if r.GetToken() != "p" || r.GetOutcome() != c.outcome || r.GetRetryAfter().AsDuration() != c.retryAfter || r.GetBucket() != c.bucket || r.GetActualCost() != 5 {
					t.Errorf("released with %v, want %v", r, c)
				}
				if miss := r.GetResult() == admitv1.Finding_FINDING_MISS; miss != errors.Is(c.err, client.ErrNothingFound) {
					t.Errorf("released with result %v", r.GetResult())
				}
			})
		})
	}
}

func TestDoReleasesAfterItsContextEndedAndAfterAPanic(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		err := c.Do(ctx, work, func(ctx context.Context, _ *client.Permit) error {
			cancel()
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's end", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("swallowed the panic")
				}
			}()
			_ = c.Do(t.Context(), work, func(context.Context, *client.Permit) error { panic("no") })
		}()
		calls := noted(f, &f.releases)
		if len(calls) != 2 || calls[0].req.GetOutcome() != admitv1.Outcome_OUTCOME_FAILED || calls[1].req.GetOutcome() != admitv1.Outcome_OUTCOME_FAILED {
			t.Errorf("released %v, want two failures", calls)
		}
	})
}

func TestDoRenewsWhileTheFunctionRuns(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		err := c.Do(t.Context(), work, func(ctx context.Context, _ *client.Permit) error {
			hold(ctx, 5*time.Minute)
			return context.Cause(ctx)
		})
		if err != nil {
			t.Errorf("lost its permit: %v", err)
		}
		last := time.Duration(0)
		calls := noted(f, &f.renews)
		for _, call := range calls {
			if gap := call.at - last; gap > 15*time.Second || gap < 5*time.Second {
				t.Errorf("renewed after %v, want about a third of 30s", gap)
			}
			last = call.at
		}
		if len(calls) < 20 {
			t.Errorf("renewed %d times in 5 minutes", len(calls))
		}
	})
}

func TestDoStopsTheFunctionWhenThePermitMayBeLost(t *testing.T) {
	for name, c := range map[string]struct {
		onRenew func(ctx context.Context, n int, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error)
		cause   error
		at      time.Duration // since the permit was asked for
	}{
		"no renewal gets through": {
			func(context.Context, int, *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
				return nil, refusal(codes.Unavailable, "NO_QUORUM", 0)
			}, client.ErrPermitLost, 25500 * time.Millisecond,
		},
		"renewals hang": {
			func(ctx context.Context, _ int, _ *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
				<-ctx.Done()
				return nil, refusal(codes.Unavailable, "NO_QUORUM", 0)
			}, client.ErrPermitLost, 25500 * time.Millisecond,
		},
		"the first renewal is the last": {
			func(_ context.Context, n int, r *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
				if n > 0 {
					return nil, refusal(codes.Unavailable, "NO_QUORUM", 0)
				}
				return renewed(r, 30*time.Second), nil
			}, client.ErrPermitLost, 35500 * time.Millisecond,
		},
		"it is lost": {
			func(context.Context, int, *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
				return &admitv1.RenewResponse{Results: []*admitv1.RenewResult{{Result: admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST}}}, nil
			}, client.ErrPermitLost, 10 * time.Second,
		},
		"its entry is gone": {
			func(context.Context, int, *admitv1.RenewRequest) (*admitv1.RenewResponse, error) {
				return &admitv1.RenewResponse{Results: []*admitv1.RenewResult{{Result: admitv1.LeaseResult_LEASE_RESULT_CANCELLED}}}, nil
			}, client.ErrCancelled, 10 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{onRenew: c.onRenew}
			inBubble(t, f, func(t *testing.T, cl *client.Client) {
				err := cl.Do(t.Context(), work, func(ctx context.Context, _ *client.Permit) error {
					<-ctx.Done()
					if got := time.Since(f.began); got != c.at {
						t.Errorf("was stopped after %v, want %v", got, c.at)
					}
					return context.Cause(ctx)
				})
				if !errors.Is(err, c.cause) {
					t.Errorf("got %v, want %v", err, c.cause)
				}
			})
		})
	}
}

func TestDoTellsThatTheWorkOutlivedItsPermit(t *testing.T) {
	f := &fake{onRelease: func(int, *admitv1.ReleaseRequest) (admitv1.LeaseResult, error) {
		return admitv1.LeaseResult_LEASE_RESULT_LEASE_LOST, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		if err := c.Do(t.Context(), work, nothing); !errors.Is(err, client.ErrPermitLost) {
			t.Errorf("got %v, want ErrPermitLost", err)
		}
	})
}

func TestDoSendsALostReleaseAgain(t *testing.T) {
	f := &fake{onRelease: func(n int, _ *admitv1.ReleaseRequest) (admitv1.LeaseResult, error) {
		if n == 0 {
			return 0, refusal(codes.Unavailable, "OUTCOME_UNKNOWN", 0)
		}
		return admitv1.LeaseResult_LEASE_RESULT_ALREADY_RELEASED, nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		if err := c.Do(t.Context(), work, nothing); err != nil {
			t.Errorf("got %v: the first release had arrived", err)
		}
		if n := len(noted(f, &f.releases)); n != 2 {
			t.Errorf("released %d times, want 2", n)
		}
	})
}
