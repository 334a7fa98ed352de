package simulate

import (
	"time"

	"github.com/admitd/admit/admission"
)

// idleTime sums the time of slots that stood free while somebody had demand that
// they would have served, reserves and yields aside.
type idleTime struct {
	// slots counts demand that was there to be served: in line, or due with a
	// poll parked for it. It is the core's to leave none idle.
	slots float64
	// unasked counts work for which nobody asked: due while all workers were busy
	// or between their polls, or shed and to come back later.
	unasked float64

	now, unaskedNow int64
}

// pass books the time in which nothing changed.
func (i *idleTime) pass(d time.Duration) {
	i.slots += float64(i.now) * d.Seconds()
	i.unasked += float64(i.unaskedNow) * d.Seconds()
}

// measure sees what is idle from now on: lane by lane it plans whom the free slots
// would serve.
func (l *ledger) measure() {
	parked := l.run.parkedRoom(l)
	l.idle.now, l.idle.unaskedNow = 0, 0
	for _, ln := range l.lanes {
		ln.planned = 0
	}
	for _, ln := range l.lanes {
		free := ln.free()
		if free <= 0 {
			continue
		}
		present, absent := ln.serviceable(parked)
		served := min(free, present)
		unasked := min(free-served, absent)
		l.idle.now += served
		l.idle.unaskedNow += unasked
		ln.planned = served + unasked
	}
}

// serviceable is the lane's demand that nothing of its tenants' own holds: what
// somebody is there to take, and what nobody is. parked is what polls have room
// for, by lane.
func (ln *lane) serviceable(parked []int64) (present, absent int64) {
	due := int64(0)
	for i := range ln.contests {
		for _, w := range ln.contests[i].members {
			room := w.tenant.room()
			waiting := min(w.waiting, room)
			present += waiting
			due += min(w.due, room-waiting)
		}
	}
	claimed := min(due, parked[ln.rank])
	return present + claimed, due - claimed + ln.away
}

// free is how many more permits of the lane the pool could give, reserves and what
// is planned aside.
func (ln *lane) free() int64 {
	l := ln.ledger
	if ln.yielding {
		return 0
	}
	free := ln.tokens()
	if l.policy.MaxActive == 0 {
		return free
	}
	for _, above := range l.lanes[:ln.rank+1] {
		held := int64(0)
		for _, below := range l.lanes[above.rank:] {
			held += below.active + below.planned
		}
		free = min(free, l.policy.MaxActive-above.policy.LeaveSlots-held)
	}
	return free
}

// tokens is how many permits of the lane the POOL buckets have tokens for.
func (ln *lane) tokens() int64 {
	n, i := int64(1<<53), 0
	for _, b := range ln.ledger.policy.Buckets {
		if b.Scope != admission.ScopePool {
			continue
		}
		level := ln.ledger.health.Buckets[i]
		i++
		cost := ln.costliest
		if b.PerPermit {
			cost = 1
		}
		if level.Paused {
			return 0
		}
		n = min(n, max(level.Level-ln.policy.LeaveTokens[b.Name], 0)/cost)
	}
	for _, above := range ln.ledger.lanes[:ln.rank] {
		n -= above.planned
	}
	return n
}
