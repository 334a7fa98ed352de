package admission

import "time"

// defaultReportTTL is how long a report of demand holds.
const defaultReportTTL = 5 * time.Second

// reportEnd is a demand's key in pool.reports.
type reportEnd struct {
	at     Instant
	demand *demand
}

func reportLess(a, b reportEnd) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return demandLess(a.demand, b.demand)
}

// reportDemand notes what waits in a queue elsewhere.
func (s *State) reportDemand(op *ReportDemand) *ReportResult {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return &ReportResult{Err: poolNotFound(op.Pool)}
	}
	t := p.tenant(op.Tenant)
	lane, err := t.laneFor(op.Category)
	if err != nil {
		return &ReportResult{Err: err}
	}
	s.report(t.demand(lane), op.Backlog, op.TTL)
	return &ReportResult{}
}

// report sets what is reported of the demand. One of a tenant that can't be
// registered counts for nothing.
func (s *State) report(d *demand, backlog int64, ttl time.Duration) {
	if !d.tenant.mayRegister(d.lane, s.t) {
		return
	}
	if backlog == 0 && (d.row == nil || d.row.reported == 0) {
		return // as it was
	}
	s.registerDemand(d)
	until := Instant(0)
	if backlog > 0 {
		until = s.t.Add(firstOf(ttl, defaultReportTTL))
	}
	s.setReport(d, backlog, until)
}

func (s *State) setReport(d *demand, backlog int64, until Instant) {
	row := s.writeDemand(d)
	t := d.tenant
	if row.reported != 0 {
		t.pool.reports.Delete(reportEnd{row.reported, d})
		t.reports--
	}
	row.backlog, row.reported = backlog, until
	if until != 0 {
		t.pool.reports.Set(reportEnd{until, d})
		t.reports++
	}
	s.unsettle(d)
	s.noteIdle(t)
}

// reportLimit bounds the reports that end in one entry; the next goes on.
const reportLimit = 2000

// endReports drops the reports whose time is over.
func (s *State) endReports(p *pool) {
	for range reportLimit {
		next, ok := p.reports.Min()
		if !ok || next.at > s.t {
			return
		}
		s.setReport(next.demand, 0, 0)
	}
}
