package simulate

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/admitd/admit/admission"
)

var bySource = []string{"pool", "lane", "stream", "tenant"}

// checks are the kinds of expectations by name.
var checks = map[string]*check{
	"wait_p50": {unit: unitDuration, fields: bySource, measure: waitQuantile(0.5)},
	"wait_p99": {unit: unitDuration, fields: bySource, measure: waitQuantile(0.99)},
	"wait_max": {unit: unitDuration, fields: bySource, measure: waitQuantile(1)},
	"grants": {unit: unitCount, fields: bySource, measure: func(r *run, of selector) float64 {
		return r.sum(of, func(s *source) int64 { return s.grants })
	}},
	"sheds": {unit: unitCount, fields: append([]string{"reason"}, bySource...), measure: func(r *run, of selector) float64 {
		return r.sum(of, func(s *source) int64 { return s.shed(of.reason) })
	}},
	"left": {unit: unitCount, fields: bySource, measure: func(r *run, of selector) float64 {
		return r.sum(of, func(s *source) int64 { return s.jobs - s.done - s.dead })
	}},
	"lost": {unit: unitCount, fields: bySource, measure: func(r *run, of selector) float64 {
		return r.sum(of, func(s *source) int64 { return s.lost })
	}},
	"share":             {unit: unitPart, fields: bySource, measure: share},
	"grants_apart":      {unit: unitCount, fields: bySource, measure: grantsApart},
	"jain":              {unit: unitPart, fields: []string{"pool", "lane"}, measure: jain},
	"idle_slot_time":    {unit: unitDuration, fields: []string{"pool"}, measure: slotTime(func(i *idleTime) float64 { return i.slots })},
	"unasked_slot_time": {unit: unitDuration, fields: []string{"pool"}, measure: slotTime(func(i *idleTime) float64 { return i.unasked })},
	"yield_switches":    {unit: unitCount, fields: []string{"pool", "lane"}, measure: yieldSwitches},
	"bucket_use":        {unit: unitPart, fields: []string{"pool", "bucket"}, measure: bucketUse},
	"recovery_max": {unit: unitDuration, measure: func(r *run, _ selector) float64 {
		if len(r.counts.recovered) == 0 {
			return math.NaN()
		}
		return float64(slices.Max(r.counts.recovered))
	}},
	"hindered_by": {unit: unitCount, fields: []string{"streams"}, measure: hindrance},

	"fair_bound":     {prepare: watchPairs, law: fairBound},
	"entitled_first": {prepare: watchPromises, law: entitledFirst},
	"reclaim_bound":  {prepare: watchPromises, law: reclaimBound},
	"bucket_bound":   {law: bucketBound},
}

func waitQuantile(q float64) func(*run, selector) float64 {
	return func(r *run, of selector) float64 {
		waits := r.waits(of)
		if len(waits) == 0 {
			return math.NaN()
		}
		return float64(waits.quantile(q))
	}
}

// shed counts refusals for one reason, or all.
func (s *source) shed(reason admission.Reason) int64 {
	n := int64(0)
	for why, count := range s.sheds {
		if reason == admission.ReasonNone || why == reason {
			n += count
		}
	}
	return n
}

// share is the part of all grants of the pool.
func share(r *run, of selector) float64 {
	granted := func(s *source) int64 { return s.grants }
	return r.sum(of, granted) / r.sum(selector{pool: of.pool}, granted) // NaN without any
}

// grantsApart is by how much the grants of tenants differ at most.
func grantsApart(r *run, of selector) float64 {
	got := map[*tenant]int64{}
	for _, s := range r.picked(of) {
		got[s.want.tenant] += s.grants
	}
	if len(got) < 2 {
		return math.NaN()
	}
	least, most := int64(math.MaxInt64), int64(0)
	for _, n := range got {
		least, most = min(least, n), max(most, n)
	}
	return float64(most - least)
}

// fewest is the least that must have been due to a tenant by weight for Jain's
// index to count it: below, whole grants are too coarse to divide. Of all that was
// granted while some contended it must have contended for the part throughout.
const (
	fewest     = 10
	throughout = 0.9
)

// jain is Jain's index of what those who contended throughout got over what was
// due to them by weight: 1 where everybody got the same part.
func jain(r *run, of selector) float64 {
	n, sum, squares := 0.0, 0.0, 0.0
	for _, l := range r.ledgers {
		for _, t := range l.list {
			for _, w := range t.wants {
				if w == nil || of.pool != "" && of.pool != l.name || of.lane != "" && of.lane != w.lane.name {
					continue
				}
				due, grants := w.duePart()
				all := w.lane.contests[0].grants + w.lane.contests[1].grants
				if due >= fewest && float64(grants) >= throughout*float64(all) {
					x := float64(w.service.got) / due
					n, sum, squares = n+1, sum+x, squares+x*x
				}
			}
		}
	}
	return sum * sum / (n * squares) // NaN without any
}

// duePart is what was due to the want by weight so far, of how many grants.
func (w *want) duePart() (due float64, grants int64) {
	due, grants = w.service.due, w.service.grants
	if w.in != nil {
		due += float64(w.tenant.weight) * (w.in.perWeight - w.service.since)
		grants += w.in.grants - w.service.entered
	}
	return due, grants
}

func slotTime(of func(*idleTime) float64) func(*run, selector) float64 {
	return func(r *run, s selector) float64 {
		sum := 0.0
		for _, l := range r.ledgers {
			if s.pool == "" || s.pool == l.name {
				sum += of(&l.idle)
			}
		}
		return sum * 1e9
	}
}

func yieldSwitches(r *run, of selector) float64 {
	n := int64(0)
	for _, l := range r.ledgers {
		for _, ln := range l.lanes {
			if (of.pool == "" || of.pool == l.name) && (of.lane == "" || of.lane == ln.name) {
				n += ln.switches
			}
		}
	}
	return float64(n)
}

// bucketUse is the part of the tokens that a bucket could give which were taken:
// those it had at first, and what came since.
func bucketUse(r *run, of selector) float64 {
	taken, could := 0.0, 0.0
	for _, l := range r.ledgers {
		for i, b := range l.policy.Buckets {
			if b.Name == of.bucket && (of.pool == "" || of.pool == l.name) && b.Period > 0 {
				taken += float64(l.taken[i])
				could += float64(b.Capacity) + float64(b.Refill)*float64(r.now)/float64(b.Period)
			}
		}
	}
	return taken / could // NaN without any
}

// hindrance is how many grants more any tenant of the other streams gets where
// those named are not there.
func hindrance(r *run, of selector) float64 {
	without := r.w.without(of.streams)
	free := newRun(without)
	if err := free.play(); err != nil {
		return math.NaN()
	}
	most := math.NaN()
	for _, s := range free.sources {
		for _, mine := range r.sources {
			if mine.stream.Name == s.stream.Name && mine.want.tenant.id == s.want.tenant.id {
				most = max(float64(s.grants-mine.grants), orLeast(most))
			}
		}
	}
	return most
}

func orLeast(x float64) float64 {
	if math.IsNaN(x) {
		return math.Inf(-1)
	}
	return x
}

func watchPairs(r *run) {
	for _, l := range r.ledgers {
		for _, ln := range l.lanes {
			for i := range ln.contests {
				ln.contests[i].pairs = &pairs{run: r}
			}
		}
	}
}

func fairBound(r *run) verdict {
	var v verdict
	worst := 0.0
	for _, l := range r.ledgers {
		for _, ln := range l.lanes {
			for i := range ln.contests {
				p := ln.contests[i].pairs
				v.cases += p.checked
				worst = max(worst, p.worst)
				v.breach = cmp.Or(v.breach, p.breach)
			}
		}
	}
	v.held = fmt.Sprintf("at most %.4f of the bound", worst)
	return v
}

func watchPromises(r *run) { r.promises.checked = true }

func entitledFirst(r *run) verdict {
	p := &r.promises
	return verdict{
		breach: p.passed, cases: min(p.units, p.borrowed),
		held: fmt.Sprintf("%d units given to the entitled, %d lent", p.units, p.borrowed),
	}
}

func reclaimBound(r *run) verdict {
	p := &r.promises
	return verdict{
		breach: p.late, cases: p.units,
		held: fmt.Sprintf("at most %d grants before a unit, where %d could have gone", p.worst, p.worstBound),
	}
}
