package admission

import "github.com/tidwall/btree"

// queuesDue is queues by when they next have something due.
type queuesDue = btree.BTreeG[queueDue]

// queueDue is a queue's key in lane.dormant or lane.ripening.
type queueDue struct {
	at    place
	queue *queue
}

func queueDueLess(a, b queueDue) bool { return a.at.compare(b.at) < 0 }

// refresh keeps all that depends on the queue's entries true after they changed.
func (s *State) refresh(q *queue) {
	if q.row != nil {
		if first, any := s.firstInLine(q); !any || first.at.first > s.w {
			s.unready(q)
			return
		}
	}
	s.place(q)
}

// place keeps the queue's head and its key among the dormant or ripening true.
func (s *State) place(q *queue) {
	inLine, any := s.firstInLine(q)
	if q.row == nil {
		s.sleep(q, s.headDue(q, inLine, any))
		return
	}
	s.movedHead(q, inLine.at)
	s.sleep(q, s.nextRipe(q))
}

// headDue returns when the dormant queue's first entry comes due.
func (s *State) headDue(q *queue, inLine spot, anyInLine bool) queueDue {
	if d, ok := s.firstRetry(q); ok && (!anyInLine || d.at.compare(inLine.at) < 0) {
		return queueDue{d.at, q}
	}
	if anyInLine {
		return queueDue{inLine.at, q}
	}
	return queueDue{}
}

// nextRipe returns when the ready queue's next uncounted entry comes due.
func (s *State) nextRipe(q *queue) queueDue {
	if q.ripe == q.queued-q.retries {
		return s.headDue(q, spot{}, false)
	}
	after := q.row.ripe
	after.seq++
	inLine, ok := q.firstAfter(s.line, after)
	return s.headDue(q, inLine, ok)
}

// sleep keeps the queue's key among the dormant or ripening true.
func (s *State) sleep(q *queue, at queueDue) {
	if q.sleeps == at {
		return
	}
	l := q.route.demand.lane
	tree := l.dormant
	if q.row != nil {
		tree = l.ripening
	}
	if q.sleeps.queue != nil {
		tree.Delete(q.sleeps)
	}
	if q.sleeps = at; at.queue != nil {
		tree.Set(at)
	}
}

// unready takes the queue out of service; it goes dormant if it has entries.
func (s *State) unready(q *queue) {
	s.sleep(q, queueDue{})
	s.countDue(q, -q.ripe)
	s.retract(q)
	s.dueQueues.Delete(q.row.item())
	q.row = nil
	s.unsettle(q.route.demand)
	s.place(q)
}

// writeQueue returns the ready queue's row for writing.
func (s *State) writeQueue(q *queue) *queueRow {
	if q.row.version != s.version {
		row := *q.row
		row.version = s.version
		q.row = &row
		s.dueQueues.Set(row.item())
	}
	return q.row
}

// promoteBudget bounds the work of one log entry on what comes due; the next goes
// on. An entry that is only counted costs 1. A queue that becomes ready, or of
// which more is counted, and a retry that returns to its place cost moveCost.
const (
	promoteBudget = 50_000
	moveCost      = 100
)

// promoteAll promotes what has come due. Where that is more than one log entry may
// do, every pool is the first one in turn.
func (s *State) promoteAll() {
	budget := promoteBudget
	n := len(s.pools.list)
	for i := range n {
		for _, l := range s.pools.list[(int(s.index%uint64(n))+i)%n].lanes {
			budget = s.promote(l, budget)
		}
	}
}

// promote makes the lane's queues ready whose head is due, oldest first, and goes
// on counting the due entries of those that are. It returns the budget that is
// left.
func (s *State) promote(l *lane, budget int) int {
	for ; budget > 0; budget -= moveCost {
		next, ok := l.dormant.Min()
		if !ok || next.at.first > s.w {
			break
		}
		s.ready(next.queue)
	}
	for budget > 0 {
		next, ok := l.ripening.Min()
		if !ok || next.at.first > s.w {
			break
		}
		budget = s.ripen(next.queue, budget)
	}
	return budget
}

// ready puts a dormant queue whose head is due into service.
func (s *State) ready(q *queue) {
	s.sleep(q, queueDue{})
	first, any := s.firstInLine(q)
	if !any || first.at.first > s.w {
		retry, _ := s.firstRetry(q)
		s.rejoin(retry.entry)
		first, _ = s.firstInLine(q)
	}
	q.row = &queueRow{version: s.version, queue: q, ripe: place{first: beginning}}
	q.headed = first.at
	s.dueQueues.Set(q.row.item())
	s.offer(q)
	s.countUp(q, moveCost) // a short queue is done with at one go
	s.sleep(q, s.nextRipe(q))
	s.unsettle(q.route.demand)
}

// ripen counts a ready queue's entries that have come due, as far as the budget
// goes, and returns what is left of it. Those that waited for a retry return to
// their place in line first.
func (s *State) ripen(q *queue, budget int) int {
	for ; budget > 0; budget -= moveCost {
		back, ok := s.firstRetry(q)
		if !ok || back.at.first > s.w {
			break
		}
		s.rejoin(back.entry)
	}
	budget -= moveCost + s.countUp(q, budget)
	s.refresh(q)
	return budget
}

// countUp counts up to most further entries of a ready queue as due, and returns
// how many it did.
func (s *State) countUp(q *queue, most int) int {
	counted, at := 0, q.row.ripe
	s.line.Ascend(spot{queue: q.num, at: place{at.first, at.seq + 1}}, func(next spot) bool {
		if counted >= most || next.queue != q.num || next.at.first > s.w {
			return false
		}
		counted++
		at = next.at
		return true
	})
	if counted > 0 {
		s.writeQueue(q).ripe = at
		s.countDue(q, int64(counted))
	}
	return counted
}

// rejoin moves an entry whose retry has come due from delayed into line.
func (s *State) rejoin(e *entryRow) {
	s.unlink(e)
	e = s.writeEntry(e)
	e.delayed = false
	s.link(e)
}
