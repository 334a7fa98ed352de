package admission

import "time"

// Remembers says whether the NextDue has the request id of an earlier one: its
// answer waits for nothing.
func (s *State) Remembers(op *NextDue) bool {
	p := s.pools.byName(op.Pool)
	if p == nil || op.RequestID == "" {
		return false
	}
	_, seen := s.requests.Get(requestItem{pool: p.num, id: op.RequestID})
	return seen
}

// Idle is what a NextDue is answered that claims nothing: pass it to
// State.Shedding, to learn who is held back from this very call.
func (s *State) Idle(op *NextDue) *NextDueResult {
	_, res := s.attend(op)
	return res
}

// PollDelay says whether a NextDue would be served at that moment (0), or after
// what time it is worth asking again; ok is false if only an event can help.
// It may be early, never late.
func (s *State) PollDelay(at Instant, w Wall, op *NextDue) (wait time.Duration, ok bool) {
	q, _ := s.attend(op)
	if q == nil {
		return 0, true // to be told
	}
	at, soonest := max(at, s.t), never
	if ends, any := q.nextLinger(); any {
		soonest = min(soonest, at.Add(max(ends.Sub(w), 0)))
	}
	if woken, any := q.nextTokens(); any {
		soonest = min(soonest, woken)
	}
	holder, reserved := s.reservation(q.pool, at)
	stale := q.pool.yieldStale(w)
	for _, l := range q.pool.lanes {
		if due, any := q.nextDue(l); any && q.wants(l) {
			soonest = min(soonest, at.Add(max(due.Sub(w), 0)))
		}
		for k := range classCount {
			if q.wants(l) && (!l.yielding || stale) && l.slotFor(k) && s.servable(q, l, k, holder, reserved) {
				soonest = min(soonest, l.tokensAt(1, at))
			}
		}
	}
	if soonest == never {
		return 0, false
	}
	return max(soonest.Sub(at), 0), true
}

// AwaitsRoom says whether work is due for a NextDue that only what others hold keeps
// from it: a permit that ends may be what it waits for.
func (s *State) AwaitsRoom(op *NextDue) bool {
	q, _ := s.attend(op)
	if q == nil {
		return false
	}
	for _, l := range q.pool.lanes {
		if q.wants(l) && !l.yielding && q.awaitsRoom(l) {
			return true
		}
	}
	return false
}

func (q *poll) awaitsRoom(l *lane) bool {
	for k := range classCount {
		if _, any := q.first(l, k); any {
			return true
		}
	}
	if q.tenant == nil {
		return l.held[TenantCap].entries+l.held[LaneCap].entries > 0
	}
	d := q.tenant.demand(l)
	if d.row == nil {
		return false
	}
	at := d.row.seats[fromEntries].seat
	return at == heldSeat(TenantCap) || at == heldSeat(LaneCap)
}

// HasRoom says whether a NextDue could be served at that moment, had it work.
func (s *State) HasRoom(at Instant, op *NextDue) bool {
	q, _ := s.attend(op)
	if q == nil {
		return false
	}
	if _, reserved := s.reservation(q.pool, max(at, s.t)); reserved {
		return false
	}
	for _, l := range q.pool.lanes {
		if q.wants(l) && !l.yielding && l.slotFor(entitled) && l.tokensFree(1, max(at, s.t)) {
			return true
		}
	}
	return false
}

// dormantLook bounds the queues in a lane among which those are looked for that
// matter to one poll.
const dormantLook = 64

// nextDue returns when the lane's next queue comes due that the poll may be served
// from, or something more of one whose entries wait for enough of them. It may be
// early.
func (q *poll) nextDue(l *lane) (due Wall, any bool) {
	due, any = firstDue(l.dormant, func(d *demand) bool { return q.mayServe(d.tenant) })
	if l.batch.Linger == 0 {
		return due, any
	}
	more, ripens := firstDue(l.ripening, func(d *demand) bool { return q.mayServe(d.tenant) && d.lingers() })
	if ripens && (!any || more < due) {
		return more, true
	}
	return due, any
}

// firstDue returns when the first queue of a demand that matters comes due. It may
// be early.
func firstDue(queues *queuesDue, matters func(*demand) bool) (due Wall, any bool) {
	looked := 0
	queues.Scan(func(next queueDue) bool {
		looked++
		due, any = next.at.first, looked == dormantLook || matters(next.queue.route.demand)
		return !any
	})
	return due, any
}

// nextTokens returns when tokens come for a demand that the poll may be served
// from.
func (q *poll) nextTokens() (at Instant, any bool) {
	if q.tenant == nil {
		next, any := q.pool.rates.Min()
		return next.at, any
	}
	for _, d := range q.tenant.demands {
		if wake := d.row.seats[fromEntries].wakeAt; wake != 0 && (!any || wake < at) {
			at, any = wake, true
		}
	}
	return at, any
}

// nextLinger returns when entries that the poll may be given have waited long
// enough for more.
func (q *poll) nextLinger() (ends Wall, any bool) {
	if q.tenant == nil {
		next, any := q.pool.lingering.Min()
		return next.at, any
	}
	for _, d := range q.tenant.demands {
		if d.lingers() && (!any || d.row.lingers < ends) {
			ends, any = d.row.lingers, true
		}
	}
	return ends, any
}

// servable says whether a demand of the class could be served to the poll, if
// whoever reserves the pool's tokens does not come before.
func (s *State) servable(q *poll, l *lane, k classKind, holder position, reserved bool) bool {
	first, ok := q.first(l, k)
	if !ok || reserved && (first.demand == holder.demand || positionAfter(first, holder)) {
		return false
	}
	if q.tenant != nil {
		return !s.nodeFull(q.op.Node, q.tenant)
	}
	n := l.classes[k].orders[fromEntries].Len()
	s.fullOn(q.op.Node, q.pool, func(t *tenant) {
		if d := t.demand(l); d.row != nil && d.row.seats[fromEntries].seat == seatOf(k) {
			n--
		}
	})
	return n > 0
}

// tokensAt returns when every POOL bucket will have what a permit of the lane with
// that cost takes, if nothing else takes it.
func (l *lane) tokensAt(cost int64, now Instant) Instant {
	at := now
	for i := range l.pool.buckets {
		b := &l.pool.buckets[i]
		state := b.settled(b.bucketSpec, now)
		at = max(at, state.readyAt(b.bucketSpec, b.charge(cost), l.leaveTokens[i]))
	}
	return at
}
