package admission

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tidwall/btree"
)

// tester is what the checks need of testing.T and rapid.T.
type tester interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// check fails if anything that the state keeps twice is not what its rows say:
// every counter and every index is counted again, the slow and simple way.
func check(t tester, s *State) {
	t.Helper()
	c := &census{tester: t, State: s, active: map[*demand]int64{}, queued: map[*queue]int64{}, retries: map[*queue]int64{}, claims: map[permitKey]*entryRow{}}
	c.checkRows()
	c.checkEntries()
	c.checkPermits()
	c.checkQueues()
	c.checkGroups()
	c.checkDemands()
	c.checkWaiters()
	c.checkLingering()
	for _, p := range s.pools.list {
		c.checkPool(p)
		c.checkLanes(p)
		c.checkTenants(p)
		c.checkMemory(p)
	}
	c.checkAtRest()
}

// checkPrompt fails if work was put off. It holds where no entry reaches the
// bounds of what one entry does, and the wall has not stepped back.
func checkPrompt(t tester, s *State) {
	t.Helper()
	for _, p := range s.pools.list {
		if first, ok := p.expiries.Min(); ok && first.at <= s.lease() {
			t.Errorf("pool %s: a permit that expired at %d lives at %d", p.name, first.at, s.lease())
		}
		for _, tree := range []*btree.BTreeG[wakeup]{p.rates, p.waiterRates} {
			if first, ok := tree.Min(); ok && first.at <= s.t {
				t.Errorf("pool %s: a demand whose tokens came at %d still waits at %d", p.name, first.at, s.t)
			}
		}
		if first, ok := p.deadlines.Min(); ok && first.at <= s.lease() {
			t.Errorf("pool %s: a wait that was over at %d goes on at %d", p.name, first.at, s.lease())
		}
		if first, ok := p.reports.Min(); ok && first.at <= s.t {
			t.Errorf("pool %s: a report that was over at %d holds at %d", p.name, first.at, s.t)
		}
		if first, ok := p.comesDue(); ok && first <= s.w {
			t.Errorf("pool %s: what was due at %d is not known as due, now is %d", p.name, first, s.w)
		}
	}
}

// census is one recount of a state.
type census struct {
	tester
	*State
	active  map[*demand]int64       // live permits
	queued  map[*queue]int64        // entries in line or delayed
	retries map[*queue]int64        // those delayed
	claims  map[permitKey]*entryRow // claimed entries by their permit
	// offered are the ready queues that may be served, parked those of paused
	// groups, turning counts the routes in a ring.
	offered map[*route][]*queue
	parked  map[*demand][]*queue
	turning map[*demand]int
}

// equal fails unless two values are.
func (c *census) equal(what string, got, want any) {
	c.Helper()
	if !reflect.DeepEqual(got, want) {
		c.Errorf("%s: %v, recounted %v", what, got, want)
	}
}

// checkRows checks that the trees hold the rows that are in force.
func (c *census) checkRows() {
	c.tenants.Scan(func(i tenantItem) bool {
		row := i.row
		c.equal("tenant "+row.id+" has its row", row.tenant.row == row && row.pool.tenants.get(row.id) == row.tenant, true)
		c.equal("tenant "+row.id+" has a pool", c.pools.byName(row.pool.name) == row.pool, true)
		return true
	})
	c.demands.Scan(func(i demandItem) bool {
		row := i.row
		where := "demand " + row.tenant.id + "/" + row.lane.name
		c.equal(where+" has its row", row.demand.row == row && slices.Contains(row.tenant.demands, row.demand), true)
		c.equal(where+" has a tenant", row.tenant.pool.tenants.get(row.tenant.id) == row.tenant, true)
		c.equal(where+" has a lane", row.tenant.pool.lane(row.lane.name) == row.lane, true)
		return true
	})
	n := 0
	for _, p := range c.pools.list {
		for _, t := range p.tenants.rows {
			n += len(t.demands)
		}
	}
	c.equal("demands", c.demands.Len(), n)
}

// checkEntries checks that each entry is in exactly one of queued, claimed and
// dead, and stands where its state says [I5].
func (c *census) checkEntries() {
	entries, dead := map[*pool]int64{}, map[*pool]int64{}
	tenants, lanes := map[*tenant]int64{}, map[*lane]int64{}
	categories := map[*pool]map[string]int64{}
	inLine, delayed := 0, 0
	c.entries.Scan(func(i entryItem) bool {
		e, d := i.row, i.row.demand()
		where := "entry " + d.tenant.id + "/" + e.key
		c.equal(where+" is keyed by its names", entryItem{i.tenant, i.key, i.letter, e}, e.item())
		c.equal(where+" has a known demand", d.row != nil && slices.Contains(d.tenant.demands, d), true)
		c.equal(where+" is dead or redriven if it is a letter", e.letter == 0 || e.state == entryDead || e.past.redriven, true)
		c.equal(where+" is not dead if it recurs", e.recur == nil || e.state != entryDead, true)
		p := d.tenant.pool
		entries[p]++
		tenants[d.tenant]++
		lanes[d.lane]++
		if categories[p] == nil {
			categories[p] = map[string]int64{}
		}
		categories[p][e.category]++
		switch e.state {
		case entryQueued:
			c.queued[e.queue]++
			if e.delayed {
				delayed++
				c.retries[e.queue]++
			} else {
				inLine++
			}
			c.checkQueued(where, e)
		case entryClaimed:
			c.claims[e.claim] = e
			c.equal(where+" is claimed by a live permit that names it", c.holds(e), true)
		case entryDead:
			dead[p]++
			at, ok := p.graves.Get(grave{seq: e.seq})
			c.equal(where+" has a grave", ok && at.entry == e, true)
		default:
			c.Errorf("%s is in no state: %d", where, e.state)
		}
		return true
	})
	c.equal("entries in line", c.line.Len(), inLine)
	c.equal("entries delayed", c.delayed.Len(), delayed)
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" entries", p.entries, entries[p])
		c.equal("pool "+p.name+" dead", int64(p.graves.Len()), dead[p])
		c.equal("pool "+p.name+" categories", p.categoryUse, maps.Collect(maps.All(categories[p])))
		for _, l := range p.lanes {
			c.equal("lane "+l.name+" entries", l.entries, lanes[l])
		}
		for _, t := range p.tenants.rows {
			c.equal("tenant "+t.id+" entries", t.entries, tenants[t])
		}
	}
}

// checkQueued checks that a queued entry stands in its queue and nowhere else.
func (c *census) checkQueued(where string, e *entryRow) {
	c.equal(where+" is in the queue of its names", c.queuesByName.get(e.queue.key()) == e.queue, true)
	c.equal(where+" is delayed only for a retry", !e.delayed || e.due > e.first, true)
	inLine, _ := c.line.Get(spot{queue: e.queue.num, at: e.place()})
	late, _ := c.delayed.Get(spot{queue: e.queue.num, at: place{e.due, e.seq}})
	c.equal(where+" is in line", inLine.entry == e, !e.delayed)
	c.equal(where+" is delayed", late.entry == e, e.delayed)
}

// checkPermits counts what is in use, and checks who holds what [I4, I5].
func (c *census) checkPermits() {
	lanes, tenants, pools := map[*lane]int64{}, map[*tenant]int64{}, map[*pool]int64{}
	borrowed := map[*lane]int64{}
	expiries, shares, tenantShares := map[*pool]int{}, map[*pool]int{}, map[*tenant]int{}
	claimed, slots := 0, 0
	nodes := map[nodeHolding]int64{}
	fences := map[int64]bool{}
	c.permits.Scan(func(i permitItem) bool {
		p, d := i.row, i.row.demand
		where := "permit " + p.token.String()
		c.equal(where+" is keyed by its token", i.permitKey, p.token.key())
		c.equal(where+" has a known demand", d.row != nil && slices.Contains(d.tenant.demands, d), true)
		if !p.uncounted {
			c.active[d]++
			lanes[d.lane]++
			if p.borrowed {
				borrowed[d.lane]++
			}
			tenants[d.tenant]++
			pools[d.tenant.pool]++
			slots++
		}
		expiries[d.tenant.pool]++
		if p.wanted > 0 {
			shares[d.tenant.pool]++
			tenantShares[d.tenant]++
			_, listed := d.tenant.pool.shares.Get(p.expiry())
			_, own := d.tenant.shares.Get(p.expiry())
			c.equal(where+" is among the shares", listed && own, true)
		}
		_, expires := d.tenant.pool.expiries.Get(p.expiry())
		_, held := c.holdings.Get(p.expiry())
		c.equal(where+" will expire", expires, true)
		c.equal(where+" holds a slot", held, !p.uncounted)
		_, held = d.lane.slots.Get(p.expiry())
		c.equal(where+" holds a slot of its lane", held, !p.uncounted)
		if l := c.lockFor(d.tenant, p.lock); l != nil {
			_, held = l.permits.Get(p.expiry())
			c.equal(where+" is among its lock's", held, true)
		}
		if p.job != "" {
			c.equal(where+" does its job", c.jobFor(d.tenant, p.job).permit, i.permitKey)
		}
		c.equal(where+" has a fence of its own", !fences[p.fence] && p.fence <= int64(c.epoch)<<fenceBits|c.grants, true)
		fences[p.fence] = true
		if p.node != "" {
			nodes[nodeHolding{pool: d.tenant.pool.num, node: p.node, tenant: d.tenant}]++
		}
		c.equal(where+" of a batch has parts", p.batch, c.firstPart(p) != nil)
		if p.entry != "" && !p.cancelled {
			claimed++
			c.equal(where+" holds the claim of its entry", c.claims[i.permitKey] != nil, true)
		}
		return true
	})
	claimed += c.checkParts(fences)
	c.equal("claims", len(c.claims), claimed)
	c.equal("nodes", c.nodes.Len(), len(nodes))
	for key, n := range nodes {
		now, _ := c.nodes.Get(key)
		c.equal("permits of "+key.tenant.id+" on node "+key.node, now.held, n)
	}
	c.equal("holdings", c.holdings.Len(), slots)
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" active", p.active, pools[p])
		debt := int64(0)
		for _, t := range p.tenants.rows {
			debt += t.debt()
		}
		c.equal("pool "+p.name+" debt", p.debt, debt)
		c.equal("pool "+p.name+" expiries", p.expiries.Len(), expiries[p])
		c.equal("pool "+p.name+" shares", p.shares.Len(), shares[p])
		for _, l := range p.lanes {
			c.equal("lane "+l.name+" active", l.active, lanes[l])
			c.equal("lane "+l.name+" borrowed", l.borrowed, borrowed[l])
			c.equal("lane "+l.name+" slots", int64(l.slots.Len()), lanes[l])
		}
		for _, t := range p.tenants.rows {
			c.equal("tenant "+t.id+" active", t.active, tenants[t])
			if c.equal("tenant "+t.id+" has shares", t.shares != nil, tenantShares[t] > 0); t.shares != nil {
				c.equal("tenant "+t.id+" shares", t.shares.Len(), tenantShares[t])
			}
			for _, d := range t.demands {
				c.equal("demand "+t.id+"/"+d.lane.name+" active", d.active, c.active[d])
			}
		}
	}
}
