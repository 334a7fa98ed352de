package admission

import (
	"math"
	"slices"
)

// poll is a NextDue that is being served: room for due entries of this very
// entry.
type poll struct {
	op     *NextDue
	pool   *pool
	result *NextDueResult
	tenant *tenant // whose entries alone it claims, or nil
	lanes  []bool  // by rank: the lanes asked for
	left   []int64 // by rank: permits that the call's own limits leave
	tokens []Token
	got    map[*demand]int64 // permits, for lanes with a cycle limit
	cycled []*demand         // those that had their cycle
	// lastBatch is the number of the last batch that it was given.
	lastBatch int32
}

// attend prepares a NextDue for dispatch. It returns nil when the answer needs
// none: an error or a replay.
func (s *State) attend(op *NextDue) (*poll, *NextDueResult) {
	res := &NextDueResult{op: op}
	p := s.pools.byName(op.Pool)
	if p == nil {
		res.Err = poolNotFound(op.Pool)
		return nil, res
	}
	q := &poll{op: op, pool: p, result: res}
	if q.lanes, res.Err = p.lanesNamed(op.Lanes); res.Err != nil {
		return nil, res
	}
	if q.left, res.Err = p.laneLimits(op.LaneLimits); res.Err != nil {
		return nil, res
	}
	res.lanes, res.left = q.lanes, q.left
	if op.Tenant != "" {
		q.tenant = p.tenant(op.Tenant)
	}
	if s.replayPoll(q) {
		return nil, res
	}
	if op.RequestID != "" && s.t < p.requestsFreeAt(q.highest()) {
		res.refused = Cardinality
		return nil, res
	}
	return q, res
}

// highest returns the highest lane that the poll asks for.
func (q *poll) highest() *lane { return q.pool.lanes[slices.Index(q.lanes, true)] }

// lanesNamed returns, by rank, which lanes are among the names; none means all.
func (p *pool) lanesNamed(names []string) ([]bool, *Error) {
	asked := make([]bool, len(p.lanes))
	for _, l := range p.lanes {
		asked[l.rank] = len(names) == 0
	}
	for _, name := range names {
		l := p.lane(name)
		if l == nil {
			return nil, unknownLane(p.name, "lanes", name)
		}
		asked[l.rank] = true
	}
	return asked, nil
}

// laneLimits returns, by rank, the most permits that a call takes of each lane.
func (p *pool) laneLimits(named map[string]int64) ([]int64, *Error) {
	most := make([]int64, len(p.lanes))
	for _, l := range p.lanes {
		most[l.rank] = math.MaxInt64
	}
	for _, name := range sortedKeys(named) {
		l := p.lane(name)
		if l == nil {
			return nil, unknownLane(p.name, "lane_limits", name)
		}
		most[l.rank] = max(named[name], 0)
	}
	return most, nil
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
	var batch *permitRow
	for _, token := range seen.tokens {
		h := s.holder(token)
		if h.permit == nil || h.cancelled() {
			continue
		}
		c := s.claimOf(h, s.claimed(h))
		if h.part != nil {
			if h.permit != batch {
				batch = h.permit
				q.lastBatch++
			}
			c.Batch = q.lastBatch
		}
		q.result.Claims = append(q.result.Claims, c)
	}
	return true
}

// claimOf returns a claim as its holder sees it.
func (s *State) claimOf(h holding, e *entryRow) Claim {
	return Claim{
		CatchUp: e.recur != nil && e.recur.behind > 1,
		Permit:  s.viewOf(h, s.t), Key: e.key, Category: e.category, Route: e.queue.route.name, Group: e.queue.group,
		DueAt: e.cameDue(), Attempt: e.attempts,
	}
}

// wants says whether the poll still has room for an entry of the lane.
func (q *poll) wants(l *lane) bool {
	return !q.full() && q.lanes[l.rank] && q.left[l.rank] > 0 && (q.op.Batch || !l.batch.Only)
}

// takes says whether the poll still has room for an entry of the demand.
func (q *poll) takes(d *demand) bool {
	return q.wants(d.lane) && q.mayServe(d.tenant) && !q.capped(d)
}

// mayServe says whether the poll asks for work of that tenant.
func (q *poll) mayServe(t *tenant) bool { return q.tenant == nil || q.tenant == t }

// first returns the first demand in the order that the poll asks for. Where it
// asks for one tenant alone, that is wherever the tenant stands.
func (q *poll) first(l *lane, k classKind) (position, bool) {
	if q.tenant == nil {
		return l.classes[k].first(fromEntries)
	}
	d := q.tenant.demand(l)
	if d.row == nil || d.row.seats[fromEntries].seat != seatOf(k) {
		return position{}, false
	}
	at := d.position(fromEntries)
	at.tag += l.classes[k].shift
	return at, true
}

func (q *poll) full() bool { return len(q.result.Claims) >= q.op.MaxItems }

// capped says whether the demand has had its cycle in this call.
func (q *poll) capped(d *demand) bool {
	return d.lane.cycleLimit > 0 && q.got[d] >= d.lane.cycleLimit
}

// count counts a permit that the poll is given.
func (q *poll) count(d *demand) {
	q.left[d.lane.rank]--
	if d.lane.cycleLimit > 0 {
		if q.got == nil {
			q.got = map[*demand]int64{}
		}
		if q.got[d]++; q.capped(d) {
			q.cycled = append(q.cycled, d)
		}
	}
}

// take books a claim to the poll.
func (q *poll) take(c Claim) {
	q.tokens = append(q.tokens, c.Permit.Token)
	q.result.Claims = append(q.result.Claims, c)
}

// conclude closes the poll after dispatch, when all are seated. It notes for the
// shedding who still waits and had its cycle.
func (s *State) conclude(q *poll) {
	q.result.full = q.full()
	for _, d := range q.cycled {
		if d.row.seats[fromEntries].seat.ordered() {
			q.result.cycleCapped = append(q.result.cycleCapped, demandKey{d.tenant.num, d.lane.name})
		}
	}
	if q.op.RequestID != "" && len(q.tokens) > 0 {
		s.noteRequest(&requestRow{pool: q.pool, id: q.op.RequestID, digest: q.op.digest(), tokens: q.tokens})
	}
}

// claimNonce keeps the tokens of one call's claims apart from each other.
func claimNonce(nonce uint64, i int) uint64 { return nonce + uint64(i)*0x9e3779b97f4a7c15 }
