package admission

import (
	"strings"
	"time"
)

// Dead entries wait for an operator: in the index, and in pool.graves in the
// order of their deaths. They leave by being revived (schedule.go), redriven or
// purged, and at last by age.

// grave is a dead entry's key in pool.graves.
type grave struct {
	seq   uint64 // the row's, given out at its death
	entry *entryRow
}

func graveLess(a, b grave) bool { return a.seq < b.seq }

// die makes an entry dead that is in no queue, or not in the index yet.
func (s *State) die(e *entryRow) {
	s.seq++
	e.state, e.seq = entryDead, s.seq
	next := *e.past
	next.diedAt, next.buriedAt = s.w, s.t
	e.past = &next
}

// bury ends an entry that failed for good. A recurring one leaves a dead letter
// of this occurrence and goes on as after a miss at that time.
func (s *State) bury(e *entryRow, at Wall) {
	if e.recur == nil {
		s.die(e)
		e.demand().tenant.pool.graves.Set(grave{e.seq, e})
		return
	}
	letter := *e
	letter.letter, letter.recur = e.seq, nil
	s.die(&letter)
	s.insertEntry(&letter)
	s.trimLetters(e)
	s.recur(e, false, at)
}

// keptLetters is how many occurrences that died are kept of one key, redriven
// ones included.
const keptLetters = 64

// trimLetters drops the occurrence under the entry's key that has been dead for
// longest where there are more than may be.
func (s *State) trimLetters(e *entryRow) {
	var oldest *entryRow
	kept := 0
	for _, o := range s.occurrences(e.demand().tenant, e.key) {
		if o.letter == 0 {
			continue
		}
		kept++
		if o.state == entryDead && (oldest == nil || o.seq < oldest.seq) {
			oldest = o
		}
	}
	if kept > keptLetters {
		s.sweepOne(oldest)
	}
}

// occurrences returns the tenant's entry of that key and all letters of it.
func (s *State) occurrences(t *tenant, key string) (all []*entryRow) {
	if !t.known() {
		return nil
	}
	s.entries.Ascend(entryItem{tenant: t.num, key: key}, func(i entryItem) bool {
		same := i.tenant == t.num && i.key == key
		if same {
			all = append(all, i.row)
		}
		return same
	})
	return all
}

// sweepLimit bounds the dead entries that go by age in one log entry; the next
// goes on.
const sweepLimit = 1000

// sweep drops dead entries that are older than the pool keeps them, the oldest
// first. Age is on the cluster's clock: a step of the wall clock sweeps nothing.
func (s *State) sweep(p *pool, budget int) int {
	for ; budget > 0; budget-- {
		first, ok := p.graves.Min()
		if !ok || s.t.Sub(first.entry.past.buriedAt) < p.deadRetention {
			break
		}
		s.sweepOne(first.entry)
	}
	return budget
}

func (s *State) sweepOne(e *entryRow) {
	e.demand().tenant.pool.swept++
	s.removeEntry(e)
}

const (
	// MaxRedrive is the most entries that one Redrive or PurgeDead is for.
	MaxRedrive = 1000
	// visitLimit bounds the graves that one Redrive or PurgeDead looks at.
	visitLimit = 5000
)

// redrive puts dead entries back into line. Each keeps what it was scheduled
// with, has all its attempts again, and stands where one would that is scheduled
// now. An occurrence of a recurring entry, whose key the next one holds, runs
// beside it.
func (s *State) redrive(op *Redrive) *DeadResult {
	v := s.visit(op.Pool, op.Filter, op.Limit, op.From)
	start := max(s.w, op.From.Due)
	after := func(n int) Wall {
		if op.PerSecond <= 0 {
			return start
		}
		return start.Add(time.Duration(n) * time.Second / time.Duration(op.PerSecond))
	}
	for n, e := range v.found {
		s.revive(e, after(n))
	}
	if v.Next != (DeadCursor{}) && op.PerSecond > 0 {
		v.Next.Due = after(len(v.found))
	}
	return &v.DeadResult
}

// revive queues a dead entry, due at that time.
func (s *State) revive(e *entryRow, due Wall) {
	e.demand().tenant.pool.graves.Delete(grave{seq: e.seq})
	next := *e.past
	next.redriven, next.cameDue = true, e.cameDue()
	next.diedAt, next.buriedAt = 0, 0
	e = s.writeEntry(e)
	s.seq++
	e.seq, e.first, e.past = s.seq, due, &next
	e.attempts, e.unstarted = 0, 0
	s.requeue(e, due)
}

// purge drops dead entries.
func (s *State) purge(op *PurgeDead) *DeadResult {
	v := s.visit(op.Pool, op.Filter, op.Limit, op.From)
	for _, e := range v.found {
		s.removeEntry(e)
	}
	return &v.DeadResult
}

// visit is a walk along the graves.
type visit struct {
	DeadResult
	found []*entryRow
}

// visit returns up to limit entries that the filter selects, from a place on, and
// where to go on.
func (s *State) visit(pool string, f DeadFilter, limit int, from DeadCursor) visit {
	p := s.pools.byName(pool)
	if p == nil {
		return visit{DeadResult: DeadResult{Err: poolNotFound(pool)}}
	}
	if f.Lane != "" && p.lane(f.Lane) == nil {
		return visit{DeadResult: DeadResult{Err: noLane("filter.lane", pool, f.Lane)}}
	}
	if from.Until == 0 {
		from.Until = s.seq // what dies later, and so what dies again, is not meant
	}
	v, looked := visit{}, 0
	limit = min(max(limit, 1), MaxRedrive)
	p.graves.Ascend(grave{seq: from.After + 1}, func(g grave) bool {
		if g.seq > from.Until {
			return false
		}
		if len(v.found) == limit || looked == visitLimit {
			v.Next = from
			return false
		}
		looked++
		from.After = g.seq
		if f.selects(g.entry) {
			v.found = append(v.found, g.entry)
		}
		return true
	})
	v.Count = len(v.found)
	return v
}

// selects says whether the filter means a dead entry.
func (f *DeadFilter) selects(e *entryRow) bool {
	d := e.demand()
	return (f.Tenant == "" || f.Tenant == d.tenant.id) && (f.Lane == "" || f.Lane == d.lane.name) &&
		strings.HasPrefix(e.key, f.KeyPrefix) && (f.Outcome == 0 || f.Outcome == e.end())
}

// end returns how a dead entry's last attempt ended.
func (e *entryRow) end() Outcome {
	h := e.history()
	return h[len(h)-1].Outcome
}
