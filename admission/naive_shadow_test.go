package admission_test

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// pass lets an Acquire through that would have been shed, and charges nothing.
func (n *naive) pass(p *naivePool, turn naiveTurn, op *admission.Acquire, shed *admission.Shed) admission.Decision {
	d, lane := admission.Decision{WouldShed: shed}, turn.d.lane
	if op.RateOnly || n.full(p, op.Tenant, lane) {
		d.Permit = admission.Permit{Pool: op.Pool, Tenant: op.Tenant, Lane: lane, State: admission.PermitSpent}
		return d
	}
	requests, forgets := n.requests, slices.ContainsFunc(shed.Blocking, func(l admission.Limit) bool {
		return l.Name == "limits.request_ids"
	})
	permit := n.issue(p, turn, op.Cost)
	permit.uncounted = true
	d = n.hand(p, op, permit, d)
	permit.lockKey, permit.dedupeKey = "", ""
	if forgets {
		n.requests = requests
	}
	return d
}
