package server

import (
	"github.com/admitd/admit/admission"
	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

func readGetEntry(in *admitv1.GetEntryRequest) (pool, tenant, key string, err error) {
	c := newChecker()
	pool, tenant, key = c.name("pool", in.GetPool()), c.identity("tenant", in.GetTenant()), c.identity("key", in.GetKey())
	return pool, tenant, key, c.err()
}

// deadListing is a page of dead entries that was asked for.
type deadListing struct {
	pool   string
	filter admission.DeadFilter
	after  admission.DeadPlace
	size   int
}

func readListDead(in *admitv1.ListDeadRequest) (deadListing, error) {
	c := newChecker()
	l := deadListing{
		pool:   c.name("pool", in.GetPool()),
		filter: c.deadFilter(in.GetFilter()),
		size:   c.orDefault("page_size", in.GetPageSize(), maxItems, defaultPage),
	}
	l.after = c.deadPage("page_token", in.GetPageToken(), l.pool, l.filter)
	return l, c.err()
}

func readRedrive(in *admitv1.RedriveRequest) (*admission.Redrive, error) {
	c := newChecker()
	op := &admission.Redrive{
		Pool:      c.name("pool", in.GetPool()),
		Filter:    c.deadFilter(in.GetFilter()),
		Limit:     c.orDefault("limit", in.GetLimit(), admission.MaxRedrive, defaultPage),
		PerSecond: c.between("per_second", int64(in.GetPerSecond()), 0, maxPerSecond),
	}
	op.From = c.cursor(redriveKind, "page_token", in.GetPageToken(), op.Pool, op.Filter)
	return op, c.err()
}

func readPurgeDead(in *admitv1.PurgeDeadRequest) (*admission.PurgeDead, error) {
	c := newChecker()
	op := &admission.PurgeDead{
		Pool:   c.name("pool", in.GetPool()),
		Filter: c.deadFilter(in.GetFilter()),
		Limit:  c.orDefault("limit", in.GetLimit(), admission.MaxRedrive, defaultPage),
	}
	op.From = c.cursor(purgeKind, "page_token", in.GetPageToken(), op.Pool, op.Filter)
	return op, c.err()
}

func (c checker) deadFilter(in *admitv1.DeadFilter) admission.DeadFilter {
	f := admission.DeadFilter{
		Tenant:    c.optional(c.identity, "filter.tenant", in.GetTenant()),
		Lane:      c.optional(c.name, "filter.lane", in.GetLane()),
		KeyPrefix: c.optional(c.identity, "filter.key_prefix", in.GetKeyPrefix()),
	}
	switch in.GetOutcome() {
	case admitv1.Outcome_OUTCOME_UNSPECIFIED:
	case admitv1.Outcome_OUTCOME_FAILED:
		f.Outcome = admission.OutcomeFailed
	case admitv1.Outcome_OUTCOME_DEAD:
		f.Outcome = admission.OutcomeDead
	case admitv1.Outcome_OUTCOME_EXPIRED:
		f.Outcome = admission.OutcomeExpired
	default:
		c.fail("filter.outcome", "is %s, must be FAILED, DEAD or EXPIRED", in.GetOutcome())
	}
	return f
}
