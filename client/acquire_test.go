package client_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

var work = client.Work{Pool: "email", Tenant: "acme", Category: "otp", Cost: 3, TTL: 5 * time.Second, WorkerID: "w1"}

func TestAcquireTellsThePermitAndWhenToStop(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		d, err := c.Acquire(t.Context(), work)
		if err != nil {
			t.Fatal(err)
		}
		p := d.Permit
		if p == nil || d.Shed != nil {
			t.Fatalf("got %+v, want a permit", d)
		}
		if p.Token != "p" || p.Fence != 7 || p.Tenant != "acme" || p.TTL != 30*time.Second {
			t.Errorf("got %+v", p)
		}
		if got, want := p.StopBy().Sub(f.began), 25500*time.Millisecond; got != want {
			t.Errorf("must stop after %v, want %v", got, want)
		}
		r := noted(f, &f.acquires)[0].req
		if r.GetRequestId() == "" {
			t.Error("sent no request_id")
		}
		if r.GetPool() != "email" || r.GetCategory() != "otp" || r.GetCost() != 3 || r.GetTtl().AsDuration() != 5*time.Second || r.GetWorkerId() != "w1" {
			t.Errorf("sent %v", r)
		}
	})
}

// A sidecar grants by itself what has no id. What is more than tokens has one: its retry
// must find the permit, or the place in line.
func TestOnlyTokensAreAskedForWithoutAnID(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*client.Work)
		named  bool
	}{
		"tokens alone":            {func(*client.Work) {}, false},
		"with an id of its own":   {func(w *client.Work) { w.RequestID = "mine" }, true},
		"to be settled":           {func(w *client.Work) { w.Settle = true }, true},
		"that may wait in line":   {func(w *client.Work) { w.MaxWait = time.Second }, true},
		"with a slot beside them": {func(w *client.Work) { w.RateOnly = false }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
				if n == 0 && !c.named {
					return nil, refusal(codes.Aborted, "OUTCOME_UNKNOWN", 0)
				}
				return granted(permit("p", 30*time.Second)), nil
			}}
			inBubble(t, f, func(t *testing.T, cl *client.Client) {
				w := work
				w.RateOnly = true
				c.change(&w)
				if _, err := cl.Acquire(t.Context(), w); err != nil {
					t.Fatal(err)
				}
				for _, call := range noted(f, &f.acquires) {
					if got := call.req.GetRequestId() != ""; got != c.named {
						t.Errorf("has an id: %v, want %v", got, c.named)
					}
				}
			})
		})
	}
}

func TestAcquireReturnsARefusalAsAnAnswer(t *testing.T) {
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_CAP}), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		d, err := c.Acquire(t.Context(), work)
		if err != nil || d.Permit != nil || d.Shed.GetReason() != admitv1.Reason_REASON_POOL_CAP {
			t.Errorf("got %+v, %v", d, err)
		}
		if n := len(noted(f, &f.acquires)); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

func TestAcquireIsSentAgainWithTheSameID(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		atLeast time.Duration
	}{
		"outcome unknown":         {refusal(codes.Unavailable, "OUTCOME_UNKNOWN", 0), 0},
		"the connection broke":    {status.Error(codes.Unavailable, "connection reset"), 0},
		"no leader, come back in": {refusal(codes.Unavailable, "NO_QUORUM", 3*time.Second), 3 * time.Second},
		"overloaded, come back":   {refusal(codes.ResourceExhausted, "OVERLOADED", 2*time.Second), 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{onAcquire: func(n int, _ *admitv1.AcquireRequest) (*admitv1.Decision, error) {
				if n < 2 {
					return nil, c.err
				}
				return granted(permit("p", 30*time.Second)), nil
			}}
			inBubble(t, f, func(t *testing.T, cl *client.Client) {
				d, err := cl.Acquire(t.Context(), work)
				if err != nil {
					t.Fatal(err)
				}
				calls := noted(f, &f.acquires)
				if len(calls) != 3 {
					t.Fatalf("asked %d times, want 3", len(calls))
				}
				for i, call := range calls[1:] {
					if call.req.GetRequestId() != calls[0].req.GetRequestId() {
						t.Error("asked again with another request_id")
					}
					if waited := call.at - calls[i].at; waited <= c.atLeast-time.Millisecond || waited > c.atLeast+2*time.Second {
						t.Errorf("came back after %v, want a little over %v", waited, c.atLeast)
					}
				}
				if got := d.Permit.Asked.Sub(f.began); got != calls[2].at {
					t.Errorf("counts the permit's time from %v, want from the answered try at %v", got, calls[2].at)
				}
			})
		})
	}
}

func TestAcquireGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		tries func(n int) bool
		after time.Duration
	}{
		"at once where asking again can't help": {refusal(codes.NotFound, "POOL_NOT_FOUND", 0), func(n int) bool { return n == 1 }, 0},
		"at once where a message is too large":  {status.Error(codes.ResourceExhausted, "too large"), func(n int) bool { return n == 1 }, 0},
		"at once where the outcome stays open":  {refusal(codes.Aborted, "OUTCOME_UNKNOWN", 0), func(n int) bool { return n == 1 }, 0},
		"after its retry time":                  {refusal(codes.Unavailable, "NO_QUORUM", 0), func(n int) bool { return n > 8 }, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) { return nil, c.err }}
			inBubble(t, f, func(t *testing.T, cl *client.Client) {
				_, err := cl.Acquire(t.Context(), work)
				if status.Code(err) != status.Code(c.err) {
					t.Errorf("got %v, want %v", err, c.err)
				}
				if n := len(noted(f, &f.acquires)); !c.tries(n) {
					t.Errorf("asked %d times", n)
				}
				if took := time.Since(f.began); took > c.after {
					t.Errorf("took %v, want at most %v", took, c.after)
				}
			})
		})
	}
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		return nil, refusal(codes.Unavailable, "NO_QUORUM", 10*time.Second)
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Acquire(ctx, work); status.Code(err) != codes.Unavailable {
			t.Errorf("got %v, want the last error", err)
		}
		if took := time.Since(f.began); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
	})
}

func TestReleaseAndRenew(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		cost := int64(0)
		result, err := c.Release(t.Context(), "p", client.Release{
			Outcome: admitv1.Outcome_OUTCOME_THROTTLED, ActualCost: &cost, RetryAfter: 4 * time.Second, Bucket: "resend",
		})
		if err != nil || result != admitv1.LeaseResult_LEASE_RESULT_RELEASED {
			t.Errorf("released with %v, %v", result, err)
		}
		r := noted(f, &f.releases)[0].req
		if r.GetToken() != "p" || r.ActualCost == nil || r.GetRetryAfter().AsDuration() != 4*time.Second || r.GetBucket() != "resend" {
			t.Errorf("sent %v", r)
		}
		results, err := c.Renew(t.Context(), 0, "p", "q")
		if err != nil || len(results) != 2 {
			t.Errorf("renewed with %v, %v", results, err)
		}
		if r := noted(f, &f.renews)[0].req; r.Ttl != nil || len(r.GetTokens()) != 2 {
			t.Errorf("sent %v", r)
		}
	})
}
