package admission_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/admitd/admit/admission"
)

// putTenants draws rows, mostly such as fit the policy in force.
func (g *generator) putTenants() *admission.PutTenants {
	op := &admission.PutTenants{Pool: g.pool()}
	like := admission.PoolPolicy{}
	if i := slices.IndexFunc(g.policy.Pools, func(p admission.PoolPolicy) bool { return p.Name == op.Pool }); i >= 0 {
		like = g.policy.Pools[i]
	}
	op.Rows = list(g, "rows", 1, 3, func() admission.TenantPut {
		return admission.TenantPut{Tenant: g.drawTenant(&like, g.tenant()), Remove: g.chance(3, "remove")}
	})
	return op
}

func (g *generator) redrive() *admission.Redrive {
	return &admission.Redrive{
		Pool: g.graveyard(), Filter: g.deadFilter(), Limit: g.deadLimit(), From: g.cursor(),
		PerSecond: pick[int64](g, "per second", 0, 1, 3),
	}
}

func (g *generator) purge() *admission.PurgeDead {
	return &admission.PurgeDead{Pool: g.graveyard(), Filter: g.deadFilter(), Limit: g.deadLimit(), From: g.cursor()}
}

// graveyard draws a pool, mostly one with dead entries.
func (g *generator) graveyard() string {
	if len(g.graves) == 0 || g.chance(6, "any pool") {
		return g.pool()
	}
	return pick(g, "graveyard", g.graves...)
}

// noteGraves remembers where entries are dead.
func (g *generator) noteGraves(pools []*naivePool) {
	g.graves = nil
	for _, p := range pools {
		if len(p.graves()) > 0 {
			g.graves = append(g.graves, p.policy.Name)
		}
	}
}

func (g *generator) deadLimit() int { return pick(g, "dead limit", 1, 2, admission.MaxRedrive) }

func (g *generator) deadFilter() admission.DeadFilter {
	f := admission.DeadFilter{KeyPrefix: pick(g, "prefix", "", "", "", "k")}
	if g.chance(4, "of a tenant") {
		f.Tenant = g.tenant()
	}
	if g.chance(5, "of a lane") {
		f.Lane = pick(g, "lane", laneNames...)
	}
	if g.chance(4, "of an outcome") {
		f.Outcome = pick(g, "outcome", admission.OutcomeFailed, admission.OutcomeDead, admission.OutcomeExpired)
	}
	return f
}

// cursor draws where a walk among the dead goes on, mostly nowhere.
func (g *generator) cursor() admission.DeadCursor {
	if len(g.left) == 0 || g.chance(2, "from the beginning") {
		return admission.DeadCursor{}
	}
	back := rapid.IntRange(0, min(len(g.left)-1, 2)).Draw(g.rt, "cursor")
	return g.left[len(g.left)-1-back]
}

// translated is an entry with the places among the dead as naive gave them out.
func (a *agreement) translated(e admission.Entry) admission.Entry {
	ops := slices.Clone(e.Ops)
	for i, op := range ops {
		switch op := op.(type) {
		case *admission.Redrive:
			twin := *op
			twin.From = a.cursors[op.From]
			ops[i] = &twin
		case *admission.PurgeDead:
			twin := *op
			twin.From = a.cursors[op.From]
			ops[i] = &twin
		}
	}
	e.Ops = ops
	return e
}

// goOn notes what a place among the dead is to both.
func (a *agreement) goOn(want, got admission.Result) {
	to, ok := got.(*admission.DeadResult)
	if !ok {
		return
	}
	from, none := want.(*admission.DeadResult).Next, admission.DeadCursor{}
	a.same("there are more", from != none, to.Next != none)
	if a.cursors == nil {
		a.cursors = make(map[admission.DeadCursor]admission.DeadCursor)
	}
	if to.Next != none {
		a.cursors[to.Next] = from
	}
}
