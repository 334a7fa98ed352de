package admission

import "fmt"

// groups is the law of paused groups: one is paused from when an operator said so
// until it is resumed, whatever becomes of its entries and its tenant; no poll
// claims from it meanwhile.
type groups map[[3]string]bool

func (g groups) see(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		if op, ok := op.(Pause); ok {
			g.follow(h, op, results[i].(*PauseResult).Err)
		}
	}
	for key := range g {
		if h.pools.byName(key[0]) == nil {
			delete(g, key)
		}
	}
	for i := range e.Ops {
		if r, ok := results[i].(*NextDueResult); ok && !r.Replayed {
			for _, c := range r.Claims {
				want(h, "claimed from a paused group", g[[3]string{c.Permit.Pool, c.Permit.Tenant, c.Group}], false)
			}
		}
	}
	paused := groups{}
	h.pausedGroups.Scan(func(p pausedGroup) bool {
		paused[[3]string{p.tenant.pool.name, p.tenant.id, p.name}] = true
		return true
	})
	want(h, "paused groups", fmt.Sprint(paused), fmt.Sprint(g))
}

func (g groups) follow(h *history, op Pause, err *Error) {
	key := [3]string{op.Pool, op.Tenant, op.Name}
	switch {
	case op.Kind != TargetGroup || err != nil && err.Reason == PoolNotFound:
	case err != nil && err.Reason == UnknownTenant:
		want(h, "refused what is held", g[key], false)
	case err != nil:
		want(h, "refused a pause", err.Reason, LimitReached)
		want(h, "refused to hold what is not held", op.Resume || g[key], false)
	case op.Resume:
		delete(g, key)
	default:
		g[key] = true
	}
}
