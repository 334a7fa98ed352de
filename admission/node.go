package admission

// A fleet of machines that each own a part of the work polls with that part: a
// node holds no more than its part of what a tenant may have, rounded up. So one
// machine can't take all of a tenant's permits while the others stand idle.

// nodeHolding counts the live permits of a tenant that a node holds. Its key is
// all but the count.
type nodeHolding struct {
	pool   uint32
	node   string
	tenant *tenant
	held   int64
}

func nodeHoldingLess(a, b nodeHolding) bool {
	if a.pool != b.pool {
		return a.pool < b.pool
	}
	if a.node != b.node {
		return a.node < b.node
	}
	return a.tenant.num < b.tenant.num
}

// countOnNode keeps State.nodes true as a permit comes or goes.
func (s *State) countOnNode(p *permitRow, n int64) {
	if p.node == "" {
		return
	}
	t := p.demand.tenant
	key := nodeHolding{pool: t.pool.num, node: p.node, tenant: t}
	if now, ok := s.nodes.Get(key); ok {
		key.held = now.held
	}
	if key.held += n; key.held == 0 {
		s.nodes.Delete(key)
		return
	}
	s.nodes.Set(key)
}

// part is the most permits of the tenant that the node may hold, 0 for any number.
func (n Node) part(t *tenant) int64 {
	if n.ID == "" || n.Total <= 0 {
		return 0
	}
	return (t.share.maxActive*n.Owned + n.Total - 1) / n.Total
}

// nodeFull says whether the node holds its whole part of the tenant's permits.
func (s *State) nodeFull(n Node, t *tenant) bool {
	most := n.part(t)
	if most == 0 || !t.known() {
		return false
	}
	now, _ := s.nodes.Get(nodeHolding{pool: t.pool.num, node: n.ID, tenant: t})
	return now.held >= most
}

// fullOn calls fn with the tenants of which the node holds its whole part, as many
// at most as it holds permits.
func (s *State) fullOn(n Node, p *pool, fn func(*tenant)) {
	if n.ID == "" {
		return
	}
	s.nodes.Ascend(nodeHolding{pool: p.num, node: n.ID, tenant: &tenant{}}, func(h nodeHolding) bool {
		if h.pool != p.num || h.node != n.ID {
			return false
		}
		if most := n.part(h.tenant); most > 0 && h.held >= most {
			fn(h.tenant)
		}
		return true
	})
}
