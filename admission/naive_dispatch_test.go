package admission_test

import (
	"cmp"
	"slices"

	"github.com/admitd/admit/admission"
)

// naiveAsk is an Acquire whose turn has not come.
type naiveAsk struct {
	op   *admission.Acquire
	res  *admission.AcquireResult
	d    *naiveDemand
	seq  uint64
	over bool
}

// naiveCall is a NextDue while it is served, and what is to be known of it after.
type naiveCall struct {
	op      *admission.NextDue
	res     *admission.NextDueResult
	pool    *naivePool
	refused admission.Reason
	closed  bool // replayed, refused or not decided
	taken   map[*naiveDemand]int64
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
			ask := n.open(op)
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
	for _, c := range contests {
		for n.next(c) {
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

func (n *naive) open(op *admission.Acquire) *naiveAsk {
	ask := &naiveAsk{op: op, res: &admission.AcquireResult{}, over: true}
	p := n.pool(op.Pool)
	if p == nil {
		ask.res.Err = noPool(op.Pool)
		return ask
	}
	lane, ok := p.laneOf(op.Tenant, op.Category)
	if !ok {
		ask.res.Err = noCategory(op.Pool, op.Category)
		return ask
	}
	ask.d = p.tenant(op.Tenant).demand(lane)
	ask.over = n.replay(p, op, ask.res)
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
	} else if int64(len(n.requestsOf(p))) >= p.policy.Limits.RequestIDs {
		call.closed, call.refused = true, admission.Cardinality
	}
	return call
}

// naiveTurn is a candidate for what is granted next.
type naiveTurn struct {
	rank, class int
	tag         int64
	seq         uint64
	d           *naiveDemand
	ask         *naiveAsk  // or
	call        *naiveCall // the one that takes the entry; nil sets the demand aside
}

// next decides whoever comes first among those that can be decided, and says
// whether there was one.
func (n *naive) next(c *naiveContest) bool {
	p := c.pool
	var turns []naiveTurn
	for _, ask := range c.asks {
		if ask.over {
			continue
		}
		class := n.share(p, ask.d)
		turns = append(turns, naiveTurn{
			rank: p.rank(ask.d.lane), class: class, tag: p.tag(ask.d, class), seq: ask.seq, d: ask.d, ask: ask,
		})
	}
	for _, t := range p.tenants {
		for _, d := range t.demands {
			if d.class != noClass && c.room(d.lane) && len(n.limits(p, t.id, d.lane, 1, n.t)) == 0 {
				turns = append(turns, naiveTurn{
					rank: p.rank(d.lane), class: d.class, tag: d.tags[d.class], seq: d.seq, d: d, call: c.taker(d),
				})
			}
		}
	}
	if len(turns) == 0 {
		return false
	}
	turn := slices.MinFunc(turns, func(a, b naiveTurn) int {
		return cmp.Or(a.rank-b.rank, a.class-b.class, cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq))
	})
	switch {
	case turn.ask != nil:
		n.decide(p, turn)
	case turn.call != nil:
		n.claim(p, turn)
	default: // it has had its cycle in every call
		turn.d.aside = true
	}
	return true
}

// room says whether a call can take something more of a lane.
func (c *naiveContest) room(lane string) bool {
	return slices.ContainsFunc(c.calls, func(call *naiveCall) bool { return !call.full() && call.asks(lane) })
}

// taker is the first call that can take an entry of a demand, or nil.
func (c *naiveContest) taker(d *naiveDemand) *naiveCall {
	for _, call := range c.calls {
		if !call.full() && call.asks(d.lane) && !call.capped(d) {
			return call
		}
	}
	return nil
}

// decide grants an Acquire or sheds it.
func (n *naive) decide(p *naivePool, turn naiveTurn) {
	op, res := turn.ask.op, turn.ask.res
	turn.ask.over = true
	if n.replay(p, op, res) { // of one of this entry
		return
	}
	limits := n.limits(p, op.Tenant, turn.d.lane, op.Cost, n.t)
	limits = append(limits, n.memoryLimits(p, op)...)
	if len(limits) > 0 {
		res.Decision.Shed = n.shed(turn.d.lane, limits, n.t)
		return
	}
	permit := n.grant(p, turn, op.Cost)
	permit.token.Nonce, permit.ttl = op.Nonce, orElse(op.TTL, p.policy.PermitTTL)
	permit.expires = n.leaseNow().Add(permit.ttl)
	res.Decision.Permit = n.holder(permit)
	if op.RequestID != "" {
		body := *op
		body.Nonce = 0
		n.requests = append(n.requests, naiveRequest{
			pool: p, tenant: op.Tenant, id: op.RequestID, body: body, at: n.t,
			permit: res.Decision.Permit,
		})
	}
}

// claim grants the head of a demand to a call.
func (n *naive) claim(p *naivePool, turn naiveTurn) {
	call, e := turn.call, p.head(turn.d, n.w)
	permit := n.grant(p, turn, 1)
	permit.token.Nonce = call.op.Nonce + uint64(len(call.res.Claims))*0x9e3779b97f4a7c15
	permit.ttl = orElse(call.op.TTL, p.policy.PermitTTL)
	permit.expires = n.leaseNow().Add(permit.ttl)
	permit.entry, e.claim = e, permit
	e.attempts++
	e.measure(p, n.w)
	turn.d.rotate(p, e.spec.Route, n.w)
	call.taken[turn.d]++
	call.res.Claims = append(call.res.Claims, admission.Claim{
		Permit: n.holder(permit), Key: e.spec.Key, Category: e.spec.Category, Route: e.spec.Route,
		Group: e.spec.Group, DueAt: e.first, Attempt: e.attempts, CatchUp: e.left > 1,
	})
}

// rotate puts the route that was served behind the others, if it goes on.
func (d *naiveDemand) rotate(p *naivePool, route string, w admission.Wall) {
	d.ring = append(deleteIf(d.ring, func(name string) bool { return name == route }), route)
	d.prune(p, w)
}

// grant makes a permit, takes the tokens and moves the tag on.
func (n *naive) grant(p *naivePool, turn naiveTurn, cost int64) *naivePermit {
	n.grants++
	n.granted++
	permit := &naivePermit{
		token: admission.Token{Index: n.index, Position: n.granted}, fence: n.grants,
		pool: p, tenant: turn.d.tenant.id, lane: turn.d.lane, cost: cost,
	}
	n.permits = append(n.permits, permit)
	turn.d.tenant.meet()
	for i, policy := range p.policy.Buckets {
		amount := cost
		if policy.PerPermit {
			amount = 1
		}
		b := permit.bucket(i)
		b.take(p.bucketTerms(i, permit.tenant), n.t, amount)
		permit.charged = append(permit.charged, naiveCharge{b, policy.Name, amount, !policy.PerPermit})
	}
	n.charge(p, turn.d, turn.class)
	return permit
}
