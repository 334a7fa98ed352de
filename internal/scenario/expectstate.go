package scenario

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/admitd/admit/admission"
)

// health returns how a pool stands; one that is not known stands empty.
func (r *run) health(pool string) admission.PoolHealth {
	for _, h := range r.state.Health(r.now, r.wall(), pool) {
		if h.Pool == pool {
			return h
		}
	}
	return admission.PoolHealth{}
}

// due counts the entries of a pool that are due and unclaimed.
func (r *run) due(pool string) int64 {
	const page = 1000
	image := r.state.Snapshot()
	filter := admission.ListFilter{Pool: pool, DueBefore: r.wall() + 1}
	var n int64
	var afterDue admission.Wall
	var afterSeq uint64
	for {
		rows, err := image.ListEntries(filter, afterDue, afterSeq, page)
		if err != nil {
			return n
		}
		for _, row := range rows {
			if !row.Claimed {
				n++
			}
		}
		if len(rows) < page {
			return n
		}
		last := rows[len(rows)-1]
		afterDue, afterSeq = last.DueAt, last.Seq
	}
}

// perName reads a check of numbers for each of several names: tenants, lanes.
func perName(r *reader, s *step, node *yaml.Node, known, missing []string, have func(o *outcome, name string) map[string]int64) check {
	wanted := map[string]bounds{}
	for _, p := range r.pairs(node, "what is wanted by name") {
		b := bounds{}
		for _, f := range r.known(p.value, "what is wanted of "+p.key.Value, "key", slices.Concat(known, missing)) {
			if slices.Contains(missing, f.key.Value) {
				s.missing = append(s.missing, f.key.Value)
				continue
			}
			b[f.key.Value] = r.bound(f.value)
		}
		wanted[p.key.Value] = b
	}
	return func(o *outcome) (string, string, bool) {
		return checkPerName(wanted, func(name string) map[string]int64 { return have(o, name) })
	}
}

func checkPerName(wanted map[string]bounds, have func(name string) map[string]int64) (want, got string, ok bool) {
	var wants, gots []string
	ok = true
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		w, g, holds := wanted[name].check(have(name))
		wants, gots, ok = append(wants, name+": "+w), append(gots, name+": "+g), ok && holds
	}
	return braces(wants), braces(gots), ok
}

func readTenants(r *reader, s *step, node *yaml.Node) check {
	return perName(r, s, node, []string{"active", "granted", "debt"}, nil, func(o *outcome, tenant string) map[string]int64 {
		active, debt := o.run.holds(o.pool, tenant)
		return map[string]int64{"active": active, "debt": debt, "granted": o.run.grants[owner{o.pool, tenant}]}
	})
}

func readLanes(r *reader, s *step, node *yaml.Node) check {
	return perName(r, s, node, []string{"depth"}, []string{"yielding"}, func(o *outcome, lane string) map[string]int64 {
		for _, l := range o.run.health(o.pool).Lanes {
			if l.Lane == lane {
				return map[string]int64{"depth": l.Depth}
			}
		}
		return nil
	})
}

func readBuckets(r *reader, _ *step, node *yaml.Node) check {
	want := r.bounds(node)
	return func(o *outcome) (string, string, bool) {
		have := map[string]int64{}
		for _, b := range o.run.health(o.pool).Buckets {
			have[b.Bucket] = b.Level
		}
		return want.check(have)
	}
}

func readTenantBuckets(r *reader, _ *step, node *yaml.Node) check {
	wanted := map[string]bounds{}
	for _, p := range r.pairs(node, "levels by tenant and bucket") {
		wanted[p.key.Value] = r.bounds(p.value)
	}
	return func(o *outcome) (string, string, bool) {
		return checkPerName(wanted, func(tenant string) map[string]int64 { return o.run.levels(o.pool, tenant) })
	}
}

// levels returns what is left in the tenant's own buckets: the limits that block
// a request which no bucket can grant, asked of a copy where every bucket charges
// by cost.
func (r *run) levels(pool, tenant string) map[string]int64 {
	copied, err := restored(r.state.Snapshot())
	if err != nil {
		return nil
	}
	policy, _, _ := copied.Policy()
	policy.Pools = slices.Clone(policy.Pools)
	for i := range policy.Pools {
		buckets := slices.Clone(policy.Pools[i].Buckets)
		for j := range buckets {
			buckets[j].PerPermit = false
		}
		policy.Pools[i].Buckets = buckets
	}
	copied.Apply(admission.Entry{Index: r.index + 1, T: r.now, W: r.wall(), Ops: []admission.Op{
		admission.ApplyPolicy{Policy: policy, ExpectedRevision: admission.AnyRevision},
	}})
	res := copied.Decide(r.now, &admission.Acquire{Pool: pool, Tenant: tenant, Cost: maxTokens})
	if res.Err != nil || res.Decision.Shed == nil {
		return nil
	}
	out := map[string]int64{}
	for _, l := range res.Decision.Shed.Blocking {
		if l.Scope == admission.ScopeTenant && l.Capacity > 0 && l.Asked == maxTokens {
			out[l.Name] = l.Capacity - l.Used
		}
	}
	return out
}

// holds returns the tenant's live permits, and by how many they exceed its cap.
func (r *run) holds(pool, tenant string) (active, debt int64) {
	var num uint64 // 0 while the tenant is not found; tenants come before permits
	for row := range r.state.Snapshot().Rows() {
		switch row := row.(type) {
		case admission.TenantRow:
			if row.Pool == pool && row.ID == tenant {
				num = row.Num
			}
		case admission.PermitRow:
			if num != 0 && row.Tenant == num {
				active++
			}
		}
	}
	if limit := r.tenantCap(pool, tenant); limit > 0 {
		debt = max(0, active-limit)
	}
	return active, debt
}

// tenantCap returns the tenant's max_active, or 0 for none.
func (r *run) tenantCap(pool, tenant string) int64 {
	policy, _, _ := r.state.Policy()
	for _, p := range policy.Pools {
		if p.Name != pool {
			continue
		}
		for _, t := range p.Overrides {
			if t.ID == tenant && t.MaxActive != 0 {
				return t.MaxActive
			}
		}
		return p.Defaults.MaxActive
	}
	return 0
}
