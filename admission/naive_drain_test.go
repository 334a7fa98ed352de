package admission_test

import (
	"slices"

	"github.com/admitd/admit/admission"
)

// naiveLeft is what a policy leaves behind that is in use: a lane, or a whole pool
// if there is no lane.
type naiveLeft struct {
	pool *naivePool
	lane *naiveLane
	told admission.Draining
}

// openPool is the pool of a name that takes what is new, or nil.
func (n *naive) openPool(name string) *naivePool {
	if p := n.pool(name); p != nil && !p.draining {
		return p
	}
	return nil
}

// use counts what stands in a pool, in one of its lanes if that is not empty.
func (n *naive) use(p *naivePool, lane string) admission.Draining {
	use := admission.Draining{Pool: p.policy.Name, Lane: lane}
	for _, permit := range n.permits {
		if permit.pool == p && permit.whole == nil && (lane == "" || permit.lane == lane) {
			use.Permits++
		}
	}
	for _, w := range n.waiters {
		if w.pool == p && (lane == "" || w.d.lane == lane) {
			use.Waiting++
		}
	}
	for _, e := range p.entries {
		if lane == "" || e.lane == lane {
			use.Entries++
		}
	}
	return use
}

func empty(use admission.Draining) bool { return use.Permits+use.Waiting+use.Entries == 0 }

// leftBy is all that is in use and not in a policy.
func (n *naive) leftBy(next admission.Policy) []naiveLeft {
	var left []naiveLeft
	for _, p := range n.pools {
		policy := policyOf(next, p.policy.Name)
		if policy == nil {
			if use := n.use(p, ""); !empty(use) {
				left = append(left, naiveLeft{p, nil, use})
			}
			continue
		}
		for _, l := range p.lanes {
			if use := n.use(p, l.name); !hasLane(*policy, l.name) && !empty(use) {
				left = append(left, naiveLeft{p, l, use})
			}
		}
	}
	return left
}

// policyOf is what a policy says of a pool, or nil.
func policyOf(policy admission.Policy, pool string) *admission.PoolPolicy {
	for _, p := range policy.Pools {
		if p.Name == pool {
			p = filled(p)
			return &p
		}
	}
	return nil
}

func hasLane(p admission.PoolPolicy, lane string) bool {
	return slices.ContainsFunc(p.Lanes, func(l admission.LanePolicy) bool { return l.Name == lane })
}

// inUse says whether a policy that is not to drain anything lacks what is in use
// and does not drain yet.
func (n *naive) inUse(next admission.Policy) bool {
	for _, left := range n.leftBy(next) {
		if left.lane == nil && !left.pool.draining || left.lane != nil && !left.lane.draining {
			return true
		}
	}
	for _, p := range n.pools {
		policy := policyOf(next, p.policy.Name)
		for _, e := range p.entries {
			category := e.spec.Category
			if policy != nil && p.policy.Categories[category] != "" && policy.Categories[category] == "" {
				return true
			}
		}
	}
	return false
}

// finishDrains lets go what drains and is empty.
func (n *naive) finishDrains() {
	done := false
	for _, p := range n.pools {
		done = done || p.draining && empty(n.use(p, ""))
		for _, l := range p.lanes {
			done = done || l.draining && empty(n.use(p, l.name))
		}
	}
	if done {
		n.configure()
	}
}

// configure makes the pools what the policy says, and keeps what drains.
func (n *naive) configure() {
	before, left := n.pools, n.leftBy(n.policy)
	n.pools = nil
	for _, policy := range n.policy.Pools {
		policy = filled(policy)
		own := slices.Clone(policy.Lanes)
		for _, l := range left {
			if l.lane != nil && l.pool.policy.Name == policy.Name {
				policy.Lanes = append(policy.Lanes[:len(policy.Lanes):len(policy.Lanes)], l.last(policy))
			}
		}
		p := n.adopt(before, policy)
		p.draining = false
		for _, l := range p.lanes {
			l.draining = !hasLane(admission.PoolPolicy{Lanes: own}, l.name)
		}
		n.pools = append(n.pools, p)
	}
	for _, l := range left {
		if l.lane == nil {
			n.pools = append(n.pools, n.adopt(before, l.pool.policy))
			l.pool.draining = true
			for _, lane := range l.pool.lanes {
				lane.draining = false
			}
		}
	}
	n.forgetPools(before)
	for _, p := range n.pools {
		n.review(p, func(*naiveWaiter) bool { return true })
	}
}

// last is the policy of a lane that goes on below those of its pool's new policy:
// it leaves less than there is.
func (l naiveLeft) last(policy admission.PoolPolicy) admission.LanePolicy {
	lane := l.pool.policy.Lanes[l.pool.rank(l.lane.name)]
	if lane.LeaveSlots = min(lane.LeaveSlots, policy.MaxActive-1); lane.LeaveSlots < 0 {
		lane.LeaveSlots = 0
	}
	leave := make(map[string]int64)
	for _, b := range policy.Buckets {
		if least := min(lane.LeaveTokens[b.Name], b.Capacity-1); least > 0 {
			leave[b.Name] = least
		}
	}
	lane.LeaveTokens = leave
	return lane
}
