package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/admitd/admit/admission"
)

// addSources makes a source for each tenant of the stream.
func (r *run) addSources(s *Stream) {
	l := r.ledger(s.Pool)
	var f *fleet
	for _, candidate := range r.fleets {
		if candidate.workers == s.by {
			f = candidate
		}
	}
	work := newRand(r.w.Seed, s.Name+"/work")
	for _, id := range s.Tenants {
		t := l.tenant(id)
		ln := l.laneOf(id, s.Category)
		ln.costliest = max(ln.costliest, s.Cost)
		r.sources = append(r.sources, &source{
			stream: s, lane: ln, want: t.want(ln), fleet: f, work: work, sheds: map[admission.Reason]int64{},
		})
	}
}

// sourcesOf returns the sources of a stream, in the order of its tenants.
func (r *run) sourcesOf(s *Stream) []*source {
	var out []*source
	for _, src := range r.sources {
		if src.stream == s {
			out = append(out, src)
		}
	}
	return out
}

// arrivals enters the first arrivals of a stream; each enters the next.
func (r *run) arrivals(s *Stream) {
	a := s.Arrivals
	from := admission.Instant(a.from)
	numbers := newRand(r.w.Seed, s.Name+"/arrivals")
	sources := r.sourcesOf(s)
	gap := float64(time.Second) / a.rate
	switch a.kind {
	case arriveBurst:
		r.events.enter(from, func() { r.burst(sources, a.count) })
	case arriveConstant:
		for i, src := range sources { // in turn, not all at once
			first := gap * float64(i) / float64(len(sources))
			r.constant(src, from.Add(time.Duration(first)), gap)
		}
	case arrivePoisson:
		for _, src := range sources {
			r.poisson(a, numbers, gap, from, func() *source { return src })
		}
	case arriveZipf:
		ranks := newZipf(len(sources), a.exponent)
		r.poisson(a, numbers, gap, from, func() *source { return sources[ranks.draw(numbers)] })
	}
}

// constant lets a job arrive every gap nanoseconds.
func (r *run) constant(src *source, first admission.Instant, gap float64) {
	var enter func(k int)
	enter = func(k int) {
		at := first.Add(time.Duration(float64(k) * gap))
		if at < admission.Instant(src.stream.Arrivals.until) {
			r.events.enter(at, func() { r.arrive(src); enter(k + 1) })
		}
	}
	enter(0)
}

// poisson lets jobs arrive at random, gap nanoseconds apart on average.
func (r *run) poisson(a arrivals, numbers *rand.Rand, gap float64, after admission.Instant, pick func() *source) {
	at := after.Add(exponential(numbers, gap))
	if at < admission.Instant(a.until) {
		r.events.enter(at, func() {
			r.arrive(pick())
			r.poisson(a, numbers, gap, at, pick)
		})
	}
}

// burst lets n jobs of each source arrive at once, in turn.
func (r *run) burst(sources []*source, n int64) {
	all := make([]*source, 0, int(n)*len(sources))
	for range n {
		all = append(all, sources...)
	}
	r.arrive(all...)
}

// scheduleLimit is how many entries one Schedule takes.
const scheduleLimit = 1000

// arrive lets a job of each source of a stream arrive now.
func (r *run) arrive(sources ...*source) {
	for part := range slices.Chunk(sources, scheduleLimit) {
		op := &admission.Schedule{Pool: part[0].stream.Pool}
		for _, src := range part {
			j := r.newJob(src)
			if src.fleet != nil {
				src.fleet.queue(j)
				continue
			}
			src.lane.ledger.jobs[j.key] = j
			op.Entries = append(op.Entries, admission.EntrySpec{
				Tenant: src.want.tenant.id, Key: j.key, Category: src.stream.Category, Relative: true,
				Route: fmt.Sprint("r", src.jobs%src.stream.Routes),
			})
		}
		if len(op.Entries) > 0 {
			r.apply(call{op: op})
		}
	}
}

func (r *run) newJob(src *source) *job {
	r.counts.jobs++
	src.jobs++
	return &job{source: src, since: r.now, key: fmt.Sprint(src.stream.Name, ".", src.want.tenant.id, ".", src.jobs)}
}

// scheduled books what came due.
func (r *run) scheduled(op *admission.Schedule, res *admission.ScheduleResult) {
	l := r.ledger(op.Pool)
	if res.Err != nil {
		r.fail(l.jobs[op.Entries[0].Key].source.stream, res.Err)
		return
	}
	for i, row := range res.Entries {
		j := l.jobs[op.Entries[i].Key]
		if row.Err != nil {
			r.fail(j.source.stream, row.Err)
			return
		}
		if row.Status != admission.Scheduled {
			j.source.sheds[row.Reason]++
			j.giveUp()
			continue
		}
		j.source.want.due++
		j.source.want.tenant.settle()
	}
}
