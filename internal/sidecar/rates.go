package sidecar

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	// maxNameBytes bounds worker_id, and maxWait the time in line: what is beyond is the
	// cluster's to refuse.
	maxNameBytes = 128
	maxWait      = time.Minute
	// silentFor is how long a node may be silent before a request is let through, where
	// the policy says so.
	silentFor = 3 * time.Second
)

// rates answers requests for tokens alone: from a share where one has so many, else with
// what the cluster says, and where that says nothing as the policy says.
type rates struct {
	up      *upstream
	book    *shareBook
	gate    *gate
	health  *healthReporter
	metrics *metrics
}

// ofRate says whether a request may be granted from a share: it takes tokens alone, and
// asks for nothing else that the cluster would note, check or answer.
func ofRate(r *admitv1.AcquireRequest) bool {
	return r.GetRateOnly() && !r.GetSettle() && !r.GetDryRun() && r.GetRequestId() == "" && r.GetBacklog() == 0 &&
		r.GetLockKey() == "" && r.GetDedupeKey() == "" && r.Ttl == nil && r.IssuedAt == nil &&
		len(r.GetWorkerId()) <= maxNameBytes && costOf(r) >= 1 && costOf(r) <= maxShareTokens &&
		(r.MaxWait == nil || r.GetMaxWait().IsValid() && r.GetMaxWait().AsDuration() >= 0 && r.GetMaxWait().AsDuration() <= maxWait)
}

func costOf(r *admitv1.AcquireRequest) int64 {
	if r.Cost == nil {
		return 1
	}
	return r.GetCost()
}

func keyOf(r *admitv1.AcquireRequest) shareKey {
	return shareKey{r.GetPool(), r.GetTenant(), r.GetCategory()}
}

// passes is the answer to a request that is granted here.
func passes(r *admitv1.AcquireRequest, lane string, source admitv1.DecisionSource) *admitv1.AcquireResponse {
	return &admitv1.AcquireResponse{Source: source, Decision: &admitv1.Decision{Outcome: &admitv1.Decision_Permit{Permit: &admitv1.Permit{
		Pool: r.GetPool(), Tenant: r.GetTenant(), Lane: lane, State: admitv1.PermitState_PERMIT_STATE_SPENT,
	}}}}
}

// take grants a request from a share; nil where there is none with so many tokens, and
// what to do then if no node decides.
func (s *rates) take(r *admitv1.AcquireRequest) (*admitv1.AcquireResponse, admitv1.TokenShare_OnLoss) {
	got := s.book.take(keyOf(r), costOf(r))
	if !got.granted {
		return nil, got.onLoss
	}
	s.metrics.fromShare.Inc()
	return passes(r, got.lane, admitv1.DecisionSource_DECISION_SOURCE_SHARE), got.onLoss
}

// fallBack grants a request that no node decides, where the policy says so; else it
// returns the error.
func (s *rates) fallBack(r *admitv1.AcquireRequest, onLoss admitv1.TokenShare_OnLoss, err error) (*admitv1.AcquireResponse, error) {
	if onLoss == admitv1.TokenShare_ON_LOSS_UNSPECIFIED { // not known
		return nil, err
	}
	s.metrics.fallbacks.WithLabelValues(onLoss.String()).Inc()
	lane, ok := s.book.pass(keyOf(r), costOf(r))
	if !ok {
		return nil, err
	}
	s.metrics.fromFallback.Inc()
	return passes(r, lane, admitv1.DecisionSource_DECISION_SOURCE_FALLBACK), nil
}

func survives(l admitv1.TokenShare_OnLoss) bool {
	return l == admitv1.TokenShare_OPEN || l == admitv1.TokenShare_SAFE
}

// acquire answers one request.
func (s *rates) acquire(ctx context.Context, in *admitv1.AcquireRequest) (resp *admitv1.AcquireResponse, err error) {
	resp, onLoss := s.take(in)
	if resp != nil {
		return resp, nil
	}
	err = s.reach(ctx, survives(onLoss), in.GetMaxWait().AsDuration(), func(ctx context.Context) (err error) {
		resp, err = s.up.acquireOnce(ctx, in)
		return err
	})
	if err != nil && s.lost(ctx, err) {
		return s.fallBack(in, onLoss, err)
	}
	if resp.GetDecision().GetPermit() != nil {
		s.metrics.fromCluster.Inc()
	}
	return resp, err
}

// reach makes a call to the cluster. One whose failure may be made good for ends as soon
// as it is known that no node decides, or a node has been silent for too long before the
// worker's own deadline.
func (s *rates) reach(ctx context.Context, impatient bool, wait time.Duration, ask func(context.Context) error) error {
	if !impatient {
		return ask(ctx)
	}
	deciding := s.health.deciding()
	if deciding.Err() != nil {
		return errNoLeader
	}
	patience := silentFor + wait
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)*4/5)
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	defer context.AfterFunc(deciding, cancel)()
	err := ask(asking)
	if err != nil && asking.Err() != nil && ctx.Err() == nil {
		return errNoAnswer
	}
	return err
}

// lost says whether a call failed because no node that decides was reached.
func (s *rates) lost(ctx context.Context, err error) bool {
	if ctx.Err() != nil || s.gate.closing.Err() != nil {
		return false
	}
	code := status.Code(err)
	return code == codes.Unavailable || code == codes.DeadlineExceeded || reasonOf(err) == reasonOutcomeUnknown
}

// batch answers requests of which some may be granted here; the others are asked for in
// one call. Where that fails so does the batch, unless each of them is let through; the
// tokens that were taken for it are spent.
func (s *rates) batch(
	ctx context.Context, in *admitv1.BatchAcquireRequest,
	ask func(context.Context, *admitv1.BatchAcquireRequest) (*admitv1.BatchAcquireResponse, error),
) (*admitv1.BatchAcquireResponse, error) {
	b := tokenBatch{results: make([]*admitv1.BatchAcquireResult, len(in.GetRequests())), survives: true}
	for i, r := range in.GetRequests() {
		s.begin(&b, i, r)
	}
	if len(b.places) > 0 {
		if b.survives {
			ask = s.up.batchAcquireOnce
		}
		var resp *admitv1.BatchAcquireResponse
		err := s.reach(ctx, b.survives, b.wait, func(ctx context.Context) (err error) {
			resp, err = ask(ctx, &admitv1.BatchAcquireRequest{Requests: b.rest})
			return err
		})
		if err != nil && b.survives && s.lost(ctx, err) {
			resp, err = s.fallBackAll(&b, err)
		} else {
			s.countCluster(b.rest, resp)
		}
		if err != nil {
			return nil, err
		}
		for n, r := range resp.GetResults()[:min(len(b.places), len(resp.GetResults()))] {
			b.results[b.places[n]] = r
		}
	}
	return &admitv1.BatchAcquireResponse{Results: b.results}, nil
}

// tokenBatch is a batch under way: what is granted here, and what is left to be asked
// for, at which places.
type tokenBatch struct {
	results []*admitv1.BatchAcquireResult
	rest    []*admitv1.AcquireRequest
	places  []int
	onLoss  []admitv1.TokenShare_OnLoss
	// survives says that all that is left may be let through, wait is its longest.
	survives bool
	wait     time.Duration
}

// begin grants a request of a batch from a share, or leaves it to be asked for.
func (s *rates) begin(b *tokenBatch, place int, r *admitv1.AcquireRequest) {
	var onLoss admitv1.TokenShare_OnLoss
	if ofRate(r) {
		var resp *admitv1.AcquireResponse
		if resp, onLoss = s.take(r); resp != nil {
			b.results[place] = answered(resp)
			return
		}
	}
	b.survives, b.wait = b.survives && survives(onLoss), max(b.wait, r.GetMaxWait().AsDuration())
	b.rest, b.places, b.onLoss = append(b.rest, r), append(b.places, place), append(b.onLoss, onLoss)
}

// fallBackAll lets all of a batch through that no node decides, or returns the error.
func (s *rates) fallBackAll(b *tokenBatch, err error) (*admitv1.BatchAcquireResponse, error) {
	out := &admitv1.BatchAcquireResponse{}
	for i, r := range b.rest {
		let, err := s.fallBack(r, b.onLoss[i], err)
		if err != nil {
			return nil, err
		}
		out.Results = append(out.Results, answered(let))
	}
	return out, nil
}

// countCluster counts what the cluster granted of a batch.
func (s *rates) countCluster(asked []*admitv1.AcquireRequest, resp *admitv1.BatchAcquireResponse) {
	for i, r := range resp.GetResults() {
		if i < len(asked) && ofRate(asked[i]) && r.GetResponse().GetDecision().GetPermit() != nil {
			s.metrics.fromCluster.Inc()
		}
	}
}

func answered(resp *admitv1.AcquireResponse) *admitv1.BatchAcquireResult {
	return &admitv1.BatchAcquireResult{Result: &admitv1.BatchAcquireResult_Response{Response: resp}}
}
