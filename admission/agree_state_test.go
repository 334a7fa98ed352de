package admission_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/admitd/admit/admission"
)

// facts are what both hold, one a line, in no order. Numbers that only one of
// them gives out are left out.
type facts []string

func (f *facts) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

// state compares what both hold.
func (a *agreement) state() {
	a.t.Helper()
	want, got := a.n.facts(), coreFacts(a.core)
	slices.Sort(want)
	slices.Sort(got)
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || want[i] != got[i] {
			a.t.Fatalf("state: want\n%s\ngot\n%s", rest(want, got), rest(got, want))
		}
	}
}

// rest are the facts of one that the other lacks.
func rest(of, other facts) (lacking facts) {
	for _, fact := range of {
		if !slices.Contains(other, fact) {
			lacking = append(lacking, fact+"\n")
		}
	}
	return lacking
}

func (n *naive) facts() facts {
	var f facts
	for _, p := range n.permits {
		entry := ""
		if p.entry != nil {
			entry = p.entry.spec.Key
		}
		if p.whole != nil {
			f.add("part %v fence %d of %d entry %q cancelled %v", p.token, p.fence, p.whole.token.Position, entry, p.cancelled)
			continue
		}
		f.add("permit %v fence %d of %s/%s in %s until %d ttl %d cost %d cancelled %v entry %q lock %q job %q counted %v asked %d",
			p.token, p.fence, p.pool.policy.Name, p.tenant, p.lane, p.expires, p.ttl, p.cost, p.cancelled, entry,
			p.lockKey, p.dedupeKey, !p.uncounted, p.asked)
	}
	for _, w := range n.waiters {
		f.add("waiter %v of %s/%s in %s cost %d lock %q job %q request %q rate %v until %d detached %d asked %d",
			w.key, w.pool.policy.Name, w.op.Tenant, w.d.lane, w.op.Cost, w.op.LockKey, w.op.DedupeKey, w.op.RequestID,
			w.op.RateOnly, w.until, w.detached, w.askedAt)
	}
	for _, d := range n.done {
		f.add("done %s/%s %s at %d", d.pool.policy.Name, d.tenant, d.key, d.at)
	}
	for _, e := range n.ended {
		f.add("ended %v of %s/%s at %d", e.token, e.pool.policy.Name, e.tenant, e.at)
	}
	for _, r := range n.requests {
		f.add("request %s/%s %s at %d", r.pool.policy.Name, r.tenant, r.id, r.at)
	}
	for _, p := range n.pools {
		p.facts(&f, n.w)
	}
	return f
}

func (p *naivePool) facts(f *facts, w admission.Wall) {
	for _, l := range p.lanes {
		f.add("lane %s/%s paused %v yielding %v floors %d %d", p.policy.Name, l.name, l.paused, l.yielding,
			l.orders[0].floor, l.orders[1].floor)
	}
	for _, row := range p.puts {
		f.add("put %s/%s", p.policy.Name, row.ID)
	}
	for _, g := range p.pausedGroups {
		f.add("paused group %s/%s/%s", p.policy.Name, g.tenant, g.name)
	}
	for _, turn := range p.seated() {
		f.stand(p.policy.Name, turn.d.lane, turn.class, turn.d.tenant.id, turn.source, turn.tag)
	}
	for _, e := range p.entries {
		f.add("entry %s/%s/%s in %s due %d first %d attempts %d unstarted %d died %d %d letter %v redriven %v %d history %v",
			p.policy.Name, e.tenant, e.spec.Key, e.lane, e.due, e.first, e.attempts, e.unstarted,
			e.diedAt, e.buriedAt, e.letter, e.redriven, e.cameDue, e.history)
	}
	for _, t := range p.tenants {
		if !t.known {
			continue
		}
		f.add("tenant %s/%s paused %v spare %v", p.policy.Name, t.id, t.paused, t.spare)
		for _, d := range t.demands {
			if p.lingers(d, w) {
				f.add("entries of %s/%s in %s linger", p.policy.Name, t.id, d.lane)
			}
			for class, order := range p.lane(d.lane).orders {
				f.tag(p.policy.Name, t.id, d.lane, class, d.tags[class], d.rems[class], order.floor)
			}
		}
	}
}

// stand is a source that stands in an order, the next one of its class.
func (f *facts) stand(pool, lane string, class int, tenant string, source int, tag int64) {
	line := fmt.Sprintf("order %s/%s class %d: ", pool, lane, class)
	place := 1
	for _, fact := range *f {
		if strings.HasPrefix(fact, line) {
			place++
		}
	}
	f.add("%s%d is source %d of %s with tag %d", line, place, source, tenant, tag)
}

// tag is a tag that counts: one above the floor.
func (f *facts) tag(pool, tenant, lane string, class int, tag, rem, floor int64) {
	if tag > floor {
		f.add("tag %s/%s in %s class %d is %d and %d", pool, tenant, lane, class, tag, rem)
	}
}

func coreFacts(core *admission.State) facts {
	var f facts
	tenants := make(map[uint64]admission.TenantRow)
	lanes := make(map[string]admission.LaneRow)
	var seats []seated
	for row := range core.Snapshot().Rows() {
		switch r := row.(type) {
		case admission.PoolRow:
			for _, l := range r.Lanes {
				lanes[r.Name+"/"+l.Name] = l
				f.add("lane %s/%s paused %v yielding %v floors %d %d", r.Name, l.Name, l.Paused, l.Yielding, l.Floors[0], l.Floors[1])
			}
		case admission.PutRow:
			f.add("put %s/%s", r.Pool, r.Tenant.ID)
		case admission.TenantRow:
			tenants[r.Num] = r
			f.add("tenant %s/%s paused %v spare %v", r.Pool, r.ID, r.Paused, r.Spare)
		case admission.PausedGroupRow:
			f.add("paused group %s/%s/%s", tenants[r.Tenant].Pool, tenants[r.Tenant].ID, r.Group)
		case admission.DemandRow:
			t := tenants[r.Tenant]
			lane := lanes[t.Pool+"/"+r.Lane]
			if r.Lingers != 0 {
				f.add("entries of %s/%s in %s linger", tenants[r.Tenant].Pool, tenants[r.Tenant].ID, r.Lane)
			}
			for class := range r.Tags {
				f.tag(t.Pool, t.ID, r.Lane, class, r.Tags[class], r.Rems[class], lane.Floors[class])
			}
			seats = append(seats, seatsOf(t, r, lane)...)
		case admission.EntryRow:
			t := tenants[r.Tenant]
			f.add("entry %s/%s/%s in %s due %d first %d attempts %d unstarted %d died %d %d letter %v redriven %v %d history %v",
				t.Pool, t.ID, r.Key, r.Lane, r.Due, r.First, r.Attempts, r.Unstarted,
				r.DiedAt, r.BuriedAt, r.Letter != 0, r.Redriven, r.CameDue, r.History)
		case admission.PermitRow:
			t := tenants[r.Tenant]
			f.add("permit %v fence %d of %s/%s in %s until %d ttl %d cost %d cancelled %v entry %q lock %q job %q counted %v asked %d",
				r.Token, r.Fence, t.Pool, t.ID, r.Lane, r.Expires, r.TTL, r.Cost, r.Cancelled, r.Entry,
				r.LockKey, r.DedupeKey, !r.Uncounted, r.Wanted)
		case admission.PartRow:
			f.add("part %v fence %d of %d entry %q cancelled %v", r.Token, r.Fence, r.Permit, r.Entry, r.Cancelled)
		case admission.WaiterRow:
			t := tenants[r.Tenant]
			f.add("waiter %v of %s/%s in %s cost %d lock %q job %q request %q rate %v until %d detached %d asked %d",
				r.Key, t.Pool, t.ID, r.Lane, r.Cost, r.LockKey, r.DedupeKey, r.RequestID,
				r.RateOnly, r.Until, r.DetachedUntil, r.AskedAt)
		case admission.DoneRow:
			f.add("done %s/%s %s at %d", r.Pool, r.Tenant, r.Key, r.At)
		case admission.EndedRow:
			f.add("ended %v of %s/%s at %d", r.Token, r.Pool, r.Tenant, r.At)
		case admission.RequestRow:
			f.add("request %s/%s %s at %d", r.Pool, r.Tenant, r.ID, r.At)
		}
	}
	slices.SortFunc(seats, func(a, b seated) int { return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq)) })
	for _, s := range seats {
		f.stand(s.pool, s.lane, s.class, s.tenant, s.source, s.tag)
	}
	return f
}

// seated is a source of a demand in an order of the core.
type seated struct {
	pool, lane, tenant string
	class, source      int
	tag                int64
	seq                uint64
}

func seatsOf(t admission.TenantRow, r admission.DemandRow, lane admission.LaneRow) (seats []seated) {
	for source, seat := range r.Seats[:sources] {
		if class := int(seat.Seat) - 1; class == entitled || class == borrowing {
			tag := seat.Key
			if source == dueSource {
				tag += lane.Shifts[class]
			}
			seats = append(seats, seated{t.Pool, r.Lane, t.ID, class, source, tag, seat.Seq})
		}
	}
	return seats
}
