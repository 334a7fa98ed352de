package admission

import "strconv"

// putRow is a tenant's row of its own. It is replaced, never changed.
type putRow struct {
	pool   *pool
	tenant TenantPolicy
}

func putLess(a, b *putRow) bool {
	if a.pool.num != b.pool.num {
		return a.pool.num < b.pool.num
	}
	return a.tenant.ID < b.tenant.ID
}

func (r *putRow) export() PutRow { return PutRow{Pool: r.pool.name, Tenant: r.tenant} }

// putTenants puts all rows or none.
func (s *State) putTenants(op *PutTenants) *PutTenantsResult {
	p := s.pools.open(op.Pool)
	if p == nil {
		return &PutTenantsResult{Err: poolNotFound(op.Pool)}
	}
	if bad := s.policy.pool(op.Pool).checkRows(op.Rows); len(bad) > 0 {
		return &PutTenantsResult{Err: &Error{Reason: InvalidField, Field: bad[0].Field, Message: bad[0].Message}}
	}
	if n := p.added(op.Rows); n > 0 && int64(len(p.puts)+n) > p.limits.TenantRows {
		return &PutTenantsResult{Err: limitReached(p.name, "limits.tenant_rows", p.limits.TenantRows)}
	}
	res := &PutTenantsResult{}
	reshared, waiting := map[*tenant]bool{}, int64(0)
	for i := range op.Rows {
		if !s.putTenant(p, &op.Rows[i]) {
			continue
		}
		res.Changed++
		if t := p.tenants.get(op.Rows[i].Tenant.ID); t != nil {
			reshared[t] = true
			waiting += t.waiting
		}
	}
	s.reviewWaiters(waiting, func(t *tenant) bool { return reshared[t] })
	return res
}

// checkRows returns every rule that the rows break under this policy.
func (p *PoolPolicy) checkRows(rows []TenantPut) []Violation {
	c := &checker{}
	ids := make(map[string]bool, len(rows))
	for i := range rows {
		c.named("rows["+strconv.Itoa(i)+"].tenant", p, &rows[i].Tenant, ids)
	}
	return c.found
}

// added counts by how many the pool's rows would grow.
func (p *pool) added(rows []TenantPut) int {
	n := 0
	for i := range rows {
		switch has := p.puts[rows[i].Tenant.ID] != nil; {
		case has && rows[i].Remove:
			n--
		case !has && !rows[i].Remove:
			n++
		}
	}
	return n
}

// putTenant puts or removes one row, and says whether anything changed. A tenant
// that is known has its new share at once.
func (s *State) putTenant(p *pool, put *TenantPut) bool {
	id := put.Tenant.ID
	old := p.puts[id]
	switch {
	case put.Remove && old == nil, !put.Remove && old != nil && old.tenant.equal(put.Tenant):
		return false
	case put.Remove:
		s.dropPut(old)
	default:
		s.adoptPut(&putRow{p, put.Tenant})
	}
	if t := p.tenants.get(id); t != nil {
		s.reshare(t, p.fairUse)
	}
	return true
}

func (s *State) adoptPut(row *putRow) {
	row.pool.puts[row.tenant.ID] = row
	s.puts.Set(row)
}

func (s *State) dropPut(row *putRow) {
	delete(row.pool.puts, row.tenant.ID)
	s.puts.Delete(row)
}

// refused says why the pool admits nothing of the tenant, or nothing.
func (t *tenant) refused() *Error {
	switch {
	case t.pool.draining:
		return poolNotFound(t.pool.name)
	case t.pool.refuseUnknown && t.strange():
		return unknownTenant(t.pool.name, t.id)
	}
	return nil
}
