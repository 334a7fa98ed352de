package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/admitd/admit/client"
	"github.com/admitd/admit/e2e/harness"
	"github.com/admitd/admit/e2e/judge"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	acquirers  = 6
	claimers   = 6
	schedulers = 2
	// answerLimit is how long a request is sent again until it is answered.
	answerLimit = 30 * time.Second
	// askAgain is the part of answered requests that are sent once more.
	askAgain = 0.2
)

// load is clients at work that write down what they are told. They use the
// generated stubs, so that every try is their own.
type load struct {
	t *testing.T
	// clients are those of the nodes: each try goes to any of them.
	clients []*client.Client
	// tryLimit is how long a try may take before the next.
	tryLimit time.Duration
	rec      *judge.Recorder
	unknown  atomic.Int64 // tries without an answer

	asking   sync.WaitGroup // acquirers and schedulers
	claiming sync.WaitGroup
	stopAsk  context.CancelFunc
	stop     context.CancelFunc
}

// startLoad applies the policy and starts all clients.
func startLoad(t *testing.T, c *client.Client, seed uint64) *load {
	t.Helper()
	l := &load{t: t, clients: []*client.Client{c}, tryLimit: answerLimit, rec: judge.NewRecorder(time.Now())}
	l.start(seed)
	return l
}

// start applies the policy and starts all clients.
func (l *load) start(seed uint64) {
	l.t.Helper()
	t := l.t
	harness.WaitFor(t, answerLimit, "the policy", func() bool {
		ctx, cancel := context.WithTimeout(background, l.tryLimit)
		defer cancel()
		_, err := l.clients[0].Policy().ApplyPolicy(ctx, &admitv1.ApplyPolicyRequest{Policy: crashPolicy(crashLimits)})
		return err == nil
	})
	claim, stop := context.WithCancel(background)
	ask, stopAsk := context.WithCancel(claim)
	l.stop, l.stopAsk = stop, stopAsk
	t.Cleanup(func() { stop(); l.asking.Wait(); l.claiming.Wait() })
	start := func(wg *sync.WaitGroup, ctx context.Context, n int, what string, turn func(*actor)) {
		for i := range n {
			name := fmt.Sprintf("%s-%d", what, i)
			a := &actor{load: l, name: name, rng: rand.New(rand.NewPCG(seed, uint64(len(what)*100+i)))}
			wg.Go(func() {
				for ctx.Err() == nil {
					turn(a)
				}
			})
		}
	}
	start(&l.asking, ask, acquirers, "acquirer", (*actor).acquire)
	start(&l.asking, ask, schedulers, "scheduler", (*actor).schedule)
	start(&l.claiming, claim, claimers, "claimer", (*actor).claim)
}

// finish stops new work, waits until what there is was worked off, and checks
// that nothing is left.
func (l *load) finish() {
	l.t.Helper()
	l.stopAsk()
	l.asking.Wait()
	harness.Eventually(answerLimit, func() bool { return l.health().GetEntries() == 0 })
	l.stop()
	l.claiming.Wait()
	if h := l.health(); h.GetActive() != 0 || h.GetEntries() != 0 || h.GetDead() != 0 {
		l.t.Errorf("permits, entries or dead entries are left: %v", h)
	}
}

// health is how the pool stands. It asks until it is told: right after a restart a
// connection may still know of nothing but a refusal.
func (l *load) health() *admitv1.PoolHealth {
	l.t.Helper()
	var resp *admitv1.QueueHealthResponse
	var err error
	if !harness.Eventually(answerLimit, func() bool {
		ctx, cancel := context.WithTimeout(background, l.tryLimit)
		defer cancel()
		resp, err = l.clients[0].Status().QueueHealth(ctx, &admitv1.QueueHealthRequest{Pool: pool})
		return err == nil
	}) {
		l.t.Fatalf("ask for the queue's health: %v", err)
	}
	return resp.GetPools()[0]
}

// actor is one client.
type actor struct {
	*load
	name string
	rng  *rand.Rand
	seq  int
}

// id returns a new id, different from all others of the run.
func (a *actor) id() string {
	a.seq++
	return fmt.Sprintf("%s-%d", a.name, a.seq)
}

func (a *actor) tenant() string { return fmt.Sprintf("tenant-%d", a.rng.IntN(4)) }

// tries are the moments of a request that was tried until it was answered.
type tries struct {
	sent, last, got judge.Moment
	unknown         int
}

// node is a client of any node.
func (a *actor) node() *client.Client { return a.clients[a.rng.IntN(len(a.clients))] }

// answer sends a request until it is answered.
func answer[Service, Req, Resp any](
	a *actor, of func(*client.Client) Service, method func(Service, context.Context, Req, ...grpc.CallOption) (Resp, error), req Req,
) (resp Resp, t tries, ok bool) {
	t.sent = a.rec.Now()
	for {
		t.last = a.rec.Now()
		ctx, cancel := context.WithTimeout(background, a.tryLimit)
		resp, err := method(of(a.node()), ctx, req, grpc.WaitForReady(len(a.clients) == 1))
		cancel()
		t.got = a.rec.Now()
		switch {
		case err == nil:
			return resp, t, true
		case !mayBeAnswered(err) || t.got-t.sent > answerLimit:
			a.t.Errorf("%s: %T: %v", a.name, req, err)
			return resp, t, false
		}
		t.unknown++
		a.unknown.Add(1)
		pause(upTo(a.rng, 10*time.Millisecond))
	}
}

// mayBeAnswered says whether a call that failed may be sent again: all of the load's
// may, whatever became of it.
func mayBeAnswered(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.DeadlineExceeded:
		return true
	}
	return false
}

// acquire asks for a permit, holds it for a moment and releases it.
func (a *actor) acquire() {
	req := &admitv1.AcquireRequest{Pool: pool, Tenant: a.tenant(), RequestId: a.id()}
	if a.rng.IntN(4) == 0 {
		req.MaxWait = durationpb.New(upTo(a.rng, 500*time.Millisecond) + time.Millisecond)
	}
	if a.rng.IntN(4) == 0 {
		req.LockKey = fmt.Sprintf("lock-%d", a.rng.IntN(2))
	}
	resp, t, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.Acquire, req)
	if !ok {
		return
	}
	p := resp.GetDecision().GetPermit()
	if p == nil {
		pause(upTo(a.rng, 20*time.Millisecond))
		return
	}
	a.answered(req.GetRequestId(), t, false, grantOf(p, nil))
	if a.rng.Float64() < askAgain {
		if resp, t, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.Acquire, req); ok {
			var again []judge.Grant
			if p := resp.GetDecision().GetPermit(); p != nil {
				again = append(again, grantOf(p, nil))
			}
			a.answered(req.GetRequestId(), t, false, again...)
		}
	}
	if a.rng.IntN(4) == 0 {
		a.renew(p.GetToken())
	}
	a.release(p.GetToken(), admitv1.Outcome_OUTCOME_DONE)
}

// renew extends a permit, which must be in force.
func (a *actor) renew(token string) {
	req := &admitv1.RenewRequest{Tokens: []string{token}}
	resp, _, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.Renew, req)
	if got := resp.GetResults(); ok && (len(got) != 1 || got[0].GetResult() != admitv1.LeaseResult_LEASE_RESULT_RENEWED) {
		a.t.Errorf("%s renewed a permit that it holds: %v", a.name, got)
	}
}

// claim asks for due entries and releases each with some outcome.
func (a *actor) claim() {
	req := &admitv1.NextDueRequest{
		Pool: pool, MaxItems: 1 + a.rng.Int32N(4), RequestId: a.id(),
		MaxWait: durationpb.New(100 * time.Millisecond),
	}
	resp, t, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.NextDue, req)
	if !ok || len(resp.GetClaims()) == 0 {
		return
	}
	a.answered(req.GetRequestId(), t, true, grantsOf(resp)...)
	if a.rng.Float64() < askAgain {
		if resp, t, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.NextDue, req); ok {
			a.answered(req.GetRequestId(), t, true, grantsOf(resp)...)
		}
	}
	for _, c := range resp.GetClaims() {
		a.release(c.GetPermit().GetToken(), a.outcome())
	}
}

func (a *actor) outcome() admitv1.Outcome {
	switch n := a.rng.IntN(100); {
	case n < 80:
		return admitv1.Outcome_OUTCOME_DONE
	case n < 92:
		return admitv1.Outcome_OUTCOME_FAILED
	default:
		return admitv1.Outcome_OUTCOME_NOT_STARTED
	}
}

func (a *actor) answered(requestID string, t tries, claims bool, gs ...judge.Grant) {
	a.rec.Answer(judge.Answer{RequestID: requestID, Sent: t.sent, LastSent: t.last, Got: t.got, Claims: claims, Grants: gs})
}

// release holds a permit for a moment more and gives it back, sometimes twice.
func (a *actor) release(token string, o admitv1.Outcome) {
	pause(upTo(a.rng, 20*time.Millisecond))
	req := &admitv1.ReleaseRequest{Token: token, Outcome: o}
	for {
		resp, t, ok := answer(a, (*client.Client).Admission, admitv1.AdmissionServiceClient.Release, req)
		if !ok {
			return
		}
		a.rec.Release(judge.Release{
			Token: token, Outcome: o, Sent: t.sent, LastSent: t.last, Got: t.got,
			Result: resp.GetResult(), Unknown: t.unknown,
		})
		if a.rng.Float64() >= askAgain {
			return
		}
	}
}

// schedule makes a few new entries, due now or soon.
func (a *actor) schedule() {
	req := &admitv1.ScheduleRequest{Pool: pool}
	for range 1 + a.rng.IntN(4) {
		e := &admitv1.EntrySpec{Tenant: a.tenant(), Key: a.id(), Route: fmt.Sprintf("route-%d", a.rng.IntN(3))}
		if a.rng.IntN(2) == 0 {
			e.Due = &admitv1.EntrySpec_DueIn{DueIn: durationpb.New(upTo(a.rng, 200*time.Millisecond))}
		}
		req.Entries = append(req.Entries, e)
	}
	resp, t, ok := answer(a, (*client.Client).DueWork, admitv1.DueWorkServiceClient.Schedule, req)
	if !ok {
		return
	}
	for i, r := range resp.GetResults() {
		e := req.GetEntries()[i]
		a.rec.Schedule(judge.Schedule{
			Tenant: e.GetTenant(), Key: e.GetKey(), Sent: t.sent, Got: t.got, Status: r.GetStatus(), Unknown: t.unknown,
		})
	}
	pause(upTo(a.rng, 40*time.Millisecond))
}

func grantsOf(resp *admitv1.NextDueResponse) []judge.Grant {
	var gs []judge.Grant
	for _, c := range resp.GetClaims() {
		gs = append(gs, grantOf(c.GetPermit(), c))
	}
	return gs
}

// grantOf is what a client was told of a permit and, if there is one, its claim.
func grantOf(p *admitv1.Permit, c *admitv1.Claim) judge.Grant {
	return judge.Grant{
		Token: p.GetToken(), Fence: p.GetFence(), Tenant: p.GetTenant(), TTL: p.GetExpiresIn().AsDuration(),
		Key: c.GetKey(), Attempt: c.GetAttempt(),
	}
}
