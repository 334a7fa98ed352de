package admission_test

import (
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// naiveReport is what waits in a queue elsewhere, until a time.
type naiveReport struct {
	backlog int64
	until   admission.Instant
}

// at is what a report says at a time.
func (r naiveReport) at(at admission.Instant) int64 {
	if at >= r.until {
		return 0
	}
	return r.backlog
}

// reported says whether anybody is reported to have demand.
func (p *naivePool) reported() bool {
	return slices.ContainsFunc(p.tenants, func(t *naiveTenant) bool {
		return slices.ContainsFunc(t.demands, func(d *naiveDemand) bool { return d.report.backlog > 0 })
	})
}

func (n *naive) reportDemand(op *admission.ReportDemand) *admission.ReportResult {
	p := n.pool(op.Pool)
	if p == nil {
		return &admission.ReportResult{Err: noPool(op.Pool)}
	}
	lane, err := p.laneOf(op.Tenant, op.Category)
	if err != nil {
		return &admission.ReportResult{Err: err}
	}
	n.note(p, op.Tenant, lane, op.Backlog, op.TTL)
	return &admission.ReportResult{}
}

// noteBacklog notes what waits behind an Acquire, unless one before it in the entry
// had its request id.
func (n *naive) noteBacklog(c *naiveContest, op *admission.Acquire, lane string) {
	twin := slices.ContainsFunc(c.asks, func(before *naiveAsk) bool {
		return op.RequestID != "" && before.op.RequestID == op.RequestID && before.op.Tenant == op.Tenant
	})
	if op.Backlog > 0 && !twin {
		n.note(c.pool, op.Tenant, lane, op.Backlog, 0)
	}
}

// note replaces what a tenant reported in a lane.
func (n *naive) note(p *naivePool, tenant, lane string, backlog int64, ttl time.Duration) {
	t := p.tenant(tenant)
	if n.full(p, tenant, lane) || backlog == 0 && t.demand(lane).report.backlog == 0 {
		return
	}
	t.demand(lane).report = naiveReport{backlog, n.t.Add(orElse(ttl, 5*time.Second))}
	if backlog > 0 {
		n.introduce(p, t)
	}
	n.touch(p, t)
}

// endReports drops the reports whose time is over.
func (n *naive) endReports(p *naivePool) {
	for _, t := range p.tenants {
		for _, d := range t.demands {
			if d.report.backlog > 0 && d.report.at(n.t) == 0 {
				d.report = naiveReport{}
				n.touch(p, t)
			}
		}
	}
}

// reported is what a demand has elsewhere that could be served but for the
// pool's own limits.
func (n *naive) reported(p *naivePool, d *naiveDemand, at admission.Instant) int64 {
	backlog := d.report.at(at)
	if backlog == 0 || ownLimit(n.ownLimits(p, d.tenant.id, d.lane, naiveWant{cost: 1}, at)) {
		return 0
	}
	return backlog
}

// kept are the slots that a grant has to leave free for what entitled tenants
// reported: in the lanes above, and in its own if it is borrowed.
func (n *naive) kept(p *naivePool, lane string, class int, at admission.Instant) int64 {
	var kept int64
	for _, t := range p.tenants {
		for _, d := range t.demands {
			if rank := p.rank(d.lane) - p.rank(lane); rank < 0 || rank == 0 && class == borrowing {
				kept += max(0, min(n.reported(p, d, at), n.entitlement(p, d)))
			}
		}
	}
	return kept
}
