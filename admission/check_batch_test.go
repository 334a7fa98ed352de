package admission

// holds says whether the claim on an entry is by a live permit, or a live part,
// that names it.
func (c *census) holds(e *entryRow) bool {
	h := holding{permit: c.permit(e.claim)}
	if part := c.part(e.claim); part != nil {
		h = holding{c.permit(part.permit), part}
	}
	return h.permit != nil && !h.cancelled() && h.entry() == e.key && h.letter() == e.letter && h.permit.demand.tenant == e.demand().tenant
}

// checkParts checks that every part belongs to a batch, and counts the claims.
func (c *census) checkParts(fences map[int64]bool) (claimed int) {
	c.parts.Scan(func(i partItem) bool {
		part := i.row
		where := "part " + part.token.String()
		c.equal(where+" is keyed by its token", i.permitKey, part.token.key())
		p := c.permit(part.permit)
		c.equal(where+" is of a batch", p != nil && p.batch && p.entry == "", true)
		c.equal(where+" has a fence of its own", !fences[part.fence], true)
		fences[part.fence] = true
		if !part.cancelled {
			claimed++
			c.equal(where+" holds the claim of its entry", c.claims[i.permitKey] != nil, true)
		}
		return true
	})
	return claimed
}

// checkLingering checks which demands wait for a whole batch, and until when.
func (c *census) checkLingering() {
	lingering := map[*pool]int{}
	c.demands.Scan(func(i demandItem) bool {
		row := i.row
		if row.lingers == 0 {
			return true
		}
		d := row.demand
		where := "demand " + d.tenant.id + "/" + d.lane.name
		lingering[d.tenant.pool]++
		_, ok := d.tenant.pool.lingering.Get(lingerEnd{d.row.lingers, d})
		c.equal(where+" will stop waiting for a batch", ok, true)
		oldest, any := d.oldestDue()
		c.equal(where+" waits for its oldest", any && d.row.lingers == oldest.Add(d.lane.batch.Linger), true)
		c.equal(where+" has no whole batch", d.due < d.lane.batch.Size, true)
		return true
	})
	for _, p := range c.pools.list {
		c.equal("pool "+p.name+" lingering", p.lingering.Len(), lingering[p])
	}
}
