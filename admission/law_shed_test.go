package admission

import (
	"fmt"
	"slices"
)

// sheds is the law of what is held: every (tenant, lane) with something due that
// a call did not serve is told with one reason, the first that holds; totals
// equal a recount; lists are as long as asked [I12]. What no reason holds is
// served: room left means that nobody is left but behind a cycle limit [I8].
//
// Where the wall has stepped back, what came due before is not due any more by
// the clock, but still has its place; such entries can't be recounted.
type sheds struct{}

func (sheds) see(h *history, e Entry, results []Result) {
	if h.w < h.highest {
		return
	}
	calls, ids := map[string]*NextDueResult{}, map[[2]string]bool{}
	for i, op := range e.Ops {
		if op, ok := op.(*NextDue); ok {
			id := [2]string{op.Pool, op.RequestID}
			if op.RequestID == "" || !ids[id] { // one sent twice is told of the first
				calls[op.Pool] = results[i].(*NextDueResult)
			}
			ids[id] = true
		}
	}
	for _, p := range h.pools.list {
		call := calls[p.name]
		if call != nil && (call.Err != nil || call.Replayed) {
			call = nil
		}
		h.checkHeld(p.name, call)
	}
}

// checkHeld compares what a pool says is held with a recount.
func (h *history) checkHeld(pool string, call *NextDueResult) {
	r := h.recount(pool)
	if !r.plain() { // the second implementation holds the rest
		h.tally.Held(h.Shedding(h.t, h.w, SheddingQuery{Pool: pool, HeldRows: 1000, Call: call}).Held)
		return
	}
	due, paused := r.due()
	for key := range paused {
		due[key] += 0
	}
	wanted, totals := map[[2]string]string{}, map[Reason]int64{}
	for key, n := range due {
		why := r.reason(key[0], key[1])
		if n == 0 || why == Paused { // what is left is of paused groups
			why, n = Paused, n+paused[key]
		}
		held := why != ReasonNone
		why = r.callReason(key, why, call)
		if !held && why == ReasonNone && r.asks(key, call) && !h.gaveUp(pool) {
			h.Fatalf("%v was not served though nothing holds it", key)
		}
		if why != ReasonNone {
			wanted[key] = fmt.Sprint(why, " ", n)
			totals[why]++
		}
	}
	all := h.Shedding(h.t, h.w, SheddingQuery{Pool: pool, HeldRows: 1000, Call: call})
	h.tally.Held(all.Held)
	got := map[[2]string]string{}
	for _, row := range all.Held {
		got[[2]string{row.Tenant, row.Lane}] = fmt.Sprint(row.Reason, " ", row.Due)
	}
	want(h, "held rows", fmt.Sprint(got), fmt.Sprint(wanted))
	want(h, "each held once", len(all.Held), len(got))
	told := map[Reason]int64{}
	for _, row := range all.Totals {
		told[row.Reason] += row.Tenants
	}
	want(h, "held totals", fmt.Sprint(told), fmt.Sprint(totals))
	h.checkHeldLists(pool, call, all.Held)
}

// gaveUp says whether a wait of the pool ended in vain in the last entry: it may have
// reserved tokens until then.
func (h *history) gaveUp(pool string) bool {
	return slices.ContainsFunc(h.Ended(), func(end WaitEnd) bool {
		return end.Pool == pool && end.Result.Decision.Shed != nil
	})
}

// callReason returns why a call left what otherwise is held for why.
func (r *recount) callReason(key [2]string, why Reason, call *NextDueResult) Reason {
	if !r.asks(key, call) {
		return why
	}
	why = firstReason(why, call.refused)
	if most := r.policy.partOf(call.op.Node, key[0]); most > 0 && r.h.onNode(r.policy.Name, key[0], call.op.Node.ID) >= most {
		why = firstReason(why, NodeCap)
	}
	if r.policy.lanes()[r.policy.rank(key[1])].Batch.Only && !call.op.Batch {
		why = firstReason(why, BatchOnly)
	}
	if why != ReasonNone {
		return why
	}
	inLane := int64(0)
	got := int64(0)
	batch := int32(0)
	for _, c := range call.Claims {
		first := c.Batch == 0 || c.Batch != batch
		batch = c.Batch
		if first && c.Permit.Lane == key[1] {
			inLane++
			if c.Permit.Tenant == key[0] {
				got++
			}
		}
	}
	limit := int64(0)
	if len(r.policy.Lanes) > 0 {
		limit = r.policy.Lanes[r.policy.rank(key[1])].TenantCycleLimit
	}
	switch {
	case limit > 0 && got >= limit:
		return CycleCap
	case call.op.limits(key[1], inLane):
		return CycleCap
	case call.full:
		return BatchFull
	}
	return ReasonNone
}

// asks says whether the call asks for what the tenant has due in the lane.
func (r *recount) asks(key [2]string, call *NextDueResult) bool {
	return call != nil && call.lanes[r.policy.rank(key[1])] && (call.op.Tenant == "" || call.op.Tenant == key[0])
}

// checkHeldLists checks that shorter lists are parts of the whole one.
func (h *history) checkHeldLists(pool string, call *NextDueResult, all []HeldTenant) {
	tenants := map[string]bool{}
	for _, row := range all {
		tenants[row.Tenant] = true
	}
	short := h.Shedding(h.t, h.w, SheddingQuery{Pool: pool, HeldRows: 1, Call: call})
	shown := map[string]bool{}
	for _, row := range short.Held {
		shown[row.Tenant] = true
		want(h, "short list is part of the whole", slices.Contains(all, row), true)
	}
	want(h, "tenants shown", len(shown), min(len(tenants), 1))
	want(h, "more", short.More, len(tenants) > 1)
	for _, tenant := range tenantNames {
		own := h.Shedding(h.t, h.w, SheddingQuery{Pool: pool, Tenant: tenant, Call: call}).Held
		others := slices.DeleteFunc(slices.Clone(all), func(row HeldTenant) bool { return row.Tenant != tenant })
		want(h, "a tenant's own rows", fmt.Sprint(own), fmt.Sprint(others))
	}
}

// sorted is the law that the grants of one call go by lane, then class [I8].
type sorted struct{}

func (sorted) see(h *history, e Entry, results []Result) {
	for _, p := range h.pools.list {
		h.checkSorted(h.poolPolicy(p.name), e, slices.DeleteFunc(slices.Clone(h.grants), func(g given) bool { return g.turnless() }))
	}
}

func (h *history) checkSorted(p *PoolPolicy, e Entry, grants []given) {
	grants = slices.DeleteFunc(grants, func(g given) bool { return g.Pool != p.Name || g.shared })
	polls := slices.DeleteFunc(slices.Clone(e.Ops), func(op Op) bool {
		n, ok := op.(*NextDue)
		return !ok || n.Pool != p.Name
	})
	classes := h.classesOf(p, grants)
	last, lastClass := 0, entitled
	for i, g := range grants {
		if letIn(g, grants[:i]) {
			continue
		}
		rank, class := p.rank(g.Lane), classes[i]
		if len(polls) <= 1 && (rank < last || rank == last && class < lastClass) {
			h.Errorf("%s was granted in lane %d and class %d after lane %d and class %d", g.Tenant, rank, class, last, lastClass)
		}
		last, lastClass = rank, class
	}
}

// letIn says whether a grant took a lock that one before it in the entry freed at once:
// it may belong to a higher lane.
func letIn(g given, before []given) bool {
	a, ok := g.op.(*Acquire)
	return ok && a.LockKey != "" && slices.ContainsFunc(before, func(b given) bool {
		by, ok := b.op.(*Acquire)
		return ok && b.State == PermitSpent && by.LockKey == a.LockKey && b.Pool == g.Pool && b.Tenant == g.Tenant
	})
}

// classesOf counts again in which class each of a pool's grants of this entry was
// made.
func (h *history) classesOf(p *PoolPolicy, grants []given) (classes []classKind) {
	active := h.actives()
	for _, g := range grants {
		if g.takesSlot() {
			active[[3]string{g.Pool, g.Lane, g.Tenant}]--
		}
	}
	for _, g := range grants {
		class := borrowing
		if p.entitled(active, g.Tenant, g.Lane) {
			class = entitled
		}
		classes = append(classes, class)
		if g.takesSlot() {
			active[[3]string{g.Pool, g.Lane, g.Tenant}]++
		}
	}
	return classes
}

// entitled says whether one more permit in the lane would be among those that the
// tenant prefers to have there and above.
func (p *PoolPolicy) entitled(active actives, tenant, lane string) bool {
	inHigher := int64(0)
	for _, l := range p.lanes()[:p.rank(lane)+1] {
		inHigher += active.count(p.Name, l.Name, tenant)
	}
	_, preferred, _ := p.shareOf(tenant)
	return preferred > inHigher
}
