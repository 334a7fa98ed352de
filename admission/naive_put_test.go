package admission_test

import (
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/admitd/admit/admission"
)

// row is what a tenant has of its own: a row that was put, else the policy's
// override.
func (p *naivePool) row(tenant string) (row admission.TenantPolicy, ok bool) {
	for _, rows := range [][]admission.TenantPolicy{p.puts, p.policy.Overrides} {
		for _, row := range rows {
			if row.ID == tenant {
				return row, true
			}
		}
	}
	return row, false
}

// putTenants puts all rows or none.
func (n *naive) putTenants(op *admission.PutTenants) *admission.PutTenantsResult {
	p := n.openPool(op.Pool)
	if p == nil {
		return &admission.PutTenantsResult{Err: noPool(op.Pool)}
	}
	if field := p.fault(op.Rows); field != "" {
		return &admission.PutTenantsResult{Err: &admission.Error{Reason: admission.InvalidField, Field: field}}
	}
	old := *p
	var changed []string
	puts := slices.Clone(p.puts)
	for _, put := range op.Rows {
		same := func(row admission.TenantPolicy) bool { return row.ID == put.Tenant.ID }
		before := slices.IndexFunc(puts, same)
		if put.Remove && before < 0 || !put.Remove && before >= 0 && sameRow(puts[before], put.Tenant) {
			continue
		}
		changed = append(changed, put.Tenant.ID)
		if puts = deleteIf(puts, same); !put.Remove {
			puts = append(puts, put.Tenant)
		}
	}
	if len(puts) > len(p.puts) && int64(len(puts)) > p.policy.Limits.TenantRows {
		return &admission.PutTenantsResult{Err: &admission.Error{Reason: admission.LimitReached}}
	}
	p.puts = puts
	for _, id := range changed {
		n.changeTenant(&old, p, p.tenant(id))
	}
	n.review(p, func(w *naiveWaiter) bool { return slices.Contains(changed, w.op.Tenant) })
	return &admission.PutTenantsResult{Changed: len(changed)}
}

func sameRow(a, b admission.TenantPolicy) bool {
	if len(a.LaneMaxActive)+len(b.LaneMaxActive) == 0 {
		a.LaneMaxActive, b.LaneMaxActive = nil, nil
	}
	if len(a.Buckets)+len(b.Buckets) == 0 {
		a.Buckets, b.Buckets = nil, nil
	}
	return reflect.DeepEqual(a, b)
}

// fault is the first field of some rows that does not fit the pool, or empty.
func (p *naivePool) fault(rows []admission.TenantPut) string {
	seen := make(map[string]bool)
	for i, row := range rows {
		at, t := "rows["+strconv.Itoa(i)+"].tenant", row.Tenant
		if seen[t.ID] {
			return at + ".id"
		}
		seen[t.ID] = true
		if most := orElse(t.MaxActive, p.policy.Defaults.MaxActive); t.PreferredActive != nil && most > 0 && *t.PreferredActive > most {
			return at + ".preferred_active"
		}
		if t.Lane != "" && !p.takes(t.Lane) {
			return at + ".lane"
		}
		for _, name := range slices.Sorted(maps.Keys(t.LaneMaxActive)) {
			if !p.takes(name) {
				return at + ".lane_max_active[" + name + "]"
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.Buckets)) {
			if field := p.misfit(name, t.Buckets[name]); field != fits {
				return at + ".buckets[" + name + "]" + field
			}
		}
	}
	return ""
}

// takes says whether a pool has a lane that takes what is new.
func (p *naivePool) takes(lane string) bool {
	l := p.lane(lane)
	return l != nil && !l.draining
}

// fits is what misfit says of numbers that fit.
const fits = "-"

// misfit is the field of a tenant's own numbers that does not fit the TENANT bucket
// of that name, empty if all of them don't.
func (p *naivePool) misfit(name string, o admission.BucketOverride) string {
	for _, b := range p.policy.Buckets {
		if b.Name != name || b.Scope != admission.ScopeTenant {
			continue
		}
		numbers := o.Capacity != 0 || o.Refill != 0 || o.Period != 0
		switch {
		case o.Blocked && numbers:
			return ".blocked"
		case b.Blocked && !o.Blocked && (o.Capacity == 0 || o.Refill == 0 || o.Period == 0):
			return ""
		case b.OneShot && (o.Refill != 0 || o.Period != 0):
			return ""
		}
		return fits
	}
	return ""
}

// refused says why a pool takes nothing new of a tenant, or nothing.
func (p *naivePool) refused(tenant string) *admission.Error {
	if p.draining {
		return noPool(p.policy.Name)
	}
	if p.policy.RefuseUnknown && !p.named(tenant) {
		return &admission.Error{
			Reason: admission.UnknownTenant, Field: "tenant", Meta: []string{"pool", p.policy.Name, "tenant", tenant},
		}
	}
	return nil
}
