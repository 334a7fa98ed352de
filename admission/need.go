package admission

import "math"

// need is what somebody needs to be granted a permit, besides what the demand
// says already.
type need struct {
	cost int64
	// slotless says that it takes tokens only.
	slotless bool
	// single says that it is no entry, and so never part of a batch.
	single bool
	lock   string
	job    string
	// seq is its place in line; what does not wait comes after all that does.
	seq uint64
}

// oneEntry is what an entry needs. No waiter of its own demand holds it.
var oneEntry = need{cost: 1}

func (a *Acquire) need() need {
	return need{single: true, cost: a.Cost, slotless: a.RateOnly, lock: a.LockKey, job: a.DedupeKey, seq: math.MaxUint64}
}

func (w *waiter) need() need {
	n := need{single: true, cost: w.cost, slotless: w.slotless, job: w.jobKey, seq: w.seq}
	if w.lock != nil {
		n.lock = w.lock.name.key
	}
	return n
}

// fits says whether the demand may be granted that now: slots, reserves, buckets,
// caps, keys and pauses, all together.
func (s *State) fits(d *demand, n need, now Instant) bool {
	t, l := d.tenant, d.lane
	if t.paused() || l.paused || l.yielding || n.single && l.batch.Only || !l.tokensFree(n.cost, now) {
		return false
	}
	if !n.slotless && (d.capReason() != ReasonNone || !l.slotFor(d.kind())) {
		return false
	}
	if why, _ := t.rateReason(n.cost, now); why != ReasonNone {
		return false
	}
	live, done := t.duplicate(n.job, now)
	return !live && !done && !t.lockBusy(n.lock, n.seq) && s.shortWaiter(d, n.seq, now) == nil
}

// capReason returns which cap of its tenant keeps the demand from one more slot.
func (d *demand) capReason() Reason {
	if d.tenant.atCap() {
		return TenantCap
	}
	if d.tenant.laneFull(d.lane) {
		return LaneCap
	}
	return ReasonNone
}
