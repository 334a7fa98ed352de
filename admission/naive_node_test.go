package admission_test

// nodeFull says whether the node that calls holds its part of what a tenant may have,
// rounded up.
func (n *naive) nodeFull(c *naiveCall, d *naiveDemand) bool {
	node, most := c.op.Node, c.pool.terms(d.tenant.id).MaxActive
	if node.ID == "" || most == 0 {
		return false
	}
	var held int64
	for _, permit := range n.permits {
		if permit.pool == c.pool && permit.tenant == d.tenant.id && permit.node == node.ID {
			held++
		}
	}
	return held*node.Total >= most*node.Owned
}
