package admission

import (
	"cmp"
	"time"
)

// A waiter is an Acquire in line. It stands in the queue of its demand by its
// place in line while somebody listens for it and its lock, if it needs one, has
// room; else it only keeps its place.
type waiter struct {
	key    WaiterKey
	seq    uint64
	demand *demand
	cost   int64
	ttl    time.Duration
	settle bool
	// slotless says that it takes tokens only.
	slotless  bool
	requestID string
	digest    uint64
	worker    string
	nonce     uint64
	askedAt   Wall
	lock      *lock // that it needs, or nil
	job       *job  // that it is to do, or nil
	jobKey    string
	row       *waiterRow
	// queued says whether it is in the demand's queue.
	queued bool
	// end is how the wait ended, nil while it is in line.
	end *AcquireResult
}

// waiterRow is what of a waiter changes.
type waiterRow struct {
	version uint32
	*waiter
	// until is when the wait is over; detached, if not 0, when it is over because
	// nobody came back. Both are on the lease clock.
	until, detached Instant
}

func (k WaiterKey) compare(o WaiterKey) int {
	return cmp.Or(cmp.Compare(k.Index, o.Index), cmp.Compare(k.Position, o.Position))
}

func waiterLess(a, b *waiterRow) bool { return a.key.compare(b.key) < 0 }

func (w *waiter) place() place { return place{w.askedAt, w.seq} }

func (w *waiter) source() source {
	if w.slotless {
		return fromRateWaiters
	}
	return fromWaiters
}

// attached says whether somebody listens.
func (w *waiter) attached() bool { return w.row.detached == 0 }

// queueSpot is a waiter's key in State.queues.
type queueSpot struct {
	demand uint64
	source source
	seq    uint64
	waiter *waiter
}

func queueSpotLess(a, b queueSpot) bool {
	return cmp.Or(cmp.Compare(a.demand, b.demand), cmp.Compare(a.source, b.source), cmp.Compare(a.seq, b.seq)) < 0
}

func (w *waiter) spot() queueSpot { return queueSpot{w.demand.num, w.source(), w.seq, w} }

// headWaiter returns the first waiter in the source's queue, or nil.
func (s *State) headWaiter(d *demand, src source) (head *waiter) {
	if src != fromWaiters && src != fromRateWaiters || d.queued[src-fromWaiters] == 0 {
		return nil
	}
	s.queues.Ascend(queueSpot{demand: d.num, source: src}, func(q queueSpot) bool {
		head = q.waiter
		return false
	})
	return head
}

// shortBefore returns the head of the demand's other queue, if it came before the
// source's own and lacks tokens of the tenant: both need them.
func (s *State) shortBefore(d *demand, src source) *waiter {
	own := s.headWaiter(d, src)
	if own == nil {
		return nil
	}
	return s.shortWaiter(d, own.seq, s.t)
}

// shortWaiter returns a head of the demand's queues that came before a place in
// line and lacks tokens of the tenant, or nil.
func (s *State) shortWaiter(d *demand, seq uint64, now Instant) *waiter {
	for src := fromWaiters; src <= fromRateWaiters; src++ {
		w := s.headWaiter(d, src)
		if w == nil || w.seq >= seq {
			continue
		}
		if why, _ := d.tenant.rateReason(w.cost, now); why != ReasonNone {
			return w
		}
	}
	return nil
}

// deadline is a waiter's key in pool.deadlines.
type deadline struct {
	at     Instant
	waiter *waiter
}

func deadlineLess(a, b deadline) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.waiter.key.compare(b.waiter.key) < 0
}

// ends returns when the wait is over, whoever listens.
func (w *waiter) ends() Instant {
	if w.attached() {
		return w.row.until
	}
	return min(w.row.until, w.row.detached)
}

// await puts an ask in line.
func (s *State) await(a *ask) {
	op, d := a.op, a.demand
	s.registerDemand(d)
	s.positions++
	s.seq++
	w := &waiter{
		key: WaiterKey{s.index, s.positions}, seq: s.seq, demand: d, cost: op.Cost, ttl: op.TTL, settle: op.Settle,
		slotless: op.RateOnly, requestID: op.RequestID, digest: op.digest(), worker: op.WorkerID, nonce: op.Nonce,
		askedAt: s.w, lock: s.lockFor(d.tenant, op.LockKey), job: s.jobFor(d.tenant, op.DedupeKey), jobKey: op.DedupeKey,
	}
	s.adoptWaiter(w, &waiterRow{version: s.version, waiter: w, until: s.lease().Add(op.MaxWait)})
	a.result.Decision.Waiter = w.key
	s.reseat(d)
}

// adoptWaiter enters a waiter with its row into the state.
func (s *State) adoptWaiter(w *waiter, row *waiterRow) {
	w.row = row
	s.waiters.Set(row)
	t := w.demand.tenant
	t.pool.waiting++
	t.pool.mostWaiting.move(t.waiting, t.waiting+1)
	t.waiting++
	w.demand.lane.waiters++
	t.pool.deadlines.Set(deadline{w.ends(), w})
	if w.requestID != "" {
		s.waitersByID.set(requestKey{t.pool.num, t.id, w.requestID}, w)
	}
	if w.lock != nil {
		w.lock.waiters++
	}
	if w.job != nil {
		w.job.waiters = append(w.job.waiters, w)
	}
	s.setIdle(t, 0, false)
	if w.attached() {
		s.comeIn(w)
	}
}

// comeIn lets a waiter into its demand's queue, or to its lock.
func (s *State) comeIn(w *waiter) {
	if w.lock == nil {
		s.queueUp(w)
		return
	}
	w.lock.held.Set(w)
	w.demand.locked++
	s.relock(w.lock)
	s.unsettle(w.demand)
}

// goOut takes a waiter out of its demand's queue, or from its lock.
func (s *State) goOut(w *waiter) {
	queued := w.queued
	if queued {
		s.unqueue(w)
	}
	if w.lock == nil {
		return
	}
	if queued {
		w.lock.open.Delete(w)
	} else if _, waited := w.lock.held.Delete(w); waited {
		w.demand.locked--
	}
	s.relock(w.lock)
	s.unsettle(w.demand)
}

func (s *State) queueUp(w *waiter) {
	w.queued = true
	s.queues.Set(w.spot())
	w.demand.queued[w.source()-fromWaiters]++
	s.unsettle(w.demand)
}

func (s *State) unqueue(w *waiter) {
	w.queued = false
	s.queues.Delete(w.spot())
	w.demand.queued[w.source()-fromWaiters]--
	s.unsettle(w.demand)
}

// writeWaiter returns the waiter's row for writing.
func (s *State) writeWaiter(w *waiter) *waiterRow {
	if w.row.version != s.version {
		row := *w.row
		row.version = s.version
		w.row = &row
		s.waiters.Set(&row)
	}
	return w.row
}

// detachedFor is how long a waiter that nobody listens for keeps its place.
const detachedFor = 5 * time.Second

// detach notes that nobody listens for the waiter. One that can't be found again
// ends at once.
func (s *State) detach(w *waiter) {
	if w.requestID == "" {
		s.endWait(w, s.refusalOf(w))
		return
	}
	if w.attached() {
		s.setDeadline(w, w.row.until, s.lease().Add(detachedFor))
		s.goOut(w)
	}
}

// attach notes that somebody listens again, and for how long.
func (s *State) attach(w *waiter, maxWait time.Duration) {
	was := w.attached()
	s.setDeadline(w, max(w.row.until, s.lease().Add(maxWait)), 0)
	if !was {
		s.comeIn(w)
	}
}

func (s *State) setDeadline(w *waiter, until, detached Instant) {
	deadlines := w.demand.tenant.pool.deadlines
	deadlines.Delete(deadline{w.ends(), w})
	row := s.writeWaiter(w)
	row.until, row.detached = until, detached
	deadlines.Set(deadline{w.ends(), w})
}

// detachAll is for a new leader, to whom nobody listens yet.
func (s *State) detachAll() {
	var all []*waiter
	s.waiters.Scan(func(row *waiterRow) bool {
		all = append(all, row.waiter)
		return true
	})
	for _, w := range all {
		s.detach(w)
	}
}

// waiter returns the waiter of that key, or nil.
func (s *State) waiter(key WaiterKey) *waiter {
	row, ok := s.waiters.Get(&waiterRow{waiter: &waiter{key: key}})
	if !ok {
		return nil
	}
	return row.waiter
}

// endWait takes the waiter out of the state and tells how its wait ended.
func (s *State) endWait(w *waiter, d Decision) *AcquireResult {
	if w.attached() {
		s.goOut(w)
	}
	t := w.demand.tenant
	s.waiters.Delete(w.row)
	t.pool.waiting--
	t.pool.mostWaiting.move(t.waiting, t.waiting-1)
	t.waiting--
	w.demand.lane.waiters--
	t.pool.deadlines.Delete(deadline{w.ends(), w})
	if w.requestID != "" {
		s.waitersByID.drop(requestKey{t.pool.num, t.id, w.requestID})
	}
	s.leaveLock(w)
	s.leaveJob(w)
	s.noteIdle(t)
	w.end = &AcquireResult{Decision: d}
	s.waitEnds = append(s.waitEnds, WaitEnd{w.key, t.pool.name, t.id, w.end})
	return w.end
}

// refusalOf returns why the waiter is not granted now. A poll may have brought a waiter
// forward that came with due entries of its demand: then that held it, though it comes
// later now.
func (s *State) refusalOf(w *waiter) Decision {
	x := s.examine(w.demand, w.need(), s.t)
	if p := x.pool; x.reason == ReasonNone && p.reserved && s.goesAfter(w.demand, w.need(), p.reserver) {
		x = s.newExamination(w.demand, w.need(), s.t)
		x.holder = &p.reserver
		x.run()
	}
	return Decision{Shed: x.shed()}
}

// reviewWaiters looks again at so many waiters, those of some tenants, after their
// policy changed: what can never be granted any more is told so.
func (s *State) reviewWaiters(left int64, whose func(*tenant) bool) {
	if left == 0 {
		return
	}
	var lost []*waiter
	s.waiters.Scan(func(row *waiterRow) bool {
		w := row.waiter
		if !whose(w.demand.tenant) {
			return true
		}
		left--
		if s.examine(w.demand, w.need(), s.t).final {
			lost = append(lost, w)
		}
		return left > 0
	})
	s.endTogether(lost)
}

// endTogether ends waits, all told what held them before any ends: it may be another
// of them.
func (s *State) endTogether(all []*waiter) {
	told := make([]Decision, len(all))
	for i, w := range all {
		told[i] = s.refusalOf(w)
	}
	for i, w := range all {
		s.endWait(w, told[i])
	}
}

// endLimit bounds the waits whose time is up that end in one log entry; the next goes
// on. Each is told all that held it, which costs more than a permit that expires.
const endLimit = 500

// endWaits ends the waits whose time is up and that this entry could not grant, a
// bounded number; the next entry goes on, from another pool.
func (s *State) endWaits() {
	budget, n := endLimit, len(s.pools.list)
	for i := range n {
		p := s.pools.list[(int(s.index%uint64(n))+i)%n]
		budget = s.endWaitsOf(p, budget)
		p.reserved, p.reserver = false, position{}
	}
	s.settleSeats()
}

// endWaitsOf ends those of one pool, oldest first, and returns the budget that is
// left.
func (s *State) endWaitsOf(p *pool, budget int) int {
	var over []*waiter
	p.deadlines.Scan(func(next deadline) bool {
		if budget == 0 || next.at > s.lease() {
			return false
		}
		budget--
		over = append(over, next.waiter)
		return true
	})
	s.endTogether(over)
	return budget
}

// Ended returns how the waits that the last entry ended have ended, in the order
// in which they did. It holds until the next Apply.
func (s *State) Ended() []WaitEnd { return s.waitEnds }

// requestKey finds a waiter by its request id.
type requestKey struct {
	pool   uint32
	tenant string
	id     string
}
