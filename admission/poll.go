package admission

import "time"

// poll is a NextDue that is being served: room for due entries of this very
// entry.
type poll struct {
	op     *NextDue
	pool   *pool
	result *NextDueResult
	lanes  []bool // by rank: the lanes asked for
	tokens []Token
	got    map[*demand]int64 // claims, for lanes with a cycle limit
	cycled []*demand         // those that had their cycle
}

// attend prepares a NextDue for dispatch. It returns nil when the answer needs
// none: an error or a replay.
func (s *State) attend(op *NextDue) (*poll, *NextDueResult) {
	res := &NextDueResult{}
	p := s.pools.byName(op.Pool)
	if p == nil {
		res.Err = poolNotFound(op.Pool)
		return nil, res
	}
	q := &poll{op: op, pool: p, result: res}
	if q.lanes, res.Err = p.lanesNamed(op.Lanes); res.Err != nil {
		return nil, res
	}
	res.lanes = q.lanes
	if s.replayPoll(q) {
		return nil, res
	}
	if op.RequestID != "" && p.requestsFull(s.t) {
		res.refused = Cardinality
		return nil, res
	}
	return q, res
}

// lanesNamed returns, by rank, which lanes are among the names; none means all.
func (p *pool) lanesNamed(names []string) ([]bool, *Error) {
	asked := make([]bool, len(p.lanes))
	for _, l := range p.lanes {
		asked[l.rank] = len(names) == 0
	}
	for _, name := range names {
		l := p.lane(name)
		if l == nil {
			return nil, unknownLane(p.name, name)
		}
		asked[l.rank] = true
	}
	return asked, nil
}

// replayPoll answers a poll whose request id claimed entries before with those
// of its claims that still live.
func (s *State) replayPoll(q *poll) bool {
	seen, err := s.request(q.pool, "", q.op.RequestID, q.op.digest(), s.t)
	if err != nil {
		q.result.Err = err
		return true
	}
	if seen == nil {
		return false
	}
	q.result.Replayed = true
	for _, token := range seen.tokens {
		if p := s.holder(token); p != nil && !p.cancelled {
			q.result.Claims = append(q.result.Claims, s.claimOf(p, s.entry(p.demand.tenant, p.entry)))
		}
	}
	return true
}

// claimOf returns a claim as its holder sees it.
func (s *State) claimOf(p *permitRow, e *entryRow) Claim {
	return Claim{
		CatchUp: e.recur != nil && e.recur.behind > 1,
		Permit:  s.view(p, s.t), Key: e.key, Category: e.category, Route: e.route.name, Group: e.group,
		DueAt: e.first, Attempt: e.attempts,
	}
}

// wants says whether the poll still has room for an entry of the lane.
func (q *poll) wants(l *lane) bool { return !q.full() && q.lanes[l.rank] }

func (q *poll) full() bool { return len(q.result.Claims) >= q.op.MaxItems }

// capped says whether the demand has had its cycle in this call.
func (q *poll) capped(d *demand) bool {
	return d.lane.cycleLimit > 0 && q.got[d] >= d.lane.cycleLimit
}

// take books a claim to the poll.
func (q *poll) take(d *demand, p *permitRow, c Claim) {
	if d.lane.cycleLimit > 0 {
		if q.got == nil {
			q.got = map[*demand]int64{}
		}
		if q.got[d]++; q.capped(d) {
			q.cycled = append(q.cycled, d)
		}
	}
	q.tokens = append(q.tokens, p.token)
	q.result.Claims = append(q.result.Claims, c)
}

// conclude closes the poll after dispatch, when all are seated. It notes for the
// shedding who still waits and had its cycle.
func (s *State) conclude(q *poll) {
	q.result.full = q.full()
	for _, d := range q.cycled {
		if d.row.seat.ordered() {
			q.result.cycleCapped = append(q.result.cycleCapped, demandKey{d.tenant.num, d.lane.name})
		}
	}
	if q.op.RequestID != "" && len(q.tokens) > 0 {
		s.noteRequest(&requestRow{pool: q.pool, id: q.op.RequestID, digest: q.op.digest(), tokens: q.tokens})
	}
}

// claimNonce keeps the tokens of one call's claims apart from each other.
func claimNonce(nonce uint64, i int) uint64 { return nonce + uint64(i)*0x9e3779b97f4a7c15 }

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

// PollDelay says whether a NextDue would be served at that moment (0), or after
// what time it is worth asking again; ok is false if only an event can help.
// It may be early, never late.
func (s *State) PollDelay(at Instant, w Wall, op *NextDue) (wait time.Duration, ok bool) {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return 0, true // to be told
	}
	asked, err := p.lanesNamed(op.Lanes)
	if err != nil {
		return 0, true
	}
	if op.RequestID != "" && (s.Remembers(op) || p.requestsFull(at)) {
		return 0, true
	}
	at, soonest := max(at, s.t), never
	if next, any := p.dormant.Min(); any {
		soonest = min(soonest, at.Add(max(next.at.first.Sub(w), 0)))
	}
	if next, any := p.rates.Min(); any {
		soonest = min(soonest, next.at)
	}
	for _, l := range p.lanes {
		if asked[l.rank] && l.waiting() > 0 && l.slotFree() {
			soonest = min(soonest, l.tokensAt(at))
		}
	}
	if soonest == never {
		return 0, false
	}
	return max(soonest.Sub(at), 0), true
}

// waiting counts the demands that could be served.
func (l *lane) waiting() int {
	n := 0
	for c := range l.classes {
		n += l.classes[c].order.Len()
	}
	return n
}

// tokensAt returns when every POOL bucket will have what an entry of the lane
// takes, if nothing else takes it.
func (l *lane) tokensAt(now Instant) Instant {
	at := now
	for i := range l.pool.buckets {
		b := &l.pool.buckets[i]
		state := b.settled(b.bucketSpec, now)
		at = max(at, state.readyAt(b.bucketSpec, b.charge(1), l.leaveTokens[i]))
	}
	return at
}
