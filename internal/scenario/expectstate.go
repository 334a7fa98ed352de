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
func perName(r *reader, s *step, node *yaml.Node, known []string, have func(o *outcome, name string) map[string]int64) check {
	wanted := map[string]bounds{}
	for _, p := range r.Pairs(node, "what is wanted by name") {
		b := bounds{}
		for _, f := range r.Known(p.Value, "what is wanted of "+p.Key.Value, "key", known) {
			b[f.Key.Value] = r.boundOrFlag(f.Value)
		}
		wanted[p.Key.Value] = b
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
	return perName(r, s, node, []string{"active", "granted", "debt"}, func(o *outcome, tenant string) map[string]int64 {
		h := o.run.state.Tenant(o.run.now, o.pool, tenant)
		return map[string]int64{"active": h.Active, "debt": h.Debt, "granted": o.run.grants[owner{o.pool, tenant}]}
	})
}

func readLanes(r *reader, s *step, node *yaml.Node) check {
	return perName(r, s, node, []string{"depth", "yielding"}, func(o *outcome, lane string) map[string]int64 {
		for _, l := range o.run.health(o.pool).Lanes {
			if l.Lane == lane {
				return map[string]int64{"depth": l.Depth, "yielding": flag(l.Yielding)}
			}
		}
		return nil
	})
}

// flag is 1 where something holds, for checks of numbers.
func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}

// boundOrFlag reads a bound, or true or false as flag has it.
func (r *reader) boundOrFlag(node *yaml.Node) bound {
	if node.Tag != "!!bool" {
		return r.bound(node)
	}
	n := flag(r.Flag(node))
	return bound{n, n}
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
	for _, p := range r.Pairs(node, "levels by tenant and bucket") {
		wanted[p.Key.Value] = r.bounds(p.Value)
	}
	return func(o *outcome) (string, string, bool) {
		return checkPerName(wanted, func(tenant string) map[string]int64 { return o.run.levels(o.pool, tenant) })
	}
}

// levels returns what is left in the tenant's own buckets.
func (r *run) levels(pool, tenant string) map[string]int64 {
	out := map[string]int64{}
	for _, l := range r.state.Tenant(r.now, pool, tenant).Levels {
		out[l.Bucket] = l.Level
	}
	return out
}
