package admission

import (
	"fmt"
	"maps"
)

// groups is the law of paused groups: one is paused from when an operator said so
// until it is resumed, whatever becomes of its entries and its tenant; no poll
// claims from it meanwhile.
type groups map[[3]string]bool

func (g groups) see(h *history, e Entry, results []Result) {
	paused := groups{}
	h.pausedGroups.Scan(func(p pausedGroup) bool {
		paused[[3]string{p.tenant.pool.name, p.tenant.id, p.name}] = true
		return true
	})
	for i, op := range e.Ops {
		switch op := op.(type) {
		case Pause:
			g.follow(h, op, results[i].(*PauseResult).Err)
		case ApplyPolicy: // a pool that it leaves out may have gone, and have come again since
			g.forget(func(key [3]string) bool { return op.Policy.pool(key[0]) == nil && !paused[key] })
		}
	}
	g.forget(func(key [3]string) bool { return h.pools.byName(key[0]) == nil })
	for i := range e.Ops {
		if r, ok := results[i].(*NextDueResult); ok && !r.Replayed {
			for _, c := range r.Claims {
				want(h, "claimed from a paused group", g[[3]string{c.Permit.Pool, c.Permit.Tenant, c.Group}], false)
			}
		}
	}
	want(h, "paused groups", fmt.Sprint(paused), fmt.Sprint(g))
}

func (g groups) forget(which func(key [3]string) bool) {
	maps.DeleteFunc(g, func(key [3]string, _ bool) bool { return which(key) })
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
