package admission_test

import (
	"cmp"
	"maps"
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
	inLane  map[string]int64
	batches int32
}

func (c *naiveCall) full() bool { return len(c.res.Claims) >= c.op.MaxItems }

// asks says whether a call is for a demand.
func (c *naiveCall) asks(d *naiveDemand) bool {
	return c.pool.lanesKnown(c.op) == nil && (len(c.op.Lanes) == 0 || slices.Contains(c.op.Lanes, d.lane)) &&
		(c.op.Tenant == "" || c.op.Tenant == d.tenant.id)
}

// narrowed says whether a call takes no more of a lane.
func (c *naiveCall) narrowed(lane string) bool {
	limit, ok := c.op.LaneLimits[lane]
	return ok && c.inLane[lane] >= limit
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
	// by is the first waiter that lacks nothing but tokens of the pool: it reserves
	// them.
	by *naiveTurn
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
				n.noteBacklog(c, op, ask.d.lane)
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
		n.seat(p)
	}
	for _, c := range contests {
		n.yield(c.pool, c.asks)
		n.polled = len(c.calls) > 0
		n.line(c)
		for n.next(c) {
			n.seat(c.pool)
		}
		c.pool.by = c.by
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
	n.endGlances(ops, results)
}

// line gives the Acquires of an entry their places behind all that waits.
func (n *naive) line(c *naiveContest) {
	for _, ask := range c.asks {
		n.seq++
		ask.seq = n.seq
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
	if op.IssuedAt != 0 && n.w.Sub(op.IssuedAt) >= naiveWindow {
		ask.res.Err = &admission.Error{Reason: admission.StaleRequest, Field: "issued_at"}
		return ask
	}
	lane, err := p.laneOf(op.Tenant, op.Category)
	if err != nil {
		ask.res.Err = err
		return ask
	}
	ask.d = p.tenant(op.Tenant).demand(lane)
	ask.over = n.replay(p, op, ask.res) || n.attach(p, op, ask.res)
	return ask
}

func (n *naive) openCall(op *admission.NextDue) *naiveCall {
	p := n.pool(op.Pool)
	if p == nil {
		return &naiveCall{op: op, res: &admission.NextDueResult{Err: noPool(op.Pool)}, closed: true}
	}
	call := &naiveCall{op: op, res: &admission.NextDueResult{}, pool: p}
	call.taken, call.inLane = make(map[*naiveDemand]int64), make(map[string]int64)
	call.res.Err = p.lanesKnown(op)
	if call.closed = call.res.Err != nil; call.closed || op.RequestID == "" {
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

// lanesKnown says whether the pool has the lanes that a call names.
func (p *naivePool) lanesKnown(op *admission.NextDue) *admission.Error {
	fault := func(field, lane string) *admission.Error {
		return &admission.Error{
			Reason: admission.InvalidField, Field: field, Meta: []string{"pool", op.Pool, "lane", lane},
		}
	}
	for _, lane := range op.Lanes {
		if p.lane(lane) == nil {
			return fault("lanes", lane)
		}
	}
	for _, lane := range slices.Sorted(maps.Keys(op.LaneLimits)) {
		if p.lane(lane) == nil {
			return fault("lane_limits", lane)
		}
	}
	return nil
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

// byTurn is the order in which candidates are granted.
func byTurn(a, b naiveTurn) int {
	return cmp.Or(a.rank-b.rank, a.class-b.class, cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq))
}

// seated are the sources that stand in an order, first to last.
func (p *naivePool) seated() []naiveTurn {
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
	slices.SortFunc(turns, byTurn)
	return turns
}

// turns are all candidates, in order.
func (n *naive) turns(c *naiveContest) []naiveTurn {
	turns := c.pool.seated()
	for _, ask := range c.asks {
		if !ask.over {
			turns = append(turns, n.turnOf(c.pool, ask))
		}
	}
	slices.SortStableFunc(turns, byTurn)
	return turns
}

// turnOf is where an Acquire stands that came in with this entry: behind those of
// its demand that wait.
func (n *naive) turnOf(p *naivePool, ask *naiveAsk) naiveTurn {
	d, class := ask.d, n.share(p, ask.d)
	turn := naiveTurn{p.rank(d.lane), class, p.tag(d, class), ask.seq, d, slotSource, ask}
	if ask.op.RateOnly {
		turn.source = rateSource
	}
	for source, place := range d.places {
		if source != dueSource && place.class == class {
			turn.seq = max(turn.seq, place.seq)
		}
	}
	return turn
}

// next decides whoever comes first among those that can be decided, and says
// whether there was one. Nothing passes whoever reserves tokens.
func (n *naive) next(c *naiveContest) bool {
	for _, turn := range n.turns(c) {
		if turn.ask != nil {
			n.decide(c, turn)
			return true
		}
		if c.by != nil {
			continue
		}
		if turn.source == dueSource {
			if !c.room(turn.d) || len(n.limits(c.pool, turn.d.tenant.id, turn.d.lane, naiveWant{cost: 1}, n.t)) > 0 {
				continue
			}
			turn.source = turn.d.waiterIn(turn.class) // which goes before its entries
		}
		if turn.source == dueSource {
			call := n.taker(c, turn.d)
			switch {
			case call == nil: // it has had its cycle in every call
				turn.d.aside = true
			case n.head(c.pool, turn.d) != nil:
				n.claim(c.pool, turn, call)
			}
			return true
		}
		if n.serveOrReserve(c, turn) {
			return true
		}
	}
	return false
}

// serveOrReserve serves the first waiter of a source, or lets it reserve the tokens
// that it lacks.
func (n *naive) serveOrReserve(c *naiveContest, turn naiveTurn) (served bool) {
	limits := n.limits(c.pool, turn.d.tenant.id, turn.d.lane, n.headOf(c.pool, turn.d, turn.source).want, n.t)
	if len(limits) == 0 {
		n.serve(c.pool, turn)
		return true
	}
	if onlyTokens(limits) {
		c.by = &turn
	}
	return false
}

// waiterIn is the source of the waiter that goes first of those that a demand has in
// a class, or dueSource if it has none.
func (d *naiveDemand) waiterIn(class int) int {
	found := dueSource
	for _, source := range []int{slotSource, rateSource} {
		if place := d.places[source]; place.class == class && (found == dueSource || place.seq < d.places[found].seq) {
			found = source
		}
	}
	return found
}

// tagOf is the tag with which a source stands in its order.
func (d *naiveDemand) tagOf(source int) int64 {
	if source == dueSource {
		return d.places[source].tag
	}
	return d.tags[d.places[source].class]
}

// hasRoom says whether a call can take something more of what a demand is part of.
func (c *naiveCall) hasRoom(d *naiveDemand) bool {
	return !c.full() && c.asks(d) && c.admits(d.lane) && !c.narrowed(d.lane)
}

// room says whether one of the calls can.
func (c *naiveContest) room(d *naiveDemand) bool {
	return slices.ContainsFunc(c.calls, func(call *naiveCall) bool { return call.hasRoom(d) })
}

// taker is the first call that can take an entry of a demand, or nil.
func (n *naive) taker(c *naiveContest, d *naiveDemand) *naiveCall {
	for _, call := range c.calls {
		if call.hasRoom(d) && !call.capped(d) && !n.nodeFull(call, d) {
			return call
		}
	}
	return nil
}

// decide grants an Acquire, lets it wait or sheds it.
func (n *naive) decide(c *naiveContest, turn naiveTurn) {
	p := c.pool
	op, res := turn.ask.op, turn.ask.res
	turn.ask.over = true
	if n.replay(p, op, res) || n.attach(p, op, res) { // of one of this entry
		return
	}
	limits := n.askLimits(p, op, turn.d, c.by)
	if len(limits) > 0 && op.MaxWait > 0 && !answered(limits) && !p.policy.Shadow {
		full := n.queueLimits(p, op.Tenant, turn.d.lane)
		if len(full) == 0 {
			n.wait(p, turn.ask)
			if c.by == nil && onlyTokens(limits) {
				c.by = &turn
			}
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

// askLimits are all that holds an Acquire that is not in line.
func (n *naive) askLimits(p *naivePool, op *admission.Acquire, d *naiveDemand, by *naiveTurn) []naiveLimit {
	limits := n.limits(p, op.Tenant, d.lane, wantOf(op), n.t)
	limits = append(limits, n.lockLimits(p, op, n.seq+1)...)
	limits = append(limits, n.duplicates(p, op, n.t)...)
	limits = append(limits, n.memoryLimits(p, op, d.lane)...)
	before := append(n.reserved(p, by, n.t), n.shortBefore(d, n.seq+1, n.t)...)
	return p.behind(limits, before, d.lane, op.Cost)
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
	d := n.hand(p, op, permit, admission.Decision{Borrowed: turn.class == borrowing})
	if op.DedupeKey != "" && d.Permit.State == admission.PermitLive { // whoever waits to do the same is told
		for _, w := range n.waitersOf(p, func(w *naiveWaiter) bool {
			return w.op.Tenant == op.Tenant && w.op.DedupeKey == op.DedupeKey
		}) {
			n.endShed(w)
		}
	}
	return d
}

// hand gives a permit to who asked for it, and remembers for which request.
func (n *naive) hand(p *naivePool, op *admission.Acquire, permit *naivePermit, d admission.Decision) admission.Decision {
	permit.token.Nonce, permit.ttl = op.Nonce, orElse(op.TTL, p.policy.PermitTTL)
	permit.expires = n.leaseNow().Add(permit.ttl)
	permit.lockKey, permit.dedupeKey = op.LockKey, op.DedupeKey
	d.Permit = n.holder(permit)
	if op.RateOnly && !op.Settle {
		n.permits = deleteIf(n.permits, func(other *naivePermit) bool { return other == permit })
		n.touch(p, p.tenant(op.Tenant))
		d.Permit.State, d.Permit.ExpiresIn, d.Permit.Token = admission.PermitSpent, 0, admission.Token{}
	}
	if op.RequestID != "" {
		n.requests = append(n.requests, naiveRequest{
			pool: p, tenant: op.Tenant, id: op.RequestID, body: bodyOf(op), at: n.t, permit: d.Permit,
		})
	}
	return d
}

// rotate puts the route that was served behind the others.
func (d *naiveDemand) rotate(route string) {
	d.ring = append(deleteIf(d.ring, func(name string) bool { return name == route }), route)
}

// grant makes a permit, takes the tokens and moves the tag on.
func (n *naive) grant(p *naivePool, turn naiveTurn, cost int64) *naivePermit {
	permit := n.issue(p, turn, cost)
	permit.borrowed = turn.class == borrowing
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
		pool: p, tenant: turn.d.tenant.id, lane: turn.d.lane, cost: cost, granted: n.t,
	}
	n.permits = append(n.permits, permit)
	n.meet(p, turn.d.tenant)
	return permit
}
