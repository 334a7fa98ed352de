package admission

import (
	"fmt"
	"slices"

	"github.com/tidwall/btree"
)

// checkQueues checks where each queue stands: with its head due among those that
// are offered, else among the dormant.
func (c *census) checkQueues() {
	c.offered, c.parked = map[*route][]*queue{}, map[*demand][]*queue{}
	dormant, ripening := map[*lane]int{}, map[*lane]int{}
	ready, queues := 0, map[*route]int{}
	for key, q := range c.queuesByName.rows {
		d := q.route.demand
		where := fmt.Sprintf("queue %s/%s/%q/%q", d.tenant.id, d.lane.name, q.route.name, q.group)
		c.equal(where+" is keyed by its names", key, q.key())
		c.equal(where+" is of a known route", c.routes.get(routeKey{d, q.route.name}) == q.route, true)
		c.equal(where+" queued", q.queued, c.queued[q])
		c.equal(where+" retries", q.retries, c.retries[q])
		c.equal(where+" is needed", q.queued > 0, true)
		_, paused := c.pausedGroups.Get(pausedGroup{d.tenant, q.group})
		c.equal(where+" is paused", q.paused, paused)
		queues[q.route]++
		inLine, anyInLine := q.firstIn(c.line)
		if q.row == nil {
			dormant[d.lane]++
			c.equal(where+" sleeps until", q.sleeps, c.soonest(q, inLine, anyInLine))
			_, ok := d.lane.dormant.Get(q.sleeps)
			c.equal(where+" is dormant", ok, true)
			c.equal(where+" has no due entry counted", q.ripe, int64(0))
			continue
		}
		ready++
		found, ok := c.dueQueues.Get(q.row.item())
		c.equal(where+" has its row", ok && found.row == q.row, true)
		c.checkReady(where, q, inLine, anyInLine)
		if q.sleeps.queue != nil {
			ripening[d.lane]++
		}
		if q.paused {
			c.parked[d] = append(c.parked[d], q)
			continue
		}
		c.offered[q.route] = append(c.offered[q.route], q)
	}
	c.equal("ready queues", c.dueQueues.Len(), ready)
	c.checkRoutes(queues)
	for _, p := range c.pools.list {
		for _, l := range p.lanes {
			c.equal("lane "+p.name+"/"+l.name+" dormant", l.dormant.Len(), dormant[l])
			c.equal("lane "+p.name+"/"+l.name+" ripening", l.ripening.Len(), ripening[l])
		}
	}
}

// checkRoutes checks that a route is headed by the first of its queues that may
// be served, and that one of those keeps its turn.
func (c *census) checkRoutes(queues map[*route]int) {
	c.turning = map[*demand]int{}
	for key, r := range c.routes.rows {
		where := fmt.Sprintf("route %s/%s/%q", r.demand.tenant.id, r.demand.lane.name, r.name)
		c.equal(where+" is keyed by its names", key, routeKey{r.demand, r.name})
		c.equal(where+" queues", r.queues, queues[r])
		c.equal(where+" is needed", r.queues > 0, true)
		offered := c.offered[r]
		c.equal(where+" ready queues", len(r.ready), len(offered))
		c.equal(where+" is in a ring", r.next != nil, len(offered) > 0)
		if len(offered) == 0 {
			c.equal(where+" has no head and no turn", r.headed == place{} && r.turns == nil, true)
			continue
		}
		c.turning[r.demand]++
		first := slices.MinFunc(offered, func(a, b *queue) int { return a.headed.compare(b.headed) })
		c.equal(where+" serves the first", r.ready[0] == first, true)
		c.equal(where+" is headed by", r.headed, first.headed)
		c.equal(where+" is in heads", r.demand.heads[r.top] == r, true)
		c.equal(where+" is no older than the first of heads", r.headed.compare(r.demand.heads[0].headed) >= 0, true)
		for _, q := range offered {
			c.equal(where+" has its ready queues in place", r.ready[q.at] == q, true)
			c.equal(where+" has one turn", q.row.turn != 0, q == r.turns)
		}
	}
	for d, parked := range c.parked {
		for _, q := range parked {
			c.equal(q.group+" is parked without a turn", q.row.turn, uint64(0))
			c.equal(q.group+" is in its place", d.parked[q.at] == q, true)
			c.equal(q.group+" is no older than the first", q.headed.compare(d.parked[0].headed) >= 0, true)
		}
	}
}

// soonest returns when something in line from first on, or delayed, is due.
func (c *census) soonest(q *queue, first spot, any bool) queueDue {
	at := queueDue{}
	if any {
		at = queueDue{first.at, q}
	}
	c.delayed.Scan(func(d spot) bool {
		if d.queue == q.num && (at.queue == nil || d.at.compare(at.at) < 0) {
			at = queueDue{d.at, q}
		}
		return true
	})
	return at
}

func (c *census) checkReady(where string, q *queue, inLine spot, anyInLine bool) {
	ripe := int64(0)
	next, anyNext := spot{}, false
	c.line.Scan(func(s spot) bool {
		if s.queue == q.num {
			if s.at.compare(q.row.ripe) <= 0 {
				ripe++
			} else if !anyNext {
				next, anyNext = s, true
			}
		}
		return true
	})
	c.equal(where+" due", q.ripe, ripe)
	c.equal(where+" ripens next", q.sleeps, c.soonest(q, next, anyNext))
	if q.sleeps.queue != nil {
		_, ok := q.route.demand.lane.ripening.Get(q.sleeps)
		c.equal(where+" is ripening", ok, true)
	}
	c.equal(where+" has a head", anyInLine, true)
	c.equal(where+" is headed by", q.headed, inLine.at)
}

// checkGroups checks that each named group knows its queues, and what is counted
// of those that are paused.
func (c *census) checkGroups() {
	grouped := 0
	for key, queues := range c.grouped.rows {
		c.equal("group "+key.name+" has queues", len(queues) > 0, true)
		for i, q := range queues {
			grouped++
			c.equal("group "+key.name+" knows its queues", q.sibling == i && q.group == key.name && q.route.demand.tenant == key.tenant, true)
			c.equal("group "+key.name+" has living queues", c.queuesByName.get(q.key()) == q, true)
		}
	}
	named := 0
	for key := range c.queuesByName.rows {
		if key.group != "" {
			named++
		}
	}
	c.equal("queues of groups", grouped, named)
	tenants, pools := map[*tenant]int{}, map[*pool]int64{}
	c.pausedGroups.Scan(func(g pausedGroup) bool {
		tenants[g.tenant]++
		pools[g.tenant.pool]++
		c.equal("paused group "+g.name+" is of a known tenant", g.tenant.pool.tenants.get(g.tenant.id) == g.tenant, true)
		return true
	})
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" paused groups", p.pausedGroups, pools[p])
		for _, t := range p.tenants.rows {
			c.equal("tenant "+t.id+" paused groups", t.pausedGroups, tenants[t])
		}
	}
}

// checkDemands checks each demand's ring, counts and seat.
func (c *census) checkDemands() {
	c.demands.Scan(func(i demandItem) bool {
		row := i.row
		d := row.demand
		where := "demand " + d.tenant.id + "/" + d.lane.name
		turn, n, due := uint64(0), 0, int64(0)
		for r := d.ring.front; r != nil; {
			c.equal(where+" has routes of its own in the ring", r.turns != nil && r.demand == d && r.next.prev == r, true)
			c.equal(where+" ring is in order of turns", r.turns.row.turn > turn, true)
			turn = r.turns.row.turn
			n++
			for _, q := range r.ready {
				due += q.ripe
			}
			if r = r.next; r == d.ring.front {
				break
			}
		}
		c.equal(where+" ring", n, c.turning[d])
		c.equal(where+" due", d.due, due)
		parked := int64(0)
		for _, q := range c.parked[d] {
			parked += q.ripe
		}
		c.equal(where+" due of paused groups", d.parkedDue, parked)
		c.equal(where+" ready queues of paused groups", len(d.parked), len(c.parked[d]))
		c.equal(where+" heads", len(d.heads), c.turning[d])
		c.checkSeat(where, d)
		return true
	})
}

// checkSeat checks that each source of a demand sits where its class says, and is
// findable there [I7].
func (c *census) checkSeat(where string, d *demand) {
	for src := range sourceCount {
		own, where := d.row.seats[src], fmt.Sprintf("%s source %d", where, src)
		to, wakeAt := c.classify(d, src)
		c.equal(where+" seat", own.seat, to)
		if wakeAt == never {
			wakeAt = 0
		}
		c.equal(where+" wakes", own.wakeAt, wakeAt)
		if own.wakeAt != 0 {
			_, ok := d.tenant.pool.wakeups(src).Get(wakeup{own.wakeAt, d, src})
			c.equal(where+" waits for tokens", ok, true)
		}
		if !own.seat.ordered() || src >= orderedSources {
			continue
		}
		class := &d.lane.classes[own.seat.class()]
		at, ok := class.orders[src].Get(d.position(src))
		c.equal(where+" is in the order", ok && at.demand == d && at.source == src, true)
		if src == fromEntries {
			at.tag += class.shift
		}
		c.equal(where+" tag is at the floor or above", at.tag >= class.floor, true)
	}
	c.equal(where+" stands", d.row.standing, c.standingOf(d))
	if d.row.seats[fromEntries].seat.ordered() {
		oldest, _ := d.oldestDue()
		c.equal(where+" oldest due entry", oldest, c.firstInRing(d))
	}
	if d.row.standing.listed.demand != nil {
		_, ok := d.lane.oldest.Get(d.row.standing.listed)
		c.equal(where+" is listed as servable", ok, true)
	}
	if key := d.row.standing.entitled(); key.demand != nil {
		_, ok := d.lane.entitled.Get(key)
		c.equal(where+" is listed as entitled", ok, true)
	}
}

// firstInRing returns when the oldest entry of the routes in the ring came due.
func (c *census) firstInRing(d *demand) (oldest Wall) {
	oldest = 1<<63 - 1
	for r := d.ring.front; r != nil; {
		if first := r.ready[0].headed.first; first < oldest {
			oldest = first
		}
		if r = r.next; r == d.ring.front {
			break
		}
	}
	return oldest
}

// checkLanes checks what is counted for a lane over its demands.
func (c *census) checkLanes(p *pool) {
	rates, waiterRates, reports := 0, 0, 0
	for rank, l := range p.lanes {
		where := "lane " + p.name + "/" + l.name
		c.equal(where+" rank", l.rank, rank)
		c.equal(where+" is of its pool", l.pool == p, true)
		c.equal(where+" reserves", len(l.leaveTokens), len(p.buckets))
		counted := &lane{}
		listed, entitled := 0, 0
		var ordered [classCount][orderedSources]int
		for _, t := range p.tenants.rows {
			for _, d := range t.demands {
				if d.lane != l {
					continue
				}
				counted.count(&d.row.standing, 1)
				counted.depth += d.row.standing.depth
				counted.kept += d.row.standing.kept
				if d.row.standing.listed.demand != nil {
					listed++
				}
				if d.row.standing.entitled().demand != nil {
					entitled++
				}
				for src := range sourceCount {
					at := d.row.seats[src]
					if at.seat.ordered() && src < orderedSources {
						ordered[at.seat.class()][src]++
					}
					if at.wakeAt != 0 && p.wakeups(src) == p.rates {
						rates++
					} else if at.wakeAt != 0 {
						waiterRates++
					}
				}
				if d.row.reported != 0 {
					reports++
				}
				for k := range l.classes {
					c.equal(where+" top is the highest tag", d.row.tags[k] <= max(l.classes[k].top, l.classes[k].floor), true)
				}
			}
		}
		c.equal(where+" held", l.held, counted.held)
		c.equal(where+" open", l.open, counted.open)
		c.equal(where+" depth", l.depth, counted.depth)
		c.equal(where+" kept", l.kept, counted.kept)
		c.equal(where+" oldest", l.oldest.Len(), listed)
		c.equal(where+" entitled", l.entitled.Len(), entitled)
		for k := range l.classes {
			for src, order := range l.classes[k].orders {
				c.equal(where+" order", order.Len(), ordered[k][src])
			}
			c.equal(where+" is at rest", l.classes[k].stirred, false)
		}
	}
	c.equal("pool "+p.name+" rates", p.rates.Len(), rates)
	c.equal("pool "+p.name+" rates of waiters", p.waiterRates.Len(), waiterRates)
	c.equal("pool "+p.name+" reports", p.reports.Len(), reports)
}

// checkTenants checks what is counted over a pool's tenants.
func (c *census) checkTenants(p *pool) {
	strangers, wanting, idle, spare := int64(0), 0, 0, 0
	mostEntries, mostWaiting := int64(0), int64(0)
	for id, t := range p.tenants.rows {
		where := "tenant " + p.name + "/" + id
		found, ok := c.tenants.Get(tenantItem{num: t.num})
		c.equal(where+" is known", ok && found.row == t.row && t.id == id && t.pool == p, true)
		c.equal(where+" share", *t.share, *p.shareOf(id))
		named, ok := p.named.Get(t)
		c.equal(where+" is named", ok && named == t, true)
		c.equal(where+" buckets", len(t.row.buckets), len(p.fairUse))
		if p.overrides[id] == nil && p.puts[id] == nil && !t.row.spare {
			strangers++
		}
		wants := 0
		reports := int64(0)
		for _, d := range t.demands {
			if d.row.standing.wants {
				wants++
			}
			if d.row.reported != 0 {
				reports++
			}
		}
		c.equal(where+" reports", t.reports, reports)
		c.equal(where+" wants", t.wanting, wants)
		if wants > 0 {
			wanting++
			_, ok := p.wanting.Get(t.wish())
			c.equal(where+" is wanting", ok, true)
		}
		mostEntries, mostWaiting = max(mostEntries, t.entries), max(mostWaiting, t.waiting)
		switch c.checkIdle(where, t); {
		case t.row.spare:
			spare++
		case t.row.idleAt != 0:
			idle++
		}
		for i, spec := range t.share.buckets {
			c.checkBucket(where+" bucket "+spec.name, spec, &t.row.buckets[i], t.shares)
		}
	}
	c.equal("pool "+p.name+" named", p.named.Len(), p.tenants.len())
	puts := 0
	c.puts.Scan(func(r *putRow) bool {
		if r.pool == p {
			puts++
			c.equal("pool "+p.name+" row of "+r.tenant.ID, p.puts[r.tenant.ID] == r, true)
		}
		return true
	})
	c.equal("pool "+p.name+" rows", len(p.puts), puts)
	c.equal("pool "+p.name+" strangers", p.strangers, strangers)
	c.equal("pool "+p.name+" wanting", p.wanting.Len(), wanting)
	c.equal("pool "+p.name+" idle", p.idle.Len(), idle)
	c.equal("pool "+p.name+" spare", p.spare.Len(), spare)
	c.equal("pool "+p.name+" most entries of a tenant", p.mostEntries.most, mostEntries)
	c.equal("pool "+p.name+" most waiting of a tenant", p.mostWaiting.most, mostWaiting)
}

// checkIdle checks that a tenant will be forgotten exactly if nothing keeps it,
// and not before its buckets are full; and that a spare one is like a new one.
func (c *census) checkIdle(where string, t *tenant) {
	full := Instant(0)
	for i, spec := range t.share.buckets {
		full = max(full, t.row.buckets[i].fullAt(spec))
	}
	kept := t.permits > 0 || t.entries > 0 || t.waiting > 0 || t.reports > 0 || t.row.paused || t.pausedGroups > 0 || full == never
	c.equal(where+" will be forgotten", t.row.idleAt != 0, !kept)
	if kept {
		c.equal(where+" is spare", t.row.spare, false)
		return
	}
	c.equal(where+" is full before it is forgotten", t.row.idleAt >= full, true)
	place, index := idleness{t.row.idleAt, t}, t.pool.idle
	if t.row.spare {
		index = t.pool.spare
		c.equal(where+" is a stranger level with the floor, its buckets full", t.strange() && !t.ahead() && full <= c.t, true)
	}
	_, ok := index.Get(place)
	c.equal(where+" is where its row says", ok, true)
}

// checkPool checks the pool's own buckets.
func (c *census) checkPool(p *pool) {
	c.equal("pool "+p.name+" is under its name", c.pools.names[p.name] == p, true)
	c.equal("pools by name", len(c.pools.names), len(c.pools.list))
	for i := range p.buckets {
		c.checkBucket("bucket "+p.name+"/"+p.buckets[i].name, p.buckets[i].bucketSpec, &p.buckets[i].bucketState, p.shares)
	}
}

func (c *census) checkBucket(where string, spec *bucketSpec, b *bucketState, shares *btree.BTreeG[expiry]) {
	c.equal(where+" lent what live shares hold of it", b.lent, c.lentOf(spec, shares))
	c.equal(where+" used what it lent", b.used >= b.lent, true)
	c.equal(where+" holds no more than its capacity", b.used >= 0, true)
	c.equal(where+" owes at most one capacity", spec.blocked || b.used <= max(2*spec.capacity, b.lent), true)
	c.equal(where+" carries less than a token", b.rem >= 0 && b.rem < max(int64(spec.period), 1), true)
	c.equal(where+" carries nothing when nothing comes back", b.used > b.lent || b.rem == 0, true)
}

func (c *census) lentOf(spec *bucketSpec, shares *btree.BTreeG[expiry]) (lent int64) {
	if shares == nil {
		return 0
	}
	for _, e := range shares.Items() {
		if p := c.permit(e.permit); spec.lends(p) {
			lent += p.cost
		}
	}
	return lent
}

// checkMemory checks that what is remembered can be found, and is forgotten in
// the order in which it came.
func (c *census) checkMemory(p *pool) {
	var ended, requests []uint64
	c.ended.Scan(func(i endedItem) bool {
		if i.row.pool == p {
			ended = append(ended, i.row.seq)
		}
		return true
	})
	c.requests.Scan(func(i requestItem) bool {
		if i.row.pool == p {
			requests = append(requests, i.row.seq)
		}
		return true
	})
	slices.Sort(ended)
	slices.Sort(requests)
	var endedLine, requestLine []uint64
	for _, e := range p.ended.items[p.ended.head:] {
		endedLine = append(endedLine, e.seq)
	}
	for _, r := range p.requests.items[p.requests.head:] {
		requestLine = append(requestLine, r.seq)
	}
	c.equal("pool "+p.name+" released permits", endedLine, ended)
	c.equal("pool "+p.name+" request ids", requestLine, requests)
}

// checkAtRest checks that nothing is left half done between entries.
func (c *census) checkAtRest() {
	c.equal("demands to be seated", len(c.unsettled), 0)
	c.equal("classes to be put to rest", len(c.stirred), 0)
	c.demands.Scan(func(i demandItem) bool {
		row := i.row
		c.equal("demand "+row.tenant.id+"/"+row.lane.name+" is settled", row.unsettled || row.aside, false)
		return true
	})
}
