package admission

import "github.com/tidwall/btree"

// standing is what of a demand is counted elsewhere: in its lane's totals and
// depth, among the slots kept for reports, and in its tenant. It follows from the
// demand's seats.
type standing struct {
	// wants says whether it wants anything at all, seated or about to be.
	wants bool
	// held is the first of the reasons that hold a part of it.
	held Reason
	// open says that a part of it stands in the order of class.
	open  bool
	class classKind
	// slot says whether some of what stands there needs a slot, entries whether some
	// of all of it is entries.
	slot, entries bool
	depth         int64
	kept          int64
	// due are the entries that are due, since oldest; waiting the Acquires in line.
	// Those of paused groups count only where the demand is held as paused: with
	// the rest, or for want of anything else.
	due, waiting int64
	oldest       Wall
	// listed is its key in lane.oldest while a part of it could be served.
	listed oldestDemand
}

// stand counts the demand as it stands now.
func (s *State) stand(d *demand) {
	was, now := d.row.standing, s.standingOf(d)
	if was == now {
		return
	}
	s.writeDemand(d).standing = now
	l := d.lane
	l.depth += now.depth - was.depth
	l.kept += now.kept - was.kept
	l.count(&was, -1)
	l.count(&now, 1)
	relist(l.oldest, was.listed, now.listed)
	relist(l.entitled, was.entitled(), now.entitled())
	s.noteWant(d, was.wants, now.wants)
}

// entitled is its key in lane.entitled, if it is there.
func (as *standing) entitled() oldestDemand {
	if as.held == ReasonNone && as.open && as.slot && as.class == entitled {
		return as.listed
	}
	return oldestDemand{}
}

// relist puts a demand that is listed, or not, where it is now.
func relist(list *btree.BTreeG[oldestDemand], was, now oldestDemand) {
	if was == now {
		return
	}
	if was.demand != nil {
		list.Delete(was)
	}
	if now.demand != nil {
		list.Set(now)
	}
}

// count adds n demands that stand so to the lane's totals.
func (l *lane) count(as *standing, n int64) {
	switch {
	case as.held != ReasonNone:
		c := &l.held[as.held]
		c.all += n
		if as.entries {
			c.entries += n
		}
	case as.open:
		c := &l.open[as.class]
		if as.slot {
			c.slot += n
		} else {
			c.slotless += n
		}
		if as.entries {
			c.entries += n
		}
	}
}

func (s *State) standingOf(d *demand) (now standing) {
	now.wants = d.locked > 0
	now.due, now.waiting = d.due, d.queued[0]+d.queued[1]+d.locked
	oldest, any := d.oldestDue()
	if any {
		now.oldest = oldest
	}
	if d.locked > 0 {
		now.held = LockBusy
	}
	for src := range sourceCount {
		now.wants = now.wants || d.has(src)
		at := d.row.seats[src].seat
		if at == unseated {
			continue
		}
		now.entries = now.entries || src == fromEntries
		if !at.ordered() {
			now.held = firstReason(now.held, at.reason())
			continue
		}
		now.open, now.class = true, at.class()
		now.slot = now.slot || src != fromRateWaiters
		now.depth += d.size(src)
		if since, ok := s.oldest(d, src); ok && (now.listed.demand == nil || since < now.listed.since) {
			now.listed = oldestDemand{since, d.tenant.num, d}
		}
	}
	if d.row.seats[fromReports].seat == seatEntitled {
		now.kept = min(d.tenant.share.preferred-d.tenant.activeUpTo(d.lane.rank), d.row.backlog)
	}
	if now.held == Paused {
		now.due += d.parkedDue
		if parked, ok := d.oldestParked(); ok && (!any || parked < oldest) {
			now.oldest = parked
		}
	}
	return now
}

// size returns how much the source wants.
func (d *demand) size(src source) int64 {
	switch src {
	case fromEntries:
		return d.due
	case fromReports:
		return d.row.backlog
	}
	return d.queued[src-fromWaiters]
}

// oldest returns since when the source wants what it wants first.
func (s *State) oldest(d *demand, src source) (since Wall, ok bool) {
	if src == fromEntries {
		return d.oldestDue()
	}
	if w := s.headWaiter(d, src); w != nil {
		return w.askedAt, true
	}
	return 0, false
}

// oldestDemand is a demand's place in lane.oldest.
type oldestDemand struct {
	since  Wall
	tenant uint64
	demand *demand
}

func oldestDemandLess(a, b oldestDemand) bool {
	if a.since != b.since {
		return a.since < b.since
	}
	return a.tenant < b.tenant
}

// noteWant keeps pool.wanting true.
func (s *State) noteWant(d *demand, wanted, wants bool) {
	if wants == wanted {
		return
	}
	t := d.tenant
	if wants {
		if t.wanting++; t.wanting == 1 {
			t.pool.wanting.Set(t.wish())
		}
	} else if t.wanting--; t.wanting == 0 {
		t.pool.wanting.Delete(t.wish())
	}
}
