package admission

import (
	"fmt"
	"slices"
)

// checkRoutes checks where each route stands: with its head due in a ring and in
// heads, else among the dormant.
func (c *census) checkRoutes() {
	c.ready = map[*demand]int{}
	dormant, ripening := map[*pool]int{}, map[*pool]int{}
	ready := 0
	for key, r := range c.routesByName {
		where := fmt.Sprintf("route %s/%s/%q", r.demand.tenant.id, r.demand.lane.name, r.name)
		c.equal(where+" is keyed by its names", key, routeKey{r.demand, r.name})
		c.equal(where+" queued", r.queued, c.queued[r])
		c.equal(where+" is needed", r.queued > 0, true)
		p := r.demand.tenant.pool
		inLine, anyInLine := r.firstIn(c.line)
		if r.row == nil {
			dormant[p]++
			c.equal(where+" sleeps until", r.sleeps, c.soonest(r, inLine, anyInLine))
			_, ok := p.dormant.Get(r.sleeps)
			c.equal(where+" is dormant", ok, true)
			c.equal(where+" has no due entry counted", r.ripe, int64(0))
			c.equal(where+" is in no ring", r.next == nil && r.headed == head{}, true)
			continue
		}
		ready++
		c.ready[r.demand]++
		row, ok := c.routes.Get(r.row)
		c.equal(where+" has its row", ok && row == r.row, true)
		c.checkReady(where, r, inLine, anyInLine)
		if r.sleeps.route != nil {
			ripening[p]++
		}
	}
	c.equal("ready routes", c.routes.Len(), ready)
	c.equal("heads", c.heads.Len(), ready)
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" dormant", p.dormant.Len(), dormant[p])
		c.equal("pool "+p.name+" ripening", p.ripening.Len(), ripening[p])
	}
}

// soonest returns when something in line from first on, or delayed, is due.
func (c *census) soonest(r *route, first spot, any bool) routeDue {
	at := routeDue{}
	if any {
		at = routeDue{first.at, r}
	}
	c.delayed.Scan(func(d spot) bool {
		if d.route == r.num && (at.route == nil || d.at.compare(at.at) < 0) {
			at = routeDue{d.at, r}
		}
		return true
	})
	return at
}

func (c *census) checkReady(where string, r *route, inLine spot, anyInLine bool) {
	ripe := int64(0)
	next, anyNext := spot{}, false
	c.line.Scan(func(s spot) bool {
		if s.route == r.num {
			if s.at.compare(r.row.ripe) <= 0 {
				ripe++
			} else if !anyNext {
				next, anyNext = s, true
			}
		}
		return true
	})
	c.equal(where+" due", r.ripe, ripe)
	c.equal(where+" ripens next", r.sleeps, c.soonest(r, next, anyNext))
	if r.sleeps.route != nil {
		_, ok := r.demand.tenant.pool.ripening.Get(r.sleeps)
		c.equal(where+" is ripening", ok, true)
	}
	c.equal(where+" has a head", anyInLine, true)
	c.equal(where+" is headed by", r.headed, head{r.demand.num, inLine.at})
	_, ok := c.heads.Get(r.headed)
	c.equal(where+" is in heads", ok, true)
}

// checkDemands checks each demand's ring, counts and seat.
func (c *census) checkDemands() {
	c.demands.Scan(func(row *demandRow) bool {
		d := row.demand
		where := "demand " + d.tenant.id + "/" + d.lane.name
		turn, n, due := uint64(0), 0, int64(0)
		for r := d.ring.front; r != nil; {
			c.equal(where+" has ready routes of its own in the ring", r.row != nil && r.demand == d && r.next.prev == r, true)
			c.equal(where+" ring is in order of turns", r.row.turn > turn, true)
			turn = r.row.turn
			n++
			due += r.ripe
			if r = r.next; r == d.ring.front {
				break
			}
		}
		c.equal(where+" ring", n, c.ready[d])
		c.equal(where+" due", d.due, due)
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
		oldest, _ := d.oldestDue(c.State)
		c.equal(where+" oldest due entry", oldest, c.firstInRing(d))
	}
	if d.row.standing.listed.demand != nil {
		_, ok := d.lane.oldest.Get(d.row.standing.listed)
		c.equal(where+" is listed as servable", ok, true)
	}
}

// firstInRing returns when the oldest entry of the routes in the ring came due.
func (c *census) firstInRing(d *demand) (oldest Wall) {
	oldest = 1<<63 - 1
	for r := d.ring.front; r != nil; {
		if first, any := r.firstIn(c.line); any {
			oldest = min(oldest, first.at.first)
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
		listed := 0
		var ordered [classCount][orderedSources]int
		for _, t := range p.tenants {
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
	strangers, wanting, idle := int64(0), 0, 0
	for id, t := range p.tenants {
		where := "tenant " + p.name + "/" + id
		row, ok := c.tenants.Get(t.row)
		c.equal(where+" is known", ok && row == t.row && t.id == id && t.pool == p, true)
		c.equal(where+" share", *t.share, *p.shareOf(id))
		named, ok := p.named.Get(t)
		c.equal(where+" is named", ok && named == t, true)
		c.equal(where+" buckets", len(t.row.buckets), len(p.fairUse))
		if p.overrides[id] == nil && p.puts[id] == nil {
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
			_, ok := p.wanting.Get(t)
			c.equal(where+" is wanting", ok, true)
		}
		idle += c.checkIdle(where, t)
		for i, spec := range t.share.buckets {
			c.checkBucket(where+" bucket "+spec.name, spec, &t.row.buckets[i])
		}
	}
	c.equal("pool "+p.name+" named", p.named.Len(), len(p.tenants))
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
}

// checkIdle checks that a tenant will be forgotten exactly if nothing keeps it,
// and not before its buckets are full.
func (c *census) checkIdle(where string, t *tenant) int {
	full := Instant(0)
	for i, spec := range t.share.buckets {
		full = max(full, t.row.buckets[i].fullAt(spec))
	}
	kept := t.permits > 0 || t.entries > 0 || t.waiting > 0 || t.reports > 0 || t.row.paused || full == never
	c.equal(where+" will be forgotten", t.row.idleAt != 0, !kept)
	if kept {
		return 0
	}
	c.equal(where+" is full before it is forgotten", t.row.idleAt >= full, true)
	_, ok := t.pool.idle.Get(idleness{t.row.idleAt, t})
	c.equal(where+" is idle", ok, true)
	return 1
}

// checkPool checks the pool's own buckets.
func (c *census) checkPool(p *pool) {
	c.equal("pool "+p.name+" is under its name", c.pools.names[p.name] == p, true)
	c.equal("pools by name", len(c.pools.names), len(c.pools.list))
	for i := range p.buckets {
		c.checkBucket("bucket "+p.name+"/"+p.buckets[i].name, p.buckets[i].bucketSpec, &p.buckets[i].bucketState)
	}
}

func (c *census) checkBucket(where string, spec *bucketSpec, b *bucketState) {
	c.equal(where+" holds no more than its capacity", b.used >= 0, true)
	c.equal(where+" owes at most one capacity", spec.blocked || b.used <= 2*spec.capacity, true)
	c.equal(where+" carries less than a token", b.rem >= 0 && b.rem < max(int64(spec.period), 1), true)
	c.equal(where+" carries nothing when full", b.used > 0 || b.rem == 0, true)
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
	c.demands.Scan(func(row *demandRow) bool {
		c.equal("demand "+row.tenant.id+"/"+row.lane.name+" is settled", row.unsettled || row.aside, false)
		return true
	})
}
