package admission_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/admitd/admit/admission"
)

const (
	// How many occurrences of one key are kept that died, and how many failed
	// attempts of each.
	naiveLetters  = 64
	naiveAttempts = 8
	// The most that one call redrives or purges.
	naiveRedrive = 1000
)

// fail notes an attempt that failed: the entry comes due again after a backoff
// counted from a time, or is dead.
func (n *naive) fail(p *naivePool, e *naiveEntry, outcome admission.Outcome, from admission.Wall) {
	e.history = append(slices.Clone(e.history), admission.Attempt{
		Number: e.attempts, Outcome: outcome, EndedAt: from, WorkerID: e.claim.worker,
	})
	e.history = e.history[max(0, len(e.history)-naiveAttempts):]
	if outcome == admission.OutcomeDead || e.attempts >= e.retry.MaxAttempts {
		n.bury(p, e, from)
		return
	}
	e.claim = nil
	e.due = from.Add(naiveBackoff(e.retry, e.spec.Key, e.attempts))
	e.waits = e.due > e.first
}

// bury ends an entry for good, or an occurrence of one that recurs.
func (n *naive) bury(p *naivePool, e *naiveEntry, from admission.Wall) {
	dead := e
	if e.recurs() {
		letter := *e
		letter.letter, letter.occurrence, letter.left = true, e.seq, 0
		dead = &letter
		p.entries = append(p.entries, dead)
	}
	n.deaths++
	dead.claim, dead.dead, dead.death = nil, true, n.deaths
	dead.diedAt, dead.buriedAt = n.w, n.t
	if dead == e {
		return
	}
	letters := deleteIf(p.entries, func(x *naiveEntry) bool {
		return !x.letter || x.tenant != e.tenant || x.spec.Key != e.spec.Key
	})
	if len(letters) > naiveLetters {
		oldest := slices.IndexFunc(p.graves(), func(x *naiveEntry) bool { return slices.Contains(letters, x) })
		n.sweep(p, p.graves()[oldest])
	}
	n.recur(e, false, from)
}

// graves are the dead entries of a pool, those first that have been dead for
// longest.
func (p *naivePool) graves() []*naiveEntry {
	dead := deleteIf(p.entries, func(e *naiveEntry) bool { return !e.dead })
	slices.SortFunc(dead, func(a, b *naiveEntry) int { return cmp.Compare(a.death, b.death) })
	return dead
}

// sweepOld drops what has been dead for too long.
func (n *naive) sweepOld(p *naivePool) {
	for _, e := range p.graves() {
		if n.t.Sub(e.buriedAt) >= p.policy.DeadRetention {
			n.sweep(p, e)
		}
	}
}

func (n *naive) sweep(p *naivePool, e *naiveEntry) {
	n.drop(p, e)
	p.swept++
}

// meant are the dead entries that a filter selects, from a place among the dead on.
func (n *naive) meant(
	pool string, f admission.DeadFilter, limit int, from admission.DeadCursor,
) (p *naivePool, found []*naiveEntry, res *admission.DeadResult) {
	res = &admission.DeadResult{}
	if p = n.pool(pool); p == nil {
		res.Err = noPool(pool)
		return nil, nil, res
	}
	if f.Lane != "" && p.lane(f.Lane) == nil {
		res.Err = &admission.Error{
			Reason: admission.InvalidField, Field: "filter.lane", Meta: []string{"pool", pool, "lane", f.Lane},
		}
		return nil, nil, res
	}
	if from.Until == 0 {
		from.Until = n.deaths
	}
	for _, e := range p.graves() {
		if e.death <= from.After || e.death > from.Until {
			continue
		}
		if len(found) == min(limit, naiveRedrive) {
			res.Next = from
			break
		}
		from.After = e.death
		if selects(f, e) {
			found = append(found, e)
		}
	}
	res.Count = len(found)
	return p, found, res
}

// selects says whether a filter selects a dead entry.
func selects(f admission.DeadFilter, e *naiveEntry) bool {
	return (f.Tenant == "" || f.Tenant == e.tenant) && (f.Lane == "" || f.Lane == e.lane) &&
		strings.HasPrefix(e.spec.Key, f.KeyPrefix) &&
		(f.Outcome == 0 || f.Outcome == e.history[len(e.history)-1].Outcome)
}

// redrive puts dead entries back into line, as if they had just been scheduled.
func (n *naive) redrive(op *admission.Redrive) *admission.DeadResult {
	_, found, res := n.meant(op.Pool, op.Filter, op.Limit, op.From)
	due := func(i int) admission.Wall {
		start := max(n.w, op.From.Due)
		if op.PerSecond == 0 {
			return start
		}
		return start.Add(time.Duration(i) * time.Second / time.Duration(op.PerSecond))
	}
	for i, e := range found {
		e.cameDue = e.dueAt()
		e.dead, e.redriven, e.attempts, e.unstarted, e.waits = false, true, 0, 0, false
		e.diedAt, e.buriedAt = 0, 0
		e.due = due(i)
		e.first = e.due
		n.seq++
		e.seq = n.seq
		n.refresh(n.pool(op.Pool), e)
	}
	if res.Next.Until != 0 && op.PerSecond > 0 {
		res.Next.Due = due(len(found))
	}
	return res
}

func (n *naive) purge(op *admission.PurgeDead) *admission.DeadResult {
	p, found, res := n.meant(op.Pool, op.Filter, op.Limit, op.From)
	for _, e := range found {
		n.drop(p, e)
	}
	return res
}
