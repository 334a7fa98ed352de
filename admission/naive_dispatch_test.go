package admission_test

import (
	"cmp"
	"slices"

	"github.com/admitd/admit/admission"
)

// naiveAsk is an Acquire whose turn has not come.
type naiveAsk struct {
	op       *admission.Acquire
	res      *admission.AcquireResult
	d        *naiveDemand
	seq      uint64
	position uint32
	over     bool
}

// naiveCall is a NextDue while it is served, and what is to be known of it after.
type naiveCall struct {
	op      *admission.NextDue
	res     *admission.NextDueResult
	pool    *naivePool
	refused admission.Reason
	closed  bool // replayed, refused or not decided
	taken   map[*naiveDemand]int64
	batches int32
}

func (c *naiveCall) full() bool { return len(c.res.Claims) >= c.op.MaxItems }

func (c *naiveCall) asks(lane string) bool {
	return len(c.op.Lanes) == 0 || slices.Contains(c.op.Lanes, lane)
}

// capped says whether a demand has had its part of the call.
func (c *naiveCall) capped(d *naiveDemand) bool {
	limit := c.pool.policy.Lanes[c.pool.rank(d.lane)].TenantCycleLimit
	return limit > 0 && c.taken[d] >= limit
}

// naiveContest is what is asked of one pool in an entry.
type naiveContest struct {
	pool  *naivePool
	asks  []*naiveAsk
	calls []*naiveCall
	// echoes have the request id of a call before them.
	echoes []*naiveCall
}

// dispatch answers all that an entry asks for, pool by pool in the order of the
// entry.
func (n *naive) dispatch(ops []admission.Op, results []admission.Result) {
	for _, p := range n.pools {
		n.endAnswered(p)
		n.seat(p)
	}
	var contests []*naiveContest
	in := func(p *naivePool) *naiveContest {
		for _, c := range contests {
			if c.pool == p {
				return c
			}
		}
		contests = append(contests, &naiveContest{pool: p})
		return contests[len(contests)-1]
	}
	for i, op := range ops {
		switch op := op.(type) {
		case *admission.Acquire:
			ask := n.open(op, uint32(i))
			if results[i] = ask.res; !ask.over {
				c := in(n.pool(op.Pool))
				c.asks = append(c.asks, ask)
			}
		case *admission.NextDue:
			call := n.openCall(op)
			n.calls = append(n.calls, call)
			if results[i] = call.res; !call.closed {
				in(call.pool).join(call)
			}
		}
	}
	for _, p := range n.pools { // those in which somebody may wait come last
		in(p)
	}
	for _, c := range contests {
		n.yield(c.pool, c.asks)
		n.polled = len(c.calls) > 0
		for n.next(c) {
			n.endAnswered(c.pool)
			n.seat(c.pool)
		}
		c.pool.endAside()
		n.seat(c.pool)
		for _, call := range c.calls {
			n.closeCall(call)
		}
		for _, call := range c.echoes {
			if r, ok := n.request(c.pool, "", call.op.RequestID); ok {
				n.replayCall(call, r)
			}
		}
	}
	for _, p := range n.pools {
		n.endBusyPeriods(p)
	}
}

// join adds a call; one that is sent twice is served once.
func (c *naiveContest) join(call *naiveCall) {
	for _, other := range c.calls {
		if other.op.RequestID != "" && other.op.RequestID == call.op.RequestID {
			call.closed = true
			c.echoes = append(c.echoes, call)
			return
		}
	}
	c.calls = append(c.calls, call)
}

func (n *naive) open(op *admission.Acquire, position uint32) *naiveAsk {
	ask := &naiveAsk{op: op, res: &admission.AcquireResult{}, position: position, over: true}
	p := n.pool(op.Pool)
	if p == nil {
		ask.res.Err = noPool(op.Pool)
		return ask
	}
	lane, err := p.laneOf(op.Tenant, op.Category)
	if err != nil {
		ask.res.Err = err
		return ask
	}
	ask.d = p.tenant(op.Tenant).demand(lane)
	if op.Backlog != admission.Absent {
		n.note(p, op.Tenant, lane, op.Backlog, 0)
	}
	ask.over = n.replay(p, op, ask.res) || n.attach(p, op, ask.res)
	n.seq++
	ask.seq = n.seq
	return ask
}

func (n *naive) openCall(op *admission.NextDue) *naiveCall {
	p := n.pool(op.Pool)
	if p == nil {
		return &naiveCall{op: op, res: &admission.NextDueResult{Err: noPool(op.Pool)}, closed: true}
	}
	call := &naiveCall{op: op, res: &admission.NextDueResult{}, pool: p, taken: make(map[*naiveDemand]int64)}
	for _, lane := range op.Lanes {
		if p.lane(lane) == nil {
			call.closed = true
			call.res.Err = &admission.Error{
				Reason: admission.InvalidField, Field: "lanes",
				Meta: []string{"pool", op.Pool, "lane", lane},
			}
			return call
		}
	}
	if op.RequestID == "" {
		return call
	}
	if r, ok := n.request(p, "", op.RequestID); ok {
		call.closed = true
		n.replayCall(call, r)
	} else if int64(len(n.requestsOf(p))) >= p.part(p.highest(op), p.policy.Limits.RequestIDs) {
		call.closed, call.refused = true, admission.Cardinality
	}
	return call
}

// naiveTurn is a candidate for what is granted next: a source of a demand or an
// Acquire.
type naiveTurn struct {
	rank, class int
	tag         int64
	seq         uint64
	d           *naiveDemand
	source      int
	ask         *naiveAsk
}

// turns are all candidates, in order.
func (n *naive) turns(c *naiveContest) []naiveTurn {
	p := c.pool
	var turns []naiveTurn
	for _, t := range p.tenants {
		for _, d := range t.demands {
			for source, place := range d.places {
				if place.class != noClass {
					turns = append(turns, naiveTurn{
						p.rank(d.lane), place.class, d.tagOf(source), place.seq, d, source, nil,
					})
				}
			}
		}
	}
	for _, ask := range c.asks {
		if !ask.over {
			d, class := ask.d, n.share(p, ask.d)
			turn := naiveTurn{p.rank(d.lane), class, p.tag(d, class), ask.seq, d, slotSource, ask}
			if ask.op.RateOnly {
				turn.source = rateSource
			}
			if place := d.places[turn.source]; place.class == class {
				turn.seq = max(turn.seq, place.seq) // behind those who asked before
			}
			turns = append(turns, turn)
		}
	}
	slices.SortStableFunc(turns, func(a, b naiveTurn) int {
		return cmp.Or(a.rank-b.rank, a.class-b.class, cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq))
	})
	return turns
}

// next decides whoever comes first among those that can be decided, and says
// whether there was one. The first waiter that lacks nothing but tokens of the
// pool reserves those: nothing behind it passes.
func (n *naive) next(c *naiveContest) bool {
	var reserved []naiveLimit
	for _, turn := range n.turns(c) {
		if turn.ask != nil {
			n.decide(c.pool, turn, reserved)
			return true
		}
		limits := n.limits(c.pool, turn.d.tenant.id, turn.d.lane, n.headOf(c.pool, turn.d, turn.source).want, n.t)
		switch {
		case len(limits) > 0 && turn.source != dueSource && onlyTokens(limits):
			reserved = append(reserved, limits...)
		case len(limits) > 0 || len(reserved) > 0:
		case turn.source != dueSource:
			n.serve(c.pool, turn)
			return true
		case c.room(turn.d.lane):
			if call := c.taker(turn.d); call != nil {
				n.claim(c.pool, turn, call)
			} else { // it has had its cycle in every call
				turn.d.aside = true
			}
			return true
		}
	}
	return false
}

// tagOf is the tag with which a source stands in its order.
func (d *naiveDemand) tagOf(source int) int64 {
	if source == dueSource {
		return d.places[source].tag
	}
	return d.tags[d.places[source].class]
}

// onlyTokens says whether limits are all of tokens that the pool will have.
func onlyTokens(limits []naiveLimit) bool {
	return !slices.ContainsFunc(limits, func(l naiveLimit) bool {
		return l.reason != admission.PoolRate && l.reason != admission.ProviderPaused
	})
}

// room says whether a call can take something more of a lane.
func (c *naiveContest) room(lane string) bool {
	return slices.ContainsFunc(c.calls, func(call *naiveCall) bool { return !call.full() && call.asks(lane) && call.admits(lane) })
}

// taker is the first call that can take an entry of a demand, or nil.
func (c *naiveContest) taker(d *naiveDemand) *naiveCall {
	for _, call := range c.calls {
		if !call.full() && call.asks(d.lane) && call.admits(d.lane) && !call.capped(d) {
			return call
		}
	}
	return nil
}

// decide grants an Acquire, lets it wait or sheds it.
func (n *naive) decide(p *naivePool, turn naiveTurn, reserved []naiveLimit) {
	op, res := turn.ask.op, turn.ask.res
	turn.ask.over = true
	if n.replay(p, op, res) || n.attach(p, op, res) { // of one of this entry
		return
	}
	limits := n.limits(p, op.Tenant, turn.d.lane, wantOf(op), n.t)
	limits = append(limits, n.lockLimits(p, op)...)
	limits = append(limits, n.duplicates(p, op, n.t)...)
	limits = append(limits, n.memoryLimits(p, op, turn.d.lane)...)
	limits = n.ahead(p, turn, limits, reserved)
	if len(limits) > 0 && op.MaxWait > 0 && !answered(limits) && !p.policy.Shadow {
		full := n.queueLimits(p, op.Tenant)
		if len(full) == 0 {
			n.wait(p, turn.ask)
			return
		}
		limits = append(limits, full...)
	}
	if len(limits) == 0 {
		res.Decision = n.permit(p, turn, op)
		return
	}
	res.Decision.Shed = n.shed(turn.d.lane, limits, n.t)
	res.Decision.Shed.RetryAfter = millis(n.back(p, turn.d.tenant, turn.d.lane, retryAfter(limits)))
	if p.policy.Shadow {
		res.Decision = n.pass(p, turn, op, res.Decision.Shed)
	}
}

// ahead adds to what holds an Acquire the tokens that others wait for before it.
func (n *naive) ahead(p *naivePool, turn naiveTurn, limits, reserved []naiveLimit) []naiveLimit {
	if queue := n.queue(turn.d, turn.source); len(queue) > 0 {
		for _, l := range n.ownLimits(p, turn.d.tenant.id, turn.d.lane, wantOf(queue[0].op), n.t) {
			if l.reason == admission.TenantRate {
				reserved = append(reserved, l)
			}
		}
	}
	for _, r := range reserved {
		same := func(l naiveLimit) bool { return l.Name == r.Name && l.Scope == r.Scope }
		for _, b := range p.policy.Buckets {
			if b.Name == r.Name && b.PerPermit {
				r.Asked = 1
			} else if b.Name == r.Name {
				r.Asked = turn.ask.op.Cost
			}
		}
		if r.Scope == admission.ScopePool {
			r.Reserve = p.leave(turn.d.lane, r.Name)
		}
		r.RetryAfter = admission.Absent
		limits = append(deleteIf(limits, same), r)
	}
	return limits
}

// serve grants the first waiter of a source.
func (n *naive) serve(p *naivePool, turn naiveTurn) {
	w := n.queue(turn.d, turn.source)[0]
	n.waiters = deleteIf(n.waiters, func(other *naiveWaiter) bool { return other == w })
	n.end(w, &admission.AcquireResult{Decision: n.permit(p, turn, w.op)})
}

// permit grants an Acquire.
func (n *naive) permit(p *naivePool, turn naiveTurn, op *admission.Acquire) admission.Decision {
	permit := n.grant(p, turn, op.Cost)
	permit.uncounted = op.RateOnly
	return n.hand(p, op, permit, admission.Decision{Borrowed: turn.class == borrowing})
}

// hand gives a permit to who asked for it, and remembers for which request.
func (n *naive) hand(p *naivePool, op *admission.Acquire, permit *naivePermit, d admission.Decision) admission.Decision {
	permit.token.Nonce, permit.ttl = op.Nonce, orElse(op.TTL, p.policy.PermitTTL)
	permit.expires = n.leaseNow().Add(permit.ttl)
	permit.lockKey, permit.dedupeKey = op.LockKey, op.DedupeKey
	d.Permit = n.holder(permit)
	if op.RateOnly && !op.Settle {
		n.permits = deleteIf(n.permits, func(other *naivePermit) bool { return other == permit })
		d.Permit.State, d.Permit.ExpiresIn, d.Permit.Token = admission.PermitSpent, 0, admission.Token{}
	}
	if op.RequestID != "" {
		n.requests = append(n.requests, naiveRequest{
			pool: p, tenant: op.Tenant, id: op.RequestID, body: bodyOf(op), at: n.t, permit: d.Permit,
		})
	}
	return d
}

// rotate puts the route that was served behind the others, if it goes on.
func (d *naiveDemand) rotate(p *naivePool, route string, w admission.Wall) {
	d.ring = append(deleteIf(d.ring, func(name string) bool { return name == route }), route)
	d.prune(p, w)
}

// grant makes a permit, takes the tokens and moves the tag on.
func (n *naive) grant(p *naivePool, turn naiveTurn, cost int64) *naivePermit {
	permit := n.issue(p, turn, cost)
	for i, policy := range p.policy.Buckets {
		amount := cost
		if policy.PerPermit {
			amount = 1
		}
		b := permit.bucket(i)
		b.take(p.bucketTerms(i, permit.tenant), n.t, amount)
		permit.charged = append(permit.charged, naiveCharge{b, policy.Name, amount, !policy.PerPermit})
	}
	n.charge(p, turn)
	return permit
}

// issue makes a permit.
func (n *naive) issue(p *naivePool, turn naiveTurn, cost int64) *naivePermit {
	n.grants++
	n.granted++
	permit := &naivePermit{
		token: admission.Token{Index: n.index, Position: n.granted}, fence: n.grants,
		pool: p, tenant: turn.d.tenant.id, lane: turn.d.lane, cost: cost,
	}
	n.permits = append(n.permits, permit)
	n.meet(p, turn.d.tenant)
	return permit
}
