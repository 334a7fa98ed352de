package server

import (
	"time"

	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	minWatch     = 100 * time.Millisecond
	maxWatch     = time.Minute
	defaultWatch = time.Second
	maxTop       = 100
	defaultTop   = 10
)

// sheddingRead is what of a picture was asked for.
type sheddingRead struct {
	pool   string
	filter admission.HeldFilter
}

func readGetShedding(in *admitv1.GetSheddingRequest) (sheddingRead, error) {
	c := newChecker()
	return sheddingRead{
		pool: c.name("pool", in.GetPool()),
		filter: admission.HeldFilter{
			Tenant: c.optional(c.identity, "tenant", in.GetTenant()),
			Lane:   c.optional(c.name, "lane", in.GetLane()),
			Reason: c.reason("reason", in.GetReason()),
		},
	}, c.err()
}

func readTopShed(in *admitv1.TopShedRequest) (q sheddingRead, n int, err error) {
	c := newChecker()
	n = c.orDefault("n", in.GetN(), maxTop, defaultTop)
	q = sheddingRead{
		pool: c.name("pool", in.GetPool()),
		filter: admission.HeldFilter{
			Lane:   c.optional(c.name, "lane", in.GetLane()),
			Reason: c.reason("reason", in.GetReason()),
		},
	}
	return q, n, c.err()
}

func readWatchShedding(in *admitv1.WatchSheddingRequest) (q admission.SheddingQuery, interval time.Duration, err error) {
	c := newChecker()
	q = admission.SheddingQuery{Pool: c.name("pool", in.GetPool()), HeldRows: defaultHeld}
	if in.HeldRows != nil {
		q.HeldRows = int(c.between("held_rows", int64(in.GetHeldRows()), 0, maxItems))
	}
	interval = c.duration("interval", in.GetInterval(), minWatch, maxWatch, defaultWatch)
	return q, interval, c.err()
}

// reason is one of the API's, or none.
func (c checker) reason(field string, v admitv1.Reason) admission.Reason {
	if v == admitv1.Reason_REASON_UNSPECIFIED {
		return admission.ReasonNone
	}
	for of, as := range reasons { //unordered: each is another one
		if as == v {
			return of
		}
	}
	c.fail(field, "is no reason")
	return admission.ReasonNone
}

func readExplain(in *admitv1.ExplainRequest) (*admission.ExplainQuery, error) {
	c := newChecker()
	if in.GetPermit() != "" {
		if in.GetKey() != "" {
			c.fail("permit", "goes without key")
		}
		return &admission.ExplainQuery{Permit: c.token("permit", in.GetPermit())}, c.err()
	}
	q := &admission.ExplainQuery{Request: admission.Acquire{
		Pool:      c.name("pool", in.GetPool()),
		Tenant:    c.identity("tenant", in.GetTenant()),
		Category:  c.text("category", in.GetCategory(), maxLabelBytes),
		Cost:      c.cost("cost", in.Cost, true),
		LockKey:   c.optional(c.identity, "lock_key", in.GetLockKey()),
		DedupeKey: c.optional(c.identity, "dedupe_key", in.GetDedupeKey()),
		RateOnly:  in.GetRateOnly(),
		RequestID: c.text("request_id", in.GetRequestId(), maxRequestID),
	}}
	q.Key = c.optional(c.identity, "key", in.GetKey())
	return q, c.err()
}

// readDebugPool returns the pool, and for how long it is to be logged.
func readDebugPool(in *admitv1.DebugPoolRequest) (pool string, span time.Duration, err error) {
	c := newChecker()
	pool = c.name("pool", in.GetPool())
	return pool, c.duration("duration", in.GetDuration(), 0, maxDebugTime, defaultDebugTime), c.err()
}
