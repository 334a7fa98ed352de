package admission

import (
	"maps"
	"slices"
	"time"
)

// given is a permit that an entry granted, with what it was asked for.
type given struct {
	Permit
	op   Op
	cost int64
	key  string // of the entry that it claims
	// free says that a pool that only watches let it through.
	free bool
	// shared says that it is a part of the same permit as the grant before.
	shared bool
}

// poolPolicy returns what holds for a pool: the policy, with the tenants' own rows
// in place of its overrides, and with what drains.
func (h *history) poolPolicy(pool string) *PoolPolicy {
	p := h.pools.byName(pool)
	if p == nil {
		return nil
	}
	var rows []TenantPolicy
	h.puts.Scan(func(r *putRow) bool {
		if r.pool == p {
			rows = append(rows, r.tenant)
		}
		return true
	})
	return h.present(p).withRows(rows)
}

// withRows returns the pool with these in place of overrides, less the numbers
// that do not fit its buckets.
func (p *PoolPolicy) withRows(rows []TenantPolicy) *PoolPolicy {
	q := *p
	q.Overrides = slices.DeleteFunc(slices.Clone(p.Overrides), func(o TenantPolicy) bool {
		return slices.ContainsFunc(rows, func(r TenantPolicy) bool { return r.ID == o.ID })
	})
	for _, r := range rows {
		r.Buckets = maps.Clone(r.Buckets)
		for _, b := range p.Buckets {
			o, own := r.Buckets[b.Name]
			if numbers := o.Capacity != 0 && o.Refill != 0 && o.Period != 0; own &&
				(b.OneShot && (o.Refill != 0 || o.Period != 0) || b.Blocked && !numbers && !o.Blocked) {
				delete(r.Buckets, b.Name)
			}
		}
		q.Overrides = append(q.Overrides, r)
	}
	return &q
}

// laneCaps returns a tenant's caps by lane: its own, else the default's.
func (p *PoolPolicy) laneCaps(id string) map[string]int64 {
	for _, o := range p.Overrides {
		if o.ID == id && len(o.LaneMaxActive) > 0 {
			return o.LaneMaxActive
		}
	}
	return p.Defaults.LaneMaxActive
}

// laneCapped says whether one more permit of the tenant in the lane would be more
// than a cap of its own allows, of n live ones.
func (p *PoolPolicy) laneCapped(n actives, tenant, lane string) bool {
	lanes, used := p.lanes(), int64(0)
	for rank := len(lanes) - 1; rank >= 0; rank-- {
		used += n.count(p.Name, lanes[rank].Name, tenant)
		if limit := p.laneCaps(tenant)[lanes[rank].Name]; limit > 0 && rank <= p.rank(lane) && used >= limit {
			return true
		}
	}
	return false
}

// shareOf returns what a tenant gets by the policy: its override over the
// defaults, with words for what is absent.
func (p *PoolPolicy) shareOf(id string) (maxActive, preferred, weight int64) {
	maxActive, weight = p.Defaults.MaxActive, firstOf(p.Defaults.Weight, 1)
	if p.Defaults.PreferredActive != nil {
		preferred = *p.Defaults.PreferredActive
	}
	for _, o := range p.Overrides {
		if o.ID != id {
			continue
		}
		maxActive, weight = firstOf(o.MaxActive, maxActive), firstOf(o.Weight, weight)
		if o.PreferredActive != nil {
			preferred = *o.PreferredActive
		}
	}
	return maxActive, preferred, weight
}

func (p *PoolPolicy) rank(lane string) int {
	return slices.IndexFunc(p.lanes(), func(l LanePolicy) bool { return l.Name == lane })
}

// actives are live permits that hold a slot, by pool, lane and tenant, counted
// from the rows.
type actives map[[3]string]int64

func (h *history) actives() actives {
	n := actives{}
	h.permits.Scan(func(i permitItem) bool {
		d := i.row.demand
		if i.row.uncounted {
			return true
		}
		n[[3]string{d.tenant.pool.name, d.lane.name, d.tenant.id}]++
		return true
	})
	return n
}

// count adds up the permits that match; empty matches all.
func (n actives) count(pool, lane, tenant string) int64 {
	sum := int64(0)
	for k, v := range n {
		if k[0] == pool && (lane == "" || k[1] == lane) && (tenant == "" || k[2] == tenant) {
			sum += v
		}
	}
	return sum
}

// answers is the law that every operation gets its answer, and that the answer
// makes sense by itself.
type answers struct{}

func (answers) see(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		switch r := results[i].(type) {
		case *AcquireResult:
			h.checkDecision(op.(*Acquire), r)
		case *NextDueResult:
			if n := len(r.Claims); n > op.(*NextDue).MaxItems {
				h.Errorf("%d claims for max_items %d", n, op.(*NextDue).MaxItems)
			}
			for _, c := range r.Claims {
				h.checkGranted(c.Permit)
				want(h, "claim "+c.Key+" is due", r.Replayed || h.claimed(h.holder(c.Permit.Token)).first <= h.w, true)
			}
		case *TakeResult:
			h.checkTake(op.(*Take), r)
		case *LeaseShareResult:
			h.checkShare(op.(*LeaseShare), r)
		case nil:
			switch op.(type) {
			case TermStart, Detach:
			default:
				h.Fatalf("no answer to %T %+v", op, op)
			}
		}
	}
}

func (h *history) checkDecision(op *Acquire, r *AcquireResult) {
	d := r.Decision
	switch {
	case r.Err != nil:
	case d.Shed != nil:
		h.checkShed(d.Shed)
	case d.Waiter != WaiterKey{}:
		want(h, "who waits has no permit", d.Permit, Permit{})
	case d.Replayed:
		want(h, "state of a replayed permit is known", d.Permit.State != 0, true)
	case d.Permit.State == PermitSpent:
		want(h, "there is nothing to give back", op.RateOnly && !op.Settle || d.WouldShed != nil, true)
	default:
		h.checkGranted(d.Permit)
		want(h, "permit is the tenant's", d.Permit.Tenant, op.Tenant)
	}
}

// checkGranted checks that a permit answered as live is.
func (h *history) checkGranted(p Permit) {
	held := h.holder(p.Token)
	row := held.permit
	if row == nil || h.viewOf(held, h.t).Fence != p.Fence || p.State != PermitLive || p.ExpiresIn <= 0 {
		h.Fatalf("granted, but does not live: %+v", p)
	}
	want(h, "lane of a permit", p.Lane, row.demand.lane.name)
	want(h, "tenant of a permit", p.Tenant, row.demand.tenant.id)
}

func (h *history) checkShed(s *Shed) {
	want(h, "a refusal has a reason", s.Reason != ReasonNone, true)
	want(h, "a refusal names what blocks", len(s.Blocking) > 0, true)
	want(h, "only what can never pass names a maximum", s.MaxGrantable != Absent, s.Reason == NeverGrantable)
	for _, d := range []time.Duration{s.RetryAfter, s.PollAfter, s.EarliestExpiry} {
		want(h, "a time is absent or whole milliseconds", d == Absent || d >= 0 && d%time.Millisecond == 0, true)
	}
	want(h, "a retry is in the future", s.RetryAfter == Absent || s.RetryAfter > 0, true)
	for _, l := range s.Blocking {
		if s.RetryAfter != Absent && (l.RetryAfter == Absent || l.RetryAfter > s.RetryAfter) {
			h.Errorf("a retry after %s is told, but %s is free only after %s", s.RetryAfter, l.Name, l.RetryAfter)
		}
	}
}

// caps is the law that no permit is granted above a cap, nor while one is
// exceeded [I2]. Permits of an entry all live at its end, so that the last count
// is the greatest.
type caps struct{}

func (caps) see(h *history, e Entry, results []Result) {
	n := h.actives()
	for _, g := range h.grants {
		if !g.takesSlot() {
			continue
		}
		p := h.poolPolicy(g.Pool)
		atMost := func(what string, active, most int64) {
			if active > most {
				h.Errorf("%s of %s: granted with %d live permits where %d may be", what, g.Pool, active, most)
			}
		}
		if maxActive, _, _ := p.shareOf(g.Tenant); maxActive > 0 {
			atMost("max_active of "+g.Tenant, n.count(g.Pool, "", g.Tenant), maxActive)
		}
		n[[3]string{g.Pool, g.Lane, g.Tenant}]--
		if p.laneCapped(n, g.Tenant, g.Lane) {
			h.Errorf("lane_max_active of %s: granted beyond it in %s", g.Tenant, g.Lane)
		}
		n[[3]string{g.Pool, g.Lane, g.Tenant}]++
		if p.MaxActive == 0 {
			continue
		}
		atMost("max_active", n.count(g.Pool, "", ""), p.MaxActive)
		lower := int64(0)
		for rank := len(p.lanes()) - 1; rank >= 0; rank-- {
			l := p.lanes()[rank]
			if lower += n.count(g.Pool, l.Name, ""); rank <= p.rank(g.Lane) && l.LeaveSlots > 0 {
				atMost("lanes from "+l.Name+" down", lower, p.MaxActive-l.LeaveSlots)
			}
		}
	}
}

// scopes is the law that a call gets only what it asks for: of its lanes, within
// its limits, of its tenant, and for its node no more than that node's part.
type scopes struct{}

func (scopes) see(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		op, ok := op.(*NextDue)
		if !ok || results[i].(*NextDueResult).Replayed {
			continue
		}
		inLane := map[string]int64{}
		batch := int32(0)
		for _, c := range results[i].(*NextDueResult).Claims {
			if c.Batch == 0 || c.Batch != batch {
				inLane[c.Permit.Lane]++
			}
			batch = c.Batch
			want(h, "claimed from a lane asked for", len(op.Lanes) == 0 || slices.Contains(op.Lanes, c.Permit.Lane), true)
			want(h, "claimed of the tenant asked for", op.Tenant == "" || op.Tenant == c.Permit.Tenant, true)
			held, most := h.onNode(op.Pool, c.Permit.Tenant, op.Node.ID), int64(0)
			for _, other := range e.Ops { // the same node may poll twice, with other parts
				if n, ok := other.(*NextDue); ok && n.Pool == op.Pool && n.Node.ID == op.Node.ID {
					most = max(most, h.poolPolicy(op.Pool).partOf(n.Node, c.Permit.Tenant))
				}
			}
			if most > 0 && held > most {
				h.Errorf("node %s holds %d permits of %s, its part is %d", op.Node.ID, held, c.Permit.Tenant, most)
			}
		}
		for lane, n := range inLane {
			if most, limited := op.LaneLimits[lane]; limited && n > most {
				h.Errorf("%d permits of lane %s, the call's limit is %d", n, lane, most)
			}
		}
	}
}

// limits says whether the call may take no more than n permits of the lane.
func (n *NextDue) limits(lane string, taken int64) bool {
	most, limited := n.LaneLimits[lane]
	return limited && taken >= most
}

// onNode counts a tenant's live permits of a node from the rows.
func (h *history) onNode(pool, tenant, node string) (n int64) {
	h.permits.Scan(func(i permitItem) bool {
		if t := i.row.demand.tenant; t.pool.name == pool && t.id == tenant && i.row.node == node {
			n++
		}
		return true
	})
	return n
}

// partOf is the least whole number that is no less than the node's part of the
// tenant's max_active, 0 for any number.
func (p *PoolPolicy) partOf(n Node, tenant string) int64 {
	maxActive, _, _ := p.shareOf(tenant)
	if n.ID == "" || maxActive == 0 {
		return 0
	}
	part := int64(0)
	for part*n.Total < maxActive*n.Owned {
		part++
	}
	return part
}

// fences is the law that fences increase in the order of grants, and that no
// token is given twice [I4].
type fences struct {
	last   int64
	tokens map[Token]bool
}

func (f *fences) see(h *history, e Entry, results []Result) {
	if f.tokens == nil {
		f.tokens = map[Token]bool{}
	}
	for _, g := range h.grants {
		if g.free && !g.lasting() {
			continue // nothing was given
		}
		if g.Fence <= f.last {
			h.Errorf("fence %d was given after %d", g.Fence, f.last)
		}
		if f.last = g.Fence; g.lasting() && f.tokens[g.Token] {
			h.Errorf("token %v was given twice", g.Token)
		}
		f.tokens[g.Token] = true
	}
}

// floors is the law that no floor decreases [I7]; check holds the rest of it.
type floors map[*class]int64

func (f floors) see(h *history, _ Entry, _ []Result) {
	for _, p := range h.pools.list {
		for _, l := range p.lanes {
			for k := range l.classes {
				c := &l.classes[k]
				if c.floor < f[c] {
					h.Errorf("floor of %s/%s fell from %d to %d", p.name, l.name, f[c], c.floor)
				}
				f[c] = c.floor
			}
		}
	}
}
