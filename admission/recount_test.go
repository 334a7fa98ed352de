package admission

import "math/big"

// recount says why a pool holds what is due, from rows, policy and exact
// fractions alone.
type recount struct {
	h      *history
	pool   *pool
	policy *PoolPolicy
	active actives
}

func (h *history) recount(pool string) *recount {
	return &recount{h, h.pools.byName(pool), h.poolPolicy(pool), h.actives()}
}

// plain says whether nothing but entries wants anything, and no lane yields.
func (r *recount) plain() bool {
	return r.pool.waiting == 0 && !r.pool.yields && r.pool.reports.Len() == 0
}

// due counts the entries that wait and are due, by tenant and lane, but for those
// that wait for a whole batch: those of paused groups apart from all others.
func (r *recount) due() (n, paused map[[2]string]int64) {
	n, paused = map[[2]string]int64{}, map[[2]string]int64{}
	oldest := map[[2]string]Wall{}
	r.h.entries.Scan(func(i entryItem) bool {
		e, d := i.row, i.row.demand()
		if d.tenant.pool == r.pool && e.state == entryQueued && max(e.first, e.due) <= r.h.w {
			key := [2]string{d.tenant.id, d.lane.name}
			if _, held := r.h.pausedGroups.Get(pausedGroup{d.tenant, e.queue.group}); held {
				paused[key]++
			} else if n[key]++; n[key] == 1 || e.first < oldest[key] {
				oldest[key] = e.first
			}
		}
		return true
	})
	for key, due := range n {
		if rules := r.policy.lanes()[r.policy.rank(key[1])].Batch; due < rules.Size && oldest[key].Add(rules.Linger) > r.h.w {
			if paused[key] > 0 { // told with them
				paused[key] += due
			}
			delete(n, key)
		}
	}
	return n, paused
}

// reason returns the first reason, by precedence, that holds a permit of cost 1.
func (r *recount) reason(tenant, lane string) Reason { return r.reasonFor(tenant, lane, 1) }

// reasonFor is the same of any cost.
func (r *recount) reasonFor(tenant, lane string, cost int64) Reason {
	why := ReasonNone
	because := func(holds bool, reason Reason) {
		if holds && (why == ReasonNone || reason < why) {
			why = reason
		}
	}
	t := r.pool.tenants.get(tenant)
	because(t != nil && t.row.paused || r.pool.lane(lane).paused, Paused)
	maxActive, _, _ := r.policy.shareOf(tenant)
	because(maxActive > 0 && r.active.count(r.policy.Name, "", tenant) >= maxActive, TenantCap)
	because(r.policy.laneCapped(r.active, tenant, lane), LaneCap)
	because(r.slotsTaken(lane), PoolCap)
	for _, b := range r.policy.Buckets {
		state, leave, rate := bucketState{}, int64(0), TenantRate
		switch {
		case b.Scope == ScopePool:
			rate, state = PoolRate, r.pool.bucket(b.Name).bucketState
			for rank := range r.policy.Lanes[:min(r.policy.rank(lane)+1, len(r.policy.Lanes))] {
				leave = max(leave, r.policy.Lanes[rank].LeaveTokens[b.Name])
			}
		case t != nil:
			for i, spec := range r.pool.fairUse {
				if spec.name == b.Name {
					state = t.row.buckets[i]
				}
			}
		}
		own := r.policy.bucketOf(b, tenant)
		asked := cost
		if b.PerPermit {
			asked = 1
		}
		short := r.level(own, state)-leave < asked
		because(own.Blocked, Blocked)
		because(short && own.OneShot, Exhausted)
		because(short && !own.OneShot && !own.Blocked, rate)
		because(state.pausedByHand || r.h.t < state.pausedUntil, ProviderPaused)
	}
	return why
}

// slotsTaken says whether the pool's cap, or what lanes leave of it, is reached.
func (r *recount) slotsTaken(lane string) bool {
	if r.policy.MaxActive == 0 {
		return false
	}
	taken := r.active.count(r.policy.Name, "", "") >= r.policy.MaxActive
	used := int64(0)
	for rank := len(r.policy.lanes()) - 1; rank >= 0; rank-- {
		l := r.policy.lanes()[rank]
		used += r.active.count(r.policy.Name, l.Name, "")
		if rank <= r.policy.rank(lane) && l.LeaveSlots > 0 && used >= r.policy.MaxActive-l.LeaveSlots {
			taken = true
		}
	}
	return taken
}

// level returns the whole tokens in a bucket now.
func (r *recount) level(spec BucketPolicy, b bucketState) int64 {
	if spec.Blocked {
		return 0
	}
	used := new(big.Rat).SetInt64(b.used - b.lent)
	if period := int64(spec.Period); period > 0 {
		back := big.NewRat(b.rem, period)
		if r.h.t > b.at && !b.pausedByHand {
			refilled := new(big.Rat).Mul(big.NewRat(int64(r.h.t-b.at), period), new(big.Rat).SetInt64(spec.Refill))
			back.Add(back, refilled)
		}
		used.Sub(used, back)
	}
	if used.Sign() <= 0 {
		return spec.Capacity - b.lent
	}
	whole := new(big.Int).Add(used.Num(), new(big.Int).Sub(used.Denom(), big.NewInt(1))) // round up
	return spec.Capacity - b.lent - whole.Div(whole, used.Denom()).Int64()
}
