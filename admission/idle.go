package admission

import (
	"math"
	"time"
)

const (
	// spareTime is how long an idle tenant stays known in case it comes back, in
	// cluster time: as long as it takes to fill limits.tenants with new ones, both
	// limits being what they are by default. So no crowd that fits the one is held
	// up by the other, however seldom each comes.
	spareTime = 100 * time.Second
	// forgetLimit bounds the tenants looked at in one entry, and those forgotten.
	forgetLimit = 2000
	// idleRecheck is when to look again at a tenant that is still ahead of its
	// lane's floor.
	idleRecheck = Instant(1e9)
)

// idleness is a tenant's place in pool.idle or pool.spare.
type idleness struct {
	at     Instant
	tenant *tenant
}

func idlenessLess(a, b idleness) bool {
	if a.at != b.at {
		return a.at < b.at
	}
	return a.tenant.num < b.tenant.num
}

// idleBy says whether a tenant may be found idle by that moment.
func (p *pool) idleBy(now Instant) bool {
	first, ok := p.idle.Min()
	return ok && first.at <= now
}

// noteIdle keeps pool.idle true after anything happened to the tenant.
func (s *State) noteIdle(t *tenant) {
	at := Instant(0)
	if t.permits == 0 && t.entries == 0 && t.waiting == 0 && t.reports == 0 && !t.row.paused && t.pausedGroups == 0 {
		at = s.t.Add(1) // not in this very entry
		for i := range t.row.buckets {
			at = max(at, t.row.buckets[i].fullAt(t.share.buckets[i]))
		}
		if at == never {
			at = 0 // a used one_shot bucket is never forgotten
		}
	}
	s.setIdle(t, at, false)
}

func (s *State) setIdle(t *tenant, at Instant, spare bool) {
	if at == t.row.idleAt && spare == t.row.spare {
		return
	}
	row := s.writeTenant(t)
	switch place := (idleness{row.idleAt, t}); {
	case row.spare:
		t.pool.spare.Delete(place)
		t.pool.countStranger(t, 1)
	case row.idleAt != 0:
		t.pool.idle.Delete(place)
	}
	row.idleAt, row.spare = at, spare
	t.indexIdle()
}

// indexIdle enters a known tenant where its row says.
func (t *tenant) indexIdle() {
	switch place := (idleness{t.row.idleAt, t}); {
	case t.row.spare:
		t.pool.spare.Set(place)
		t.pool.countStranger(t, -1)
	case t.row.idleAt != 0:
		t.pool.idle.Set(place)
	}
}

// forgetIdle finds tenants that nothing distinguishes from new ones: no permit, no
// entry, no pause of it or of a group, full buckets, and no tag above the floor. It
// forgets those of which the pool has a word: they are never new. The others would
// count as new when they come back, and are spare for a while.
func (s *State) forgetIdle(p *pool) {
	for range forgetLimit {
		next, ok := p.idle.Min()
		if !ok || next.at > s.t {
			break
		}
		switch t := next.tenant; {
		case t.ahead():
			s.setIdle(t, s.t+min(idleRecheck, math.MaxInt64-s.t), false)
		case t.strange():
			s.setIdle(t, next.at, true)
		default:
			s.forget(t)
		}
	}
	for range forgetLimit {
		next, ok := p.spare.Min()
		if !ok || s.t.Sub(next.at) < spareTime {
			return
		}
		s.forget(next.tenant)
	}
}

// makeRoom forgets those that are spare longest where the pool knows more tenants
// than it may. It runs when the entry needs them no more.
func (s *State) makeRoom(p *pool) {
	for range forgetLimit {
		longest, ok := p.spare.Min()
		if !ok || p.strangers+int64(p.spare.Len()) <= p.limits.Tenants {
			return
		}
		s.forget(longest.tenant)
	}
}

// ahead says whether a tag of the tenant is above its floor.
func (t *tenant) ahead() bool {
	for _, d := range t.demands {
		for c := range d.row.tags {
			if d.row.tags[c] > d.lane.classes[c].floor {
				return true
			}
		}
	}
	return false
}

func (s *State) forget(t *tenant) {
	s.setIdle(t, 0, false)
	if t.pausedGroups > 0 {
		s.forgetPausedGroups(t)
	}
	for _, d := range t.demands {
		s.forgetDemand(d)
	}
	s.tenants.Delete(tenantItem{num: t.num})
	t.pool.tenants.drop(t.id)
	t.pool.named.Delete(t)
	t.pool.countStranger(t, -1)
}

// forgetDemand drops the row of a demand that wants nothing, and any mark to be seated
// anew: it would be written again.
func (s *State) forgetDemand(d *demand) {
	d.unsettled = false
	s.demands.Delete(d.row.item())
}
