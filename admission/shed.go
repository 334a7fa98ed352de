package admission

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/btree"
)

// Shedding shows who is held back in a pool, and why. It is no part of any result
// and changes nothing; the cost depends on the rows shown, not on the backlog.
func (s *State) Shedding(at Instant, w Wall, q SheddingQuery) Shedding {
	p := s.pools.byName(q.Pool)
	if p == nil {
		return Shedding{At: at, Index: s.index, Revision: s.revision}
	}
	v := s.shedView(p, at, w)
	v.call = q.Call
	out := Shedding{At: v.at, Index: s.index, Revision: s.revision, Lanes: v.laneStates(), Totals: v.totals()}
	if q.Tenant != "" {
		out.Held = v.tenant(p.tenant(q.Tenant))
		return out
	}
	out.Held, out.More = v.tenants(q.HeldRows)
	return out
}

// Wants says whether a tenant has demand in a pool that could be held. Who has none is
// shown the same Shedding as every other such tenant of the pool.
func (s *State) Wants(pool, tenant string) bool {
	p := s.pools.byName(pool)
	if p == nil {
		return false
	}
	t := p.tenants.get(tenant)
	return t != nil && slices.ContainsFunc(t.demands, func(d *demand) bool { return d.row != nil && d.row.standing.wants })
}

// shedView is one look at a pool's shedding.
type shedView struct {
	*State
	pool *pool
	at   Instant
	w    Wall
	call *NextDueResult
	// holder reserves the pool's tokens, if reserved.
	holder   position
	reserved bool
	// lanes are by rank.
	lanes []laneReasons
}

// laneReasons are what holds everybody in a lane: all of it, and by class and by
// whether tokens are all that is needed.
type laneReasons struct {
	all    Reason
	slot   [classCount]Reason
	tokens [classCount]Reason
}

func (s *State) shedView(p *pool, at Instant, w Wall) *shedView {
	v := &shedView{State: s, pool: p, at: max(at, s.t), w: w}
	v.holder, v.reserved = s.reservation(p, v.at)
	for _, l := range p.lanes {
		own := laneReasons{all: v.laneReason(l, entitled, true)}
		for k := range classCount {
			own.slot[k], own.tokens[k] = v.laneReason(l, k, false), v.laneReason(l, k, true)
		}
		v.lanes = append(v.lanes, own)
	}
	return v
}

// of returns what holds a demand that stands so; something that holds everybody
// may come before a reason of its tenant's own.
func (r *laneReasons) of(at *standing) Reason {
	switch {
	case at.held != ReasonNone:
		return firstReason(at.held, r.all)
	case at.open && at.slot:
		return r.slot[at.class]
	case at.open:
		return r.tokens[at.class]
	}
	return ReasonNone
}

func (v *shedView) laneStates() []LaneState {
	rows := make([]LaneState, len(v.pool.lanes))
	for i, l := range v.pool.lanes {
		rows[i] = l.state(v.w)
	}
	return rows
}

func (l *lane) state(w Wall) LaneState {
	row := LaneState{Lane: l.name, Depth: l.depth, Yielding: l.yielding}
	row.OldestAge = oldestAge(l.oldest, w)
	return row
}

// oldestAge is how long the first has been there, 0 if there is none.
func oldestAge(list *btree.BTreeG[oldestDemand], w Wall) time.Duration {
	if first, ok := list.Min(); ok {
		return max(w.Sub(first.since), 0)
	}
	return 0
}

// totals counts the held by reason.
func (v *shedView) totals() []HeldTotal {
	var n [reasonCount]int64
	for _, l := range v.pool.lanes {
		for r, count := range v.laneTotals(l) {
			n[r] += count.all
		}
	}
	var rows []HeldTotal
	for r, count := range n {
		if count > 0 && Reason(r) != ReasonNone {
			rows = append(rows, HeldTotal{Reason(r), count})
		}
	}
	return rows
}

// laneTotals counts the lane's held by reason. Entries that nothing holds are counted
// with them, since the call may have left them.
func (v *shedView) laneTotals(l *lane) (n [reasonCount]heldCount) {
	own := &v.lanes[l.rank]
	for r, count := range l.held {
		why := firstReason(Reason(r), own.all)
		n[why].all += count.all
		n[why].entries += count.entries
	}
	for k := range classCount {
		open := l.open[k]
		n[own.slot[k]].all += open.slot
		n[own.slot[k]].entries += open.entries
		n[own.tokens[k]].all += open.slotless
	}
	v.callTotals(l, &n)
	return n
}

// laneReason returns why the pool lets nothing of the lane's class pass, whosever
// it is.
func (v *shedView) laneReason(l *lane, k classKind, slotless bool) Reason {
	why := ReasonNone
	switch {
	case l.yielding:
		why = LaneYield
	case slotless:
	case !l.slotFree():
		why = PoolCap
	case l.reclaimed(k):
		why = ReclaimWait
	}
	for i := range l.pool.buckets {
		b := &l.pool.buckets[i]
		state := b.settled(b.bucketSpec, v.at)
		why = firstReason(why, state.refusal(b.bucketSpec, b.charge(1), l.leaveTokens[i], PoolRate, v.at))
		if v.behind(l, k) {
			why = firstReason(why, v.lacks(v.holder, i, v.at))
		}
	}
	return why
}

// behind says whether the class comes after whoever reserves the pool's tokens.
// The whole of a reserver's own class is told as behind it.
func (v *shedView) behind(l *lane, k classKind) bool {
	if !v.reserved {
		return false
	}
	by := v.holder.demand
	return l.rank > by.lane.rank || l == by.lane && k >= by.kind()
}

// firstReason returns the reason that is told first.
func firstReason(a, b Reason) Reason {
	if a == ReasonNone || b != ReasonNone && b < a {
		return b
	}
	return a
}

// tenants returns the rows of up to limit tenants. It starts at another one each
// second, so that all are seen in turn.
func (v *shedView) tenants(limit int) (rows []HeldTenant, more bool) {
	shown := 0
	visit := func(t *tenant) bool {
		held := v.tenant(t)
		if len(held) == 0 {
			return true
		}
		if shown++; shown > limit {
			more = true
			return false
		}
		rows = append(rows, held...)
		return true
	}
	h := fnv.New32a()
	h.Write(strconv.AppendInt(nil, int64(v.at)/int64(time.Second), 10))
	start := wish{hash: h.Sum32()}
	examined := 0
	bounded := func(w wish) bool {
		if examined++; examined > limit+maxUnheld {
			more = true
			return false
		}
		return visit(w.tenant)
	}
	v.pool.wanting.Ascend(start, bounded)
	if !more {
		v.pool.wanting.Ascend(wish{}, func(w wish) bool { return wishLess(w, start) && bounded(w) })
	}
	return rows, more
}

// maxUnheld bounds how many tenants that are not held are passed over.
const maxUnheld = 1000

// tenant returns the rows of one tenant, highest lane first.
func (v *shedView) tenant(t *tenant) (rows []HeldTenant) {
	for _, l := range v.pool.lanes {
		if d := t.demand(l); d.row != nil && d.row.standing.wants {
			if row, held := v.row(d); held {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// row returns the demand's row, if it is held.
func (v *shedView) row(d *demand) (HeldTenant, bool) {
	row := d.row.held(v.w)
	why := v.reason(d)
	if row.Reason = v.callReason(d, why); why != ReasonNone && row.Reason == why { // a call's own reason goes with the call
		row.RetryAfter = v.retryAfter(d)
	}
	return row, row.Reason != ReasonNone
}

// held returns what the row tells of itself, but for the reason.
func (d *demandRow) held(w Wall) HeldTenant {
	at := &d.standing
	h := HeldTenant{Tenant: d.tenant.id, Lane: d.lane.name, Due: at.due, Waiting: at.waiting, RetryAfter: Absent}
	if at.due > 0 {
		h.OldestAge = max(w.Sub(at.oldest), 0)
	}
	return h
}

// reason returns what holds the demand but for the call that is answered.
func (v *shedView) reason(d *demand) Reason {
	return v.lanes[d.lane.rank].of(&d.row.standing)
}

// retryAfter returns the time after which one more of the demand could be served.
func (v *shedView) retryAfter(d *demand) time.Duration {
	if d.row.standing.held == Paused {
		return Absent
	}
	n := oneEntry
	if !d.has(fromEntries) {
		for src := fromWaiters; src <= fromRateWaiters; src++ {
			if w := v.headWaiter(d, src); w != nil {
				n = w.need()
			}
		}
	}
	x := v.newExamination(d, n, v.at)
	if v.behind(d.lane, d.kind()) && v.holder.demand != d {
		x.holder = &v.holder
	}
	x.run()
	if x.reason == ReasonNone || d.queued == [2]int64{} && !d.has(fromEntries) {
		return Absent
	}
	return untilMillis(x.now, x.readyAt)
}

// NextDueIn returns the time until the pool's next entry comes due, or Absent.
func (s *State) NextDueIn(pool string, w Wall) time.Duration {
	p := s.pools.byName(pool)
	if p == nil {
		return Absent
	}
	if first, ok := p.comesDue(); ok {
		return ceilMillis(max(first.Sub(w), 0))
	}
	return Absent
}
