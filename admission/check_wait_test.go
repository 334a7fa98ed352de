package admission

import "slices"

// checkWaiters checks that each waiter stands where its row says: in its demand's
// queue or at its lock while somebody listens, else nowhere.
func (c *census) checkWaiters() {
	type count struct{ queued, locked int64 }
	demands, pools, tenants, lanes := map[*demand]*count{}, map[*pool]int64{}, map[*tenant]int64{}, map[*lane]int64{}
	locks, ids, queued := map[*lock]int64{}, 0, 0
	jobs := map[*job]int{}
	c.waiters.Scan(func(row *waiterRow) bool {
		w := row.waiter
		d := w.demand
		where := "waiter of " + d.tenant.id + "/" + d.lane.name
		c.equal(where+" has its row", w.row == row, true)
		c.equal(where+" has a known demand", d.row != nil && slices.Contains(d.tenant.demands, d), true)
		if demands[d] == nil {
			demands[d] = &count{}
		}
		pools[d.tenant.pool]++
		tenants[d.tenant]++
		lanes[d.lane]++
		_, ok := d.tenant.pool.deadlines.Get(deadline{w.ends(), w})
		c.equal(where+" has a deadline", ok, true)
		if w.requestID != "" {
			ids++
			c.equal(where+" is found by its id", c.waitersByID.get(requestKey{d.tenant.pool.num, d.tenant.id, w.requestID}) == w, true)
		}
		if w.job != nil {
			jobs[w.job]++
			c.equal(where+" is among its job's", slices.Contains(w.job.waiters, w), true)
		}
		at, inQueue := c.queues.Get(w.spot())
		c.equal(where+" is queued", inQueue && at.waiter == w, w.queued)
		if w.queued {
			queued++
			demands[d].queued++
			c.equal(where+" that is queued is listened for", w.attached(), true)
		}
		if w.lock == nil {
			c.equal(where+" without a lock is queued while somebody listens", w.queued, w.attached())
			return true
		}
		locks[w.lock]++
		_, open := w.lock.open.Get(w)
		_, held := w.lock.held.Get(w)
		c.equal(where+" has its lock", d.tenant.pool.locks.get(w.lock.name) == w.lock, true)
		c.equal(where+" is let in by its lock if it is queued", open, w.queued)
		c.equal(where+" waits for its lock if it is not", held, w.attached() && !w.queued)
		if held {
			demands[d].locked++
		}
		return true
	})
	c.equal("waiters by id", c.waitersByID.len(), ids)
	c.equal("queues", c.queues.Len(), queued)
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" waiting", p.waiting, pools[p])
		c.equal("pool "+p.name+" deadlines", int64(p.deadlines.Len()), pools[p])
		for _, l := range p.lanes {
			c.equal("lane "+l.name+" waiters", l.waiters, lanes[l])
		}
		for _, t := range p.tenants.rows {
			c.equal("tenant "+t.id+" waiting", t.waiting, tenants[t])
			for _, d := range t.demands {
				want := demands[d]
				if want == nil {
					want = &count{}
				}
				c.equal("demand "+t.id+" queued", d.queued[0]+d.queued[1], want.queued)
				c.equal("demand "+t.id+" waits for locks", d.locked, want.locked)
			}
		}
		c.checkKeys(p, locks, jobs)
	}
}

// checkKeys checks locks and jobs against the permits that hold them [I4].
func (c *census) checkKeys(p *pool, waiting map[*lock]int64, jobs map[*job]int) {
	held, live := map[lockName]int64{}, map[jobName]int64{}
	c.permits.Scan(func(i permitItem) bool {
		if t := i.row.demand.tenant; t.pool == p {
			if i.row.lock != "" {
				held[lockName{t, i.row.lock}]++
			}
			if i.row.job != "" {
				live[jobName{t.id, i.row.job}]++
			}
		}
		return true
	})
	for name, l := range p.locks.rows {
		where := "lock " + name.tenant.id + "/" + name.key
		c.equal(where+" is under its name", l.name, name)
		c.equal(where+" holders", l.active, held[name])
		c.equal(where+" permits", int64(l.permits.Len()), held[name])
		c.equal(where+" waiters", l.waiters, waiting[l])
		c.equal(where+" is needed", l.active > 0 || l.waiters > 0, true)
		room := max(p.lockMax-l.active, 0)
		c.equal(where+" lets in as many as have room", int64(l.open.Len()), min(room, int64(l.open.Len()+l.held.Len())))
		last, some := l.open.Max()
		first, others := l.held.Min()
		c.equal(where+" lets in the first", !some || !others || last.seq < first.seq, true)
		delete(held, name)
	}
	c.equal("locks of permits that are not known", len(held), 0)
	done := 0
	for name, j := range p.jobs.rows {
		where := "job " + name.tenant + "/" + name.key
		c.equal(where+" is live", j.live, live[name] > 0)
		c.equal(where+" is live once", live[name] <= 1, true)
		c.equal(where+" waiters", len(j.waiters), jobs[j])
		c.equal(where+" is needed", j.live || j.done != nil || len(j.waiters) > 0, true)
		if j.done != nil {
			done++
		}
		delete(live, name)
	}
	c.equal("jobs of permits that are not known", len(live), 0)
	c.equal("pool "+p.name+" jobs done", p.dones.len(), done)
}
