package admission_test

import (
	"github.com/admitd/admit/admission"
)

// atLock says whether a waiter waits for its lock. The first for which there is
// room at the key wait for their turn, the others for the lock.
func (n *naive) atLock(w *naiveWaiter) bool {
	if w.op.LockKey == "" {
		return false
	}
	return len(n.lockLimits(w.pool, w.op, w.seq)) > 0
}

// atKey are the waiters of one tenant and key that somebody listens for.
func (n *naive) atKey(p *naivePool, op *admission.Acquire) []*naiveWaiter {
	return n.waitersOf(p, func(w *naiveWaiter) bool {
		return w.op.Tenant == op.Tenant && w.op.LockKey == op.LockKey && w.detached == 0
	})
}

// locked counts the permits that hold a lock key.
func (n *naive) locked(p *naivePool, op *admission.Acquire) int64 {
	var count int64
	for _, permit := range n.permits {
		if holdsLock(permit, p, op) {
			count++
		}
	}
	return count
}

func holdsLock(permit *naivePermit, p *naivePool, op *admission.Acquire) bool {
	return permit.pool == p && permit.tenant == op.Tenant && permit.lockKey == op.LockKey
}

// lockLimits hold an Acquire for which there is no room at its key, behind those
// that came before its place in line.
func (n *naive) lockLimits(p *naivePool, op *admission.Acquire, seq uint64) []naiveLimit {
	if op.LockKey == "" {
		return nil
	}
	held := n.locked(p, op)
	before := deleteIf(n.atKey(p, op), func(w *naiveWaiter) bool { return w.seq >= seq })
	if held+int64(len(before)) < p.policy.LockMaxActive {
		return nil
	}
	return []naiveLimit{{
		Limit: admission.Limit{
			Name: "lock_key", Scope: admission.ScopeTenant, Capacity: p.policy.LockMaxActive,
			Used: held, Asked: 1, Holders: held, RetryAfter: admission.Absent,
		},
		reason: admission.LockBusy, own: true,
		frees: func(permit *naivePermit) bool { return holdsLock(permit, p, op) },
	}}
}
