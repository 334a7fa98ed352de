package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/admission"
)

// Report is what came of a workload. Times are texts such as 1.5s.
type Report struct {
	Span string `json:"span" yaml:"span"`
	Jobs int64  `json:"jobs" yaml:"jobs"`
	Done int64  `json:"done" yaml:"done"`
	Dead int64  `json:"dead" yaml:"dead"`
	Lost int64  `json:"lost_permits" yaml:"lost_permits"`
	// Applies are the log entries, ticks those among them that only let time pass.
	Applies int64        `json:"applies" yaml:"applies"`
	Ticks   int64        `json:"ticks" yaml:"ticks"`
	Pools   []PoolReport `json:"pools" yaml:"pools"`
	Checks  []Check      `json:"checks" yaml:"checks"`
}

// PoolReport is one pool's part. Jain is absent where nobody contended.
type PoolReport struct {
	Pool            string         `json:"pool" yaml:"pool"`
	Grants          int64          `json:"grants" yaml:"grants"`
	IdleSlotTime    string         `json:"idle_slot_time" yaml:"idle_slot_time"`
	UnaskedSlotTime string         `json:"unasked_slot_time" yaml:"unasked_slot_time"`
	Jain            *float64       `json:"jain,omitempty" yaml:"jain,omitempty"`
	Lanes           []LaneReport   `json:"lanes" yaml:"lanes"`
	Buckets         []BucketReport `json:"buckets" yaml:"buckets"`
	// Held is how many pairs of tenant and lane each reason held at most.
	Held    []Count        `json:"held_at_most" yaml:"held_at_most"`
	Tenants []TenantReport `json:"tenants" yaml:"tenants"`
	// Others sums the tenants that are not listed.
	Others *TenantReport `json:"others,omitempty" yaml:"others,omitempty"`
}

// LaneReport is one lane's part.
type LaneReport struct {
	Lane          string `json:"lane" yaml:"lane"`
	Grants        int64  `json:"grants" yaml:"grants"`
	WaitP50       string `json:"wait_p50" yaml:"wait_p50"`
	WaitP99       string `json:"wait_p99" yaml:"wait_p99"`
	WaitMax       string `json:"wait_max" yaml:"wait_max"`
	YieldSwitches int64  `json:"yield_switches" yaml:"yield_switches"`
}

// BucketReport is how much a POOL bucket gave, as a part of what it could.
type BucketReport struct {
	Bucket string  `json:"bucket" yaml:"bucket"`
	Taken  int64   `json:"taken" yaml:"taken"`
	Use    float64 `json:"use" yaml:"use"`
}

// Count is how often a reason was given.
type Count struct {
	Reason string `json:"reason" yaml:"reason"`
	N      int64  `json:"n" yaml:"n"`
}

// TenantReport is one tenant's part, or that of several.
type TenantReport struct {
	Tenant string `json:"tenant" yaml:"tenant"`
	// Tenants is how many it sums.
	Tenants int   `json:"tenants,omitempty" yaml:"tenants,omitempty"`
	Weight  int64 `json:"weight" yaml:"weight"`
	Grants  int64 `json:"grants" yaml:"grants"`
	// Share is its part of the pool's grants, WeightShare that of its weight.
	Share       float64 `json:"share" yaml:"share"`
	WeightShare float64 `json:"weight_share" yaml:"weight_share"`
	// Served is what it got over what its weight gave it while others contended;
	// absent where nobody did.
	Served  *float64 `json:"served,omitempty" yaml:"served,omitempty"`
	WaitP50 string   `json:"wait_p50" yaml:"wait_p50"`
	WaitP99 string   `json:"wait_p99" yaml:"wait_p99"`
	Left    int64    `json:"left" yaml:"left"`
	Sheds   []Count  `json:"sheds" yaml:"sheds"`
}

// Breaches returns the checks that do not hold.
func (r *Report) Breaches() []Check {
	return slices.DeleteFunc(slices.Clone(r.Checks), func(c Check) bool { return c.Holds })
}

// report sums the run up, with the first top tenants of each pool.
func (r *run) report(top int) *Report {
	out := &Report{
		Span: shortSpan(time.Duration(r.now)), Jobs: r.counts.jobs, Lost: r.counts.lost,
		Applies: r.counts.applies, Ticks: r.counts.ticks,
	}
	for _, s := range r.sources {
		out.Done += s.done
		out.Dead += s.dead
	}
	for _, l := range r.ledgers {
		out.Pools = append(out.Pools, r.pool(l, top))
	}
	for _, e := range r.w.expect {
		out.Checks = append(out.Checks, e.check(r))
	}
	return out
}

func (r *run) pool(l *ledger, top int) PoolReport {
	of := selector{pool: l.name}
	p := PoolReport{
		Pool: l.name, Grants: int64(checks["grants"].measure(r, of)),
		IdleSlotTime:    unitDuration.write(checks["idle_slot_time"].measure(r, of)),
		UnaskedSlotTime: unitDuration.write(checks["unasked_slot_time"].measure(r, of)),
		Jain:            rounded(jain(r, of)), Held: counted(l.peaks),
	}
	for _, ln := range l.lanes {
		p.Lanes = append(p.Lanes, r.lane(ln))
	}
	for i, b := range l.policy.Buckets {
		if b.Scope == admission.ScopePool {
			use := rounded(bucketUse(r, selector{pool: l.name, bucket: b.Name}))
			if use == nil {
				continue
			}
			p.Buckets = append(p.Buckets, BucketReport{Bucket: b.Name, Taken: l.taken[i], Use: *use})
		}
	}
	p.Tenants, p.Others = r.tenantRows(l, p.Grants, top)
	return p
}

func (r *run) lane(ln *lane) LaneReport {
	waits := r.waits(selector{pool: ln.ledger.name, lane: ln.name})
	return LaneReport{
		Lane: ln.name, Grants: int64(len(waits)), YieldSwitches: ln.switches,
		WaitP50: shortSpan(waits.quantile(0.5)), WaitP99: shortSpan(waits.quantile(0.99)), WaitMax: shortSpan(waits.quantile(1)),
	}
}

// tenantRows returns a row for each of the tenants with the most grants, and one
// for all others.
func (r *run) tenantRows(l *ledger, grants int64, top int) ([]TenantReport, *TenantReport) {
	byTenant := map[*tenant][]*source{}
	var tenants []*tenant
	weights := int64(0)
	for _, s := range r.sources {
		t := s.want.tenant
		if t.ledger != l || s.jobs == 0 {
			continue
		}
		if byTenant[t] == nil {
			tenants = append(tenants, t)
			weights += t.weight
		}
		byTenant[t] = append(byTenant[t], s)
	}
	slices.SortStableFunc(tenants, func(a, b *tenant) int { return cmp.Compare(granted(byTenant[b]), granted(byTenant[a])) })
	rows := []TenantReport{}
	var rest []*tenant
	for i, t := range tenants {
		if i >= top {
			rest = append(rest, t)
			continue
		}
		rows = append(rows, tenantRow([]*tenant{t}, byTenant, grants, weights))
	}
	if len(rest) == 0 {
		return rows, nil
	}
	others := tenantRow(rest, byTenant, grants, weights)
	others.Tenant, others.Tenants = fmt.Sprintf("%d others", len(rest)), len(rest)
	return rows, &others
}

func granted(sources []*source) int64 {
	n := int64(0)
	for _, s := range sources {
		n += s.grants
	}
	return n
}

func tenantRow(tenants []*tenant, sources map[*tenant][]*source, grants, weights int64) TenantReport {
	row := TenantReport{Tenant: tenants[0].id}
	var waits durations
	got, due := 0.0, 0.0
	sheds := map[admission.Reason]int64{}
	for _, t := range tenants {
		row.Weight += t.weight
		for _, w := range t.wants {
			if w != nil {
				d, _ := w.duePart()
				got, due = got+float64(w.service.got), due+d
			}
		}
		for _, s := range sources[t] {
			row.Grants += s.grants
			row.Left += s.jobs - s.done - s.dead
			waits = append(waits, s.waits...)
			for why, n := range s.sheds {
				sheds[why] += n
			}
		}
	}
	row.Share, row.WeightShare = part(row.Grants, grants), part(row.Weight, weights)
	row.Served = rounded(got / due)
	row.WaitP50, row.WaitP99 = shortSpan(waits.quantile(0.5)), shortSpan(waits.quantile(0.99))
	row.Sheds = counted(sheds)
	return row
}

// counted returns counts in the order of the reasons.
func counted(n map[admission.Reason]int64) []Count {
	rows := []Count{}
	for why := admission.ReasonNone; why.String() != "UNKNOWN"; why++ {
		if n[why] > 0 {
			rows = append(rows, Count{why.String(), n[why]})
		}
	}
	return rows
}

// shortSpan writes a time as it is read best: to a thousandth of its first unit.
func shortSpan(d time.Duration) string {
	unit := time.Duration(1)
	for _, u := range []time.Duration{time.Microsecond, time.Millisecond, time.Second} {
		if d >= u {
			unit = u
		}
	}
	return strings.Replace(d.Round(max(unit/1000, 1)).String(), "µ", "u", 1)
}
