package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func TestAcquireSendsAllThatWorkSays(t *testing.T) {
	f := &fake{}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		issued := time.Unix(1_900_000_000, 0)
		w := client.Work{
			Pool: "p", Tenant: "t", MaxWait: 7 * time.Second, LockKey: "l", DedupeKey: "d", IssuedAt: issued,
			RateOnly: true, Settle: true, Backlog: 5,
		}
		if _, err := c.Acquire(t.Context(), w); err != nil {
			t.Fatal(err)
		}
		r := noted(f, &f.acquires)[0].req
		if r.GetMaxWait().AsDuration() != 7*time.Second || r.GetLockKey() != "l" || r.GetDedupeKey() != "d" ||
			!r.GetIssuedAt().AsTime().Equal(issued) || !r.GetRateOnly() || !r.GetSettle() || r.GetBacklog() != 5 || r.GetDryRun() {
			t.Errorf("sent %v", r)
		}
		if _, err := c.Acquire(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		if r := noted(f, &f.acquires)[1].req; r.MaxWait != nil || r.IssuedAt != nil {
			t.Errorf("sent %v, want nothing that was not said", r)
		}
	})
}

// A wait that breaks off goes on under the same id, for what is left of it, though
// more than the retry time has passed.
func TestAcquireGoesOnWaiting(t *testing.T) {
	f := &fake{onAcquire: func(n int, r *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		if n == 0 {
			hold(context.Background(), 40*time.Second)
			return nil, refusal(codes.Unavailable, "OUTCOME_UNKNOWN", 0)
		}
		hold(context.Background(), r.GetMaxWait().AsDuration())
		return shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_CAP}), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := work
		w.MaxWait = time.Minute
		d, err := c.Acquire(t.Context(), w)
		if err != nil || d.Shed == nil {
			t.Fatalf("got %+v, %v", d, err)
		}
		if took := time.Since(f.began); took != time.Minute {
			t.Errorf("waited %v, want 1m", took)
		}
		calls := noted(f, &f.acquires)
		if len(calls) != 2 || calls[1].req.GetRequestId() != calls[0].req.GetRequestId() {
			t.Errorf("sent %v", calls)
		}
	})
}

// The permit of a request that was in line began with the grant, not when it was
// asked for.
func TestAPermitsTimeAfterAWait(t *testing.T) {
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		hold(context.Background(), 20*time.Second)
		return granted(permit("p", 10*time.Second)), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := work
		w.MaxWait = time.Minute
		d, err := c.Acquire(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := d.Permit.StopBy().Sub(f.began), 28500*time.Millisecond; got != want {
			t.Errorf("must stop after %v, want %v", got, want)
		}
	})
}

func TestDoStaysInLine(t *testing.T) {
	f := &fake{onAcquire: func(n int, r *admitv1.AcquireRequest) (*admitv1.Decision, error) {
		if n == 1 {
			return granted(permit("p", 30*time.Second)), nil
		}
		hold(context.Background(), r.GetMaxWait().AsDuration())
		return shed(&admitv1.Shed{Reason: admitv1.Reason_REASON_POOL_CAP, PollAfter: durationpb.New(time.Second)}), nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := work
		w.MaxWait = 10 * time.Second
		if err := c.Do(t.Context(), w, nothing); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(f.began); took != 10*time.Second {
			t.Errorf("asked again after %v, want at once after 10s", took)
		}
	})
}

func TestDoRunsWhatHoldsNothing(t *testing.T) {
	spent := &admitv1.Permit{State: admitv1.PermitState_PERMIT_STATE_SPENT}
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) { return granted(spent), nil }}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		w := work
		w.RateOnly = true
		failed := errors.New("failed")
		err := c.Do(t.Context(), w, func(ctx context.Context, _ *client.Permit) error {
			hold(context.Background(), time.Hour)
			return errors.Join(ctx.Err(), failed)
		})
		if !errors.Is(err, failed) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if asked, released := len(noted(f, &f.acquires)), len(noted(f, &f.releases)); asked != 1 || released != 0 {
			t.Errorf("asked %d times and released %d", asked, released)
		}
	})
}

func TestDryRunsOnlyAsk(t *testing.T) {
	would := &admitv1.Decision{Outcome: &admitv1.Decision_WouldGrant{WouldGrant: &admitv1.WouldGrant{Lane: "high"}}, Borrowed: true}
	f := &fake{onAcquire: func(int, *admitv1.AcquireRequest) (*admitv1.Decision, error) { return would, nil }}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		d, err := c.DryRun(t.Context(), work)
		if err != nil || d.WouldGrant.GetLane() != "high" || d.Permit != nil || !d.Borrowed {
			t.Errorf("got %+v, %v", d, err)
		}
		if !noted(f, &f.acquires)[0].req.GetDryRun() {
			t.Error("asked for a permit")
		}
	})
}

func TestReportsAreSentAgain(t *testing.T) {
	f := &fake{onReport: func(n int) error {
		if n == 0 {
			return refusal(codes.Unavailable, "NO_QUORUM", 0)
		}
		return nil
	}}
	inBubble(t, f, func(t *testing.T, c *client.Client) {
		d := client.Demand{Pool: "p", Tenant: "t", Category: "c", Backlog: 4, TTL: time.Second}
		if _, err := c.ReportDemand(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		calls := noted(f, &f.reports)
		if r := calls[len(calls)-1].req; len(calls) != 2 || r.GetBacklog() != 4 || r.GetTtl().AsDuration() != time.Second || r.GetCategory() != "c" {
			t.Errorf("sent %v", calls)
		}
	})
}
