package admission_test

import (
	"slices"

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
