package admission

import (
	"slices"
	"time"
)

// A job is what a dedupe key names: of each tenant's key at most one permit is
// live, and none is granted for as long as the key is remembered as done.
type job struct {
	live    bool
	permit  permitKey // while it is live
	done    *doneRow
	waiters []*waiter
}

// jobName goes by the tenant's name: what is done outlives a tenant that is
// forgotten.
type jobName struct {
	tenant string
	key    string
}

// doneRow is a job that is done.
type doneRow struct {
	pool *pool
	name jobName
	at   Instant
	seq  uint64
}

func doneLess(a, b *doneRow) bool {
	if a.pool.num != b.pool.num {
		return a.pool.num < b.pool.num
	}
	if a.name.tenant != b.name.tenant {
		return a.name.tenant < b.name.tenant
	}
	return a.name.key < b.name.key
}

// jobFor returns the job of that key, made on first use, or nil where there is no
// key.
func (s *State) jobFor(t *tenant, key string) *job {
	if key == "" {
		return nil
	}
	name := jobName{t.id, key}
	j := t.pool.jobs.get(name)
	if j == nil {
		j = &job{}
		t.pool.jobs.set(name, j)
	}
	return j
}

// takeJob notes that the permit does its job; whoever waited to do the same
// is told.
func (s *State) takeJob(p *permitRow) {
	j := s.jobFor(p.demand.tenant, p.job)
	if j == nil {
		return
	}
	j.live, j.permit = true, p.token.key()
	for _, w := range slices.Clone(j.waiters) {
		s.endWait(w, s.refusalOf(w))
	}
}

// freeJob notes that the key's permit ended, and whether its job is done.
func (s *State) freeJob(t *tenant, key string, done bool) {
	j := s.jobFor(t, key)
	if j == nil {
		return
	}
	j.live = false
	if done {
		s.seq++
		s.adoptDone(&doneRow{pool: t.pool, name: jobName{t.id, key}, at: s.t, seq: s.seq})
	}
	t.pool.dropJob(jobName{t.id, key})
}

func (s *State) adoptDone(r *doneRow) {
	s.dones.Set(r)
	r.pool.dones.push(r)
	j := r.pool.jobs.get(r.name)
	if j == nil {
		j = &job{}
		r.pool.jobs.set(r.name, j)
	}
	j.done = r
}

func (s *State) leaveJob(w *waiter) {
	if w.job == nil {
		return
	}
	i := slices.Index(w.job.waiters, w)
	w.job.waiters = slices.Delete(w.job.waiters, i, i+1)
	w.demand.tenant.pool.dropJob(jobName{w.demand.tenant.id, w.jobKey})
}

func (p *pool) dropJob(name jobName) {
	if j := p.jobs.get(name); j != nil && !j.live && j.done == nil && len(j.waiters) == 0 {
		p.jobs.drop(name)
	}
}

// forgetDone drops jobs that were done long enough ago.
func (s *State) forgetDone(p *pool) {
	past := s.t.Add(-p.doneRetention)
	for n := 0; n < forgetBatch && p.dones.len() > 0 && p.dones.front().at <= past; n++ {
		s.dropDone(p.dones.pop())
	}
}

func (s *State) dropDone(r *doneRow) {
	s.dones.Delete(r)
	r.pool.jobs.get(r.name).done = nil
	r.pool.dropJob(r.name)
}

// duplicate says whether the tenant's key is live or done at that moment.
func (t *tenant) duplicate(key string, now Instant) (live, done bool) {
	j := t.pool.jobs.get(jobName{t.id, key})
	if key == "" || j == nil {
		return false, false
	}
	return j.live, j.done != nil && now.Sub(j.done.at) < t.pool.doneRetention
}

// jobsFull says whether the ask has a new key that the pool could not remember.
func (a *ask) jobsFull() bool {
	p, l := a.demand.tenant.pool, a.demand.lane
	name := jobName{a.demand.tenant.id, a.op.DedupeKey}
	return name.key != "" && p.jobs.get(name) == nil && int64(p.jobs.len()) >= l.partOf(p.limits.DedupeKeys)
}

const defaultDoneRetention = 24 * time.Hour
