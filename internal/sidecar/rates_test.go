package sidecar

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

var someTokens = &admitv1.AcquireRequest{Pool: "email", Tenant: "acme", RateOnly: true}

const (
	fromCluster  = admitv1.DecisionSource_DECISION_SOURCE_UNSPECIFIED
	fromShare    = admitv1.DecisionSource_DECISION_SOURCE_SHARE
	fromFallback = admitv1.DecisionSource_DECISION_SOURCE_FALLBACK
)

// lends has the node lend so from now on.
func (f *fakeNode) lends(lend func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lend = lend
}

// lent is shares of so many tokens for 10 s.
func lent(tokens int64, onLoss admitv1.TokenShare_OnLoss) func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
	return func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
		resp := lease("", tokens, 10*time.Second, 1)
		s := resp.GetShare()
		s.Lane, s.OnLoss, s.Safe, s.SafePeriod = "bulk", onLoss, 2, durationpb.New(time.Second)
		return resp, nil
	}
}

// take asks for a token, which must be granted, and returns who granted it.
func (c *conn) take(t *testing.T) admitv1.DecisionSource {
	t.Helper()
	resp, err := c.Acquire(t.Context(), someTokens)
	if err != nil || resp.GetDecision().GetPermit() == nil {
		t.Fatalf("a token: %v, %v", resp, err)
	}
	return resp.GetSource()
}

func withShares(t *testing.T, test func(t *testing.T, m *machine, w *conn)) {
	t.Helper()
	onAMachine(t, Options{MaxShares: 10, Node: "here", NodeOwned: 2, NodeTotal: 5}, func(t *testing.T, m *machine) {
		goes(time.Second) // it is known that the cluster decides
		test(t, m, m.worker())
	})
}

// The first request goes to the cluster, those after it are granted from what was leased
// meanwhile, and what is left when the sidecar stops goes back.
func TestTokensAreGrantedFromAShare(t *testing.T) {
	withShares(t, func(t *testing.T, m *machine, w *conn) {
		m.node.lends(lent(10, admitv1.TokenShare_CLOSED))
		if got := w.take(t); got != fromCluster {
			t.Errorf("the first was granted by %v", got)
		}
		synctest.Wait()
		resp, err := w.Acquire(t.Context(), someTokens)
		want := &admitv1.AcquireResponse{Source: fromShare, Decision: &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: &admitv1.Permit{
			Pool: "email", Tenant: "acme", Lane: "bulk", State: admitv1.PermitState_PERMIT_STATE_SPENT,
		}}}}
		if err != nil || !proto.Equal(resp, want) {
			t.Errorf("got %v, %v", resp, err)
		}
		asked := seen[*admitv1alpha1.LeaseShareRequest](m.node)
		node := &admitv1.NodeShare{Id: "here", Owned: 2, Total: 5}
		if len(asked) != 1 || asked[0].GetTokens() != 1 || asked[0].GetPool() != "email" || asked[0].GetTenant() != "acme" || !proto.Equal(asked[0].GetNode(), node) {
			t.Errorf("leased %v", asked)
		}
		if n := len(seen[*admitv1.AcquireRequest](m.node)); n != 1 {
			t.Errorf("the cluster was asked %d times", n)
		}
		m.stop()
		if p, _ := m.node.permit("s1"); p.cost == nil || *p.cost != 1 {
			t.Errorf("given back as %+v", p)
		}
	})
}

// What asks for more than tokens is the cluster's to decide.
func TestOthersAreNotGrantedFromAShare(t *testing.T) {
	one, zero := int64(1), int64(0)
	withShares(t, func(t *testing.T, m *machine, w *conn) {
		m.node.lends(lent(100, admitv1.TokenShare_CLOSED))
		w.take(t)
		synctest.Wait()
		for name, change := range map[string]func(*admitv1.AcquireRequest){
			"a slot": func(r *admitv1.AcquireRequest) { r.RateOnly = false }, "settle": func(r *admitv1.AcquireRequest) { r.Settle = true },
			"request_id": func(r *admitv1.AcquireRequest) { r.RequestId = "r" }, "backlog": func(r *admitv1.AcquireRequest) { r.Backlog = 1 },
			"dry_run": func(r *admitv1.AcquireRequest) { r.DryRun = true }, "no cost": func(r *admitv1.AcquireRequest) { r.Cost = &zero },
			"ttl": func(r *admitv1.AcquireRequest) { r.Ttl = durationpb.New(time.Minute) }, "a lock": func(r *admitv1.AcquireRequest) { r.LockKey = "l" },
			"a long wait": func(r *admitv1.AcquireRequest) { r.MaxWait = durationpb.New(time.Hour) },
			"a category":  func(r *admitv1.AcquireRequest) { r.Category = "c" },
		} {
			r := proto.CloneOf(someTokens)
			change(r)
			if resp, err := w.Acquire(t.Context(), r); err != nil || resp.GetSource() != fromCluster {
				t.Errorf("%s: %v, %v", name, resp, err)
			}
		}
		waits := proto.CloneOf(someTokens)
		waits.MaxWait, waits.Cost = durationpb.New(time.Second), &one
		if resp, err := w.Acquire(t.Context(), waits); err != nil || resp.GetSource() != fromShare {
			t.Errorf("with a wait: %v, %v", resp, err)
		}
	})
}

// A batch and a session are granted from a share as a call is; the cluster is asked for the
// rest of a batch.
func TestBatchesAndSessionsAreGrantedFromAShare(t *testing.T) {
	withShares(t, func(t *testing.T, m *machine, w *conn) {
		m.node.lends(lent(2, admitv1.TokenShare_CLOSED))
		w.take(t)
		synctest.Wait()
		resp, err := w.BatchAcquire(t.Context(), &admitv1.BatchAcquireRequest{Requests: []*admitv1.AcquireRequest{work, someTokens, someTokens, someTokens}})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []admitv1.DecisionSource{fromCluster, fromShare, fromShare, fromCluster} {
			if got := resp.GetResults()[i].GetResponse(); got.GetSource() != want || got.GetDecision().GetPermit() == nil {
				t.Errorf("item %d: %v", i, got)
			}
		}
		if asked := seen[*admitv1.BatchAcquireRequest](m.node); len(asked) != 1 || len(asked[0].GetRequests()) != 2 {
			t.Errorf("the cluster was asked %v", asked)
		}
		synctest.Wait()
		stream, err := admitv1alpha1.NewSessionServiceClient(w).Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		call := &admitv1alpha1.SessionCall{Id: 1, Request: &admitv1alpha1.SessionCall_Acquire{Acquire: someTokens}}
		if err := stream.Send(&admitv1alpha1.SessionRequest{Calls: []*admitv1alpha1.SessionCall{call}}); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil || got.GetAnswers()[0].GetAcquire().GetSource() != fromShare {
			t.Errorf("on a session: %v, %v", got, err)
		}
	})
}

// What is not asked for goes back, and so does what an older policy lent; what is used up
// goes back at once.
func TestSharesGoBack(t *testing.T) {
	withShares(t, func(t *testing.T, m *machine, w *conn) {
		m.node.lends(lent(3, admitv1.TokenShare_CLOSED))
		w.take(t)
		synctest.Wait()
		w.take(t)
		goes(1100 * time.Millisecond)
		if p, live := m.node.permit("s1"); live || p.cost == nil || *p.cost != 1 {
			t.Errorf("an idle share: %+v", p)
		}
		w.take(t)
		synctest.Wait()
		for range 3 {
			w.take(t)
		}
		synctest.Wait()
		if p, live := m.node.permit("s2"); live || p.cost == nil || *p.cost != 3 {
			t.Errorf("a used share: %+v", p)
		}
		m.node.lends(func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
			return lease("", 5, 10*time.Second, 2), nil
		})
		other := proto.CloneOf(someTokens)
		other.Tenant = "other"
		if _, err := w.Acquire(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p, live := m.node.permit("s3"); live || p.cost == nil || *p.cost != 0 {
			t.Errorf("a share of an older policy: %+v", p)
		}
	})
}

// A cluster that lends nothing is not asked each time: not for half a minute where the
// policy does not share, and where others hold all until it says.
func TestLeasesInVainAreRare(t *testing.T) {
	asked := func(m *machine) int { return len(seen[*admitv1alpha1.LeaseShareRequest](m.node)) }
	for name, c := range map[string]struct {
		lend  func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error)
		pause time.Duration
	}{
		"not shared": {nil, 34 * time.Second},
		"shed": {func(*admitv1alpha1.LeaseShareRequest) (*admitv1alpha1.LeaseShareResponse, error) {
			shed := &admitv1.Shed{RetryAfter: durationpb.New(2 * time.Second)}
			return &admitv1alpha1.LeaseShareResponse{Outcome: &admitv1alpha1.LeaseShareResponse_Shed{Shed: shed}}, nil
		}, 2300 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withShares(t, func(t *testing.T, m *machine, w *conn) {
				m.node.lends(c.lend)
				for range 3 {
					w.take(t)
					synctest.Wait()
				}
				if n := asked(m); n != 1 {
					t.Errorf("asked %d times at first", n)
				}
				goes(c.pause)
				w.take(t)
				synctest.Wait()
				if n := asked(m); n != 2 {
					t.Errorf("asked %d times in the end", n)
				}
			})
		})
	}
}

// Without a cluster a share is used up, and then it is as the policy says.
func TestWithoutAClusterThePolicySays(t *testing.T) {
	for onLoss, want := range map[admitv1.TokenShare_OnLoss]int{
		admitv1.TokenShare_CLOSED: 0, admitv1.TokenShare_OPEN: 5, admitv1.TokenShare_SAFE: 2,
	} {
		for _, health := range []bool{true, false} { // says so, or calls fail
			t.Run(onLoss.String(), func(t *testing.T) {
				withShares(t, func(t *testing.T, m *machine, w *conn) {
					m.node.lends(lent(3, onLoss))
					w.take(t)
					synctest.Wait()
					m.node.hook(func(context.Context, int, any) error { return refusal(codes.Unavailable, reasonNotLeader, nil) })
					if health {
						m.node.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
						synctest.Wait()
					}
					for range 3 {
						if got := w.take(t); got != fromShare {
							t.Errorf("within the share it was granted by %v", got)
						}
					}
					let, began := 0, time.Now()
					for range 5 {
						resp, err := w.Acquire(t.Context(), someTokens)
						switch {
						case err == nil && resp.GetSource() == fromFallback && resp.GetDecision().GetPermit().GetLane() == "bulk":
							let++
						case status.Code(err) != codes.Unavailable || reasonOf(err) != reasonNotLeader:
							t.Errorf("got %v, %v", resp, err)
						}
					}
					if let != want || time.Since(began) > time.Second {
						t.Errorf("%d were let through in %v, want %d", let, time.Since(began), want)
					}
					goes(time.Second)
					if resp, err := w.Acquire(t.Context(), someTokens); (err == nil) != (want > 0) {
						t.Errorf("a period later: %v, %v", resp, err)
					}
				})
			})
		}
	}
}

// A call that a node is silent about is let through as soon as it is known that it does
// not decide.
func TestASilentClusterIsLost(t *testing.T) {
	withShares(t, func(t *testing.T, m *machine, w *conn) {
		m.node.lends(lent(1, admitv1.TokenShare_OPEN))
		w.take(t)
		synctest.Wait()
		m.node.hook(func(ctx context.Context, _ int, _ any) error {
			<-ctx.Done()
			return ctx.Err()
		})
		w.take(t)
		began := time.Now()
		lost := time.AfterFunc(time.Second, func() { m.node.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING) })
		defer lost.Stop()
		if got := w.take(t); got != fromFallback || time.Since(began) > 1100*time.Millisecond {
			t.Errorf("granted by %v after %v", got, time.Since(began))
		}
		m.node.health.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
		goes(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		resp, err := w.Acquire(ctx, someTokens)
		if err != nil || resp.GetSource() != fromFallback {
			t.Errorf("before the worker's deadline: %v, %v", resp, err)
		}
	})
}
