package server

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
	"github.com/admitd/admit/raftstore"
)

func readAcquire(in *admitv1.AcquireRequest) (raftstore.Request, error) {
	c := newChecker()
	return c.acquireRequest(in), c.err()
}

func (c checker) acquireRequest(in *admitv1.AcquireRequest) raftstore.Request {
	return raftstore.Request{Op: c.acquire(in), DryRun: in.GetDryRun()}
}

func (c checker) acquire(in *admitv1.AcquireRequest) *admission.Acquire {
	op := &admission.Acquire{
		Pool:      c.name("pool", in.GetPool()),
		Tenant:    c.identity("tenant", in.GetTenant()),
		Category:  c.text("category", in.GetCategory(), maxLabelBytes),
		Cost:      c.cost("cost", in.Cost, in.GetDryRun()),
		TTL:       c.ttl("ttl", in.GetTtl()),
		MaxWait:   c.duration("max_wait", in.GetMaxWait(), 0, maxWait, 0),
		LockKey:   c.optional(c.identity, "lock_key", in.GetLockKey()),
		DedupeKey: c.optional(c.identity, "dedupe_key", in.GetDedupeKey()),
		RequestID: c.text("request_id", in.GetRequestId(), maxRequestID),
		IssuedAt:  c.issued("issued_at", in.GetIssuedAt()),
		RateOnly:  in.GetRateOnly(),
		Settle:    in.GetSettle(),
		Backlog:   c.between("backlog", in.GetBacklog(), 0, maxCost),
		WorkerID:  c.text("worker_id", in.GetWorkerId(), maxLabelBytes),
	}
	c.lease(op)
	return op
}

// lease checks that there is a lease for what needs one.
func (c checker) lease(op *admission.Acquire) {
	switch {
	case op.Settle && !op.RateOnly:
		c.fail("settle", "goes with rate_only only")
	case op.RateOnly && !op.Settle && op.LockKey != "":
		c.fail("lock_key", "needs settle beside rate_only: nothing would hold the lock")
	case op.RateOnly && !op.Settle && op.DedupeKey != "":
		c.fail("dedupe_key", "needs settle beside rate_only: nothing would say that the job is done")
	}
}

func readBatchAcquire(in *admitv1.BatchAcquireRequest) ([]raftstore.Request, error) {
	c := newChecker()
	if !c.count("requests", len(in.GetRequests()), maxItems) {
		return nil, c.err()
	}
	reqs := make([]raftstore.Request, len(in.GetRequests()))
	for i, r := range in.GetRequests() {
		reqs[i] = c.in("requests", i).acquireRequest(r)
	}
	return reqs, c.err()
}

func readReportDemand(in *admitv1.ReportDemandRequest) (*admission.ReportDemand, error) {
	c := newChecker()
	op := &admission.ReportDemand{
		Pool:     c.name("pool", in.GetPool()),
		Tenant:   c.identity("tenant", in.GetTenant()),
		Category: c.text("category", in.GetCategory(), maxLabelBytes),
		Backlog:  c.between("backlog", in.GetBacklog(), 0, maxCost),
		TTL:      c.duration("ttl", in.GetTtl(), minReport, maxReport, 0),
	}
	return op, c.err()
}

func readRenew(in *admitv1.RenewRequest) (*admission.Renew, error) {
	c := newChecker()
	if !c.count("tokens", len(in.GetTokens()), maxItems) {
		return nil, c.err()
	}
	op := &admission.Renew{
		Tokens: make([]admission.Token, len(in.GetTokens())),
		TTL:    c.ttl("ttl", in.GetTtl()),
	}
	for i, t := range in.GetTokens() {
		op.Tokens[i] = c.token("tokens["+strconv.Itoa(i)+"]", t)
	}
	return op, c.err()
}

func readRelease(in *admitv1.ReleaseRequest) (*admission.Release, error) {
	c := newChecker()
	return c.release(in), c.err()
}

func readBatchRelease(in *admitv1.BatchReleaseRequest) ([]raftstore.Request, error) {
	c := newChecker()
	if !c.count("requests", len(in.GetRequests()), maxItems) {
		return nil, c.err()
	}
	reqs := make([]raftstore.Request, len(in.GetRequests()))
	for i, r := range in.GetRequests() {
		reqs[i].Op = c.in("requests", i).release(r)
	}
	return reqs, c.err()
}

func (c checker) release(in *admitv1.ReleaseRequest) *admission.Release {
	op := &admission.Release{
		Token:      c.token("token", in.GetToken()),
		Outcome:    c.outcome("outcome", in.GetOutcome()),
		ActualCost: admission.Absent,
		RetryAfter: c.duration("retry_after", in.GetRetryAfter(), 0, maxDelay, admission.Absent),
		Bucket:     c.optional(c.name, "bucket", in.GetBucket()),
	}
	if in.ActualCost != nil {
		op.ActualCost = c.between("actual_cost", in.GetActualCost(), 0, maxCost)
	}
	op.Miss = c.finding("result", in.GetResult())
	if in.GetResult() != admitv1.Finding_FINDING_UNSPECIFIED && op.Outcome != admission.OutcomeDone {
		c.fail("result", "goes with outcome DONE only")
	}
	if op.Outcome != admission.OutcomeThrottled {
		if in.GetRetryAfter() != nil {
			c.fail("retry_after", "goes with outcome THROTTLED only")
		}
		if in.GetBucket() != "" {
			c.fail("bucket", "goes with outcome THROTTLED only")
		}
	}
	return op
}

// finding says whether the work found nothing.
func (c checker) finding(field string, f admitv1.Finding) (miss bool) {
	switch f {
	case admitv1.Finding_FINDING_UNSPECIFIED, admitv1.Finding_FINDING_HIT, admitv1.Finding_FINDING_MISS:
		return f == admitv1.Finding_FINDING_MISS
	}
	c.fail(field, "is %d, which is not a Finding", int32(f))
	return false
}

func (c checker) outcome(field string, o admitv1.Outcome) admission.Outcome {
	switch o {
	case admitv1.Outcome_OUTCOME_UNSPECIFIED, admitv1.Outcome_OUTCOME_DONE:
		return admission.OutcomeDone
	case admitv1.Outcome_OUTCOME_FAILED:
		return admission.OutcomeFailed
	case admitv1.Outcome_OUTCOME_THROTTLED:
		return admission.OutcomeThrottled
	case admitv1.Outcome_OUTCOME_NOT_STARTED:
		return admission.OutcomeNotStarted
	case admitv1.Outcome_OUTCOME_DEAD:
		return admission.OutcomeDead
	default:
		c.fail(field, "is %d, which is not an Outcome", int32(o))
		return admission.OutcomeDone
	}
}

// readNextDue returns the poll and how long it may be held open. That this ends
// before the deadline of the call is the business of the store.
func readNextDue(in *admitv1.NextDueRequest) (raftstore.Request, time.Duration, error) {
	c := newChecker()
	op := &admission.NextDue{
		Pool:      c.name("pool", in.GetPool()),
		MaxItems:  c.orDefault("max_items", in.GetMaxItems(), maxItems, 1),
		TTL:       c.ttl("ttl", in.GetTtl()),
		WorkerID:  c.text("worker_id", in.GetWorkerId(), maxLabelBytes),
		RequestID: c.text("request_id", in.GetRequestId(), maxRequestID),
		Lanes:     c.lanes("lanes", in.GetLanes()),
		Tenant:    c.optional(c.identity, "tenant", in.GetTenant()),
	}
	op.LaneLimits = c.laneLimits("lane_limits", in.GetLaneLimits())
	op.Batch = in.GetBatch()
	op.Node = c.node("node", in.GetNode())
	wait := c.duration("max_wait", in.GetMaxWait(), 0, maxWait, 0)
	held := c.orDefault("held_rows", in.GetHeldRows(), maxItems, defaultHeld)
	return raftstore.Request{Op: op, HeldRows: held}, wait, c.err()
}

func (c checker) lanes(field string, lanes []string) []string {
	if len(lanes) > maxLanes {
		c.fail(field, "has %d items, a pool has at most %d lanes", len(lanes), maxLanes)
		return nil
	}
	for i, l := range lanes {
		c.name(field+"["+strconv.Itoa(i)+"]", l)
	}
	return lanes
}

func (c checker) laneLimits(field string, limits map[string]int64) map[string]int64 {
	if len(limits) > maxLanes {
		c.fail(field, "has %d items, a pool has at most %d lanes", len(limits), maxLanes)
		return nil
	}
	for _, lane := range slices.Sorted(maps.Keys(limits)) {
		at := field + "[" + c.name(field, lane) + "]"
		c.between(at, limits[lane], 0, maxItems)
	}
	return limits
}

// node is a machine's part of a fleet's work.
func (c checker) node(field string, n *admitv1.NodeShare) admission.Node {
	if n == nil {
		return admission.Node{}
	}
	if n.GetId() == "" {
		c.fail(field+".id", "is required")
	}
	return admission.Node{
		ID:    c.text(field+".id", n.GetId(), maxLabelBytes),
		Owned: c.between(field+".owned", n.GetOwned(), 1, max(n.GetTotal(), 1)),
		Total: c.between(field+".total", n.GetTotal(), 1, maxNodeParts),
	}
}
