package admission

import (
	"cmp"
	"slices"
)

// demand is what one tenant wants in one lane. Its identity is stable while the
// tenant is known; what is replicated of it stands in row.
type demand struct {
	tenant *tenant
	lane   *lane
	row    *demandRow // nil while only looked at, see tenant.demand

	num    uint64 // only of this process, given when it is registered
	active int64
	ring   ring // routes with due entries that may be served, in turn
	heads  byHead[*route]
	due    int64 // entries counted as due, but those of paused groups
	// parked is a heap of the ready queues of paused groups, by their heads; parkedDue
	// counts their entries that are counted as due.
	parked    byHead[*queue]
	parkedDue int64
	// queued counts the waiters in line, by whether they take tokens only; locked
	// those that wait for a lock first.
	queued [2]int64
	locked int64
	// unsettled says whether it is marked to be seated anew.
	unsettled bool
	// aside says that it is set aside for the rest of a dispatch.
	aside bool
	// asking is its line in a dispatch, if it has one.
	asking *askLine
}

// oldestDue returns when the oldest of the demand's due entries first came due, those
// of paused groups aside.
func (d *demand) oldestDue() (due Wall, ok bool) {
	if len(d.heads) == 0 {
		return 0, false
	}
	return d.heads[0].headed.first, true
}

// oldestParked returns the same of the entries of paused groups.
func (d *demand) oldestParked() (due Wall, ok bool) {
	if len(d.parked) == 0 {
		return 0, false
	}
	return d.parked[0].headed.first, true
}

// headPlace returns the place in line of what the source wants first.
func (s *State) headPlace(d *demand, src source) place {
	if src == fromEntries {
		return d.ring.front.headed
	}
	return s.headWaiter(d, src).place()
}

// demandRow is what is replicated of a demand.
type demandRow struct {
	version uint32
	*demand
	tags   [classCount]int64
	rems   [classCount]int64
	weight int64 // by which rems were left
	seats  [sourceCount]seating
	// backlog was reported, and holds until reported.
	backlog  int64
	reported Instant
	// standing follows from all else; it is here for pictures to show.
	standing standing
	// lingers is until when its entries wait for a whole batch, else 0.
	lingers Wall
}

// seating is where one source of a demand stands.
type seating struct {
	seat seat
	// key and seq are its place in the order: the tag with which it took its seat,
	// for entries less the shift of then.
	key int64
	seq uint64
	// wakeAt is its key among the wakeups while it waits for tokens, else 0.
	wakeAt Instant
}

// source is where a demand comes from. Each has a seat of its own: what holds
// the one need not hold the other. All share the demand's tags.
type source uint8

const (
	fromEntries source = iota
	fromWaiters
	fromRateWaiters // they take tokens only
	fromReports     // never served, only counted
	sourceCount
	orderedSources = fromReports // those before it stand in the order
)

// demandItem keys a demand in State.demands.
type demandItem struct {
	tenant uint64
	row    *demandRow
}

func (d *demandRow) item() demandItem { return demandItem{d.tenant.num, d} }

func demandItemLess(a, b demandItem) bool {
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	return a.row.lane.name < b.row.lane.name
}

func demandLess(a, b *demand) bool {
	if a.tenant.num != b.tenant.num {
		return a.tenant.num < b.tenant.num
	}
	return a.lane.name < b.lane.name
}

// demand returns the tenant's demand in the lane. One that is not known is made
// up for looking at and leaves no trace unless it is registered.
func (t *tenant) demand(l *lane) *demand {
	for _, d := range t.demands {
		if d.lane == l {
			return d
		}
	}
	return &demand{tenant: t, lane: l}
}

// registerDemand makes the demand, and its tenant, known.
func (s *State) registerDemand(d *demand) {
	if d.row != nil {
		return
	}
	s.register(d.tenant)
	s.adoptDemand(d, &demandRow{version: s.version, demand: d, weight: d.tenant.share.weight})
}

// adoptDemand enters a demand with its row into the state.
func (s *State) adoptDemand(d *demand, row *demandRow) {
	s.locals++
	d.num, d.row = s.locals, row
	t := d.tenant // places in line must not depend on which lane was known first
	i, _ := slices.BinarySearchFunc(t.demands, d.lane.name, func(other *demand, name string) int {
		return cmp.Compare(other.lane.name, name)
	})
	t.demands = slices.Insert(t.demands, i, d)
	s.demands.Set(row.item())
}

// writeDemand returns the demand's row for writing.
func (s *State) writeDemand(d *demand) *demandRow {
	if d.row.version != s.version {
		row := *d.row
		row.version = s.version
		d.row = &row
		s.demands.Set(row.item())
	}
	return d.row
}

// kind returns the class in which the demand would be served.
func (d *demand) kind() classKind {
	t := d.tenant
	if t.share.preferred > t.activeUpTo(d.lane.rank) {
		return entitled
	}
	return borrowing
}

// seat is where a source of demand stands: in the order of a class, or held for
// a reason of its tenant's own.
type seat uint8

const (
	unseated seat = iota
	seatEntitled
	seatBorrowing
	seatHeld // plus the reason
)

func seatOf(k classKind) seat   { return seatEntitled + seat(k) }
func heldSeat(r Reason) seat    { return seatHeld + seat(r) }
func (s seat) ordered() bool    { return s == seatEntitled || s == seatBorrowing }
func (s seat) class() classKind { return classKind(s - seatEntitled) }
func (s seat) reason() Reason {
	if s < seatHeld {
		return ReasonNone
	}
	return Reason(s - seatHeld)
}

// serves says whether entries of the demand may be served that need not wait for
// more of them.
func (d *demand) serves() bool { return !d.ring.empty() && !d.lingers() }

// has says whether the source wants anything.
func (d *demand) has(src source) bool {
	switch src {
	case fromEntries: // of paused groups, too
		return len(d.parked) > 0 || d.serves()
	case fromReports:
		return d.row.backlog > 0
	}
	return d.queued[src-fromWaiters] > 0
}

// classify says where a source belongs, and for one that waits for tokens, when
// they come.
func (s *State) classify(d *demand, src source) (seat, Instant) {
	if !d.has(src) {
		return unseated, never
	}
	t := d.tenant
	cost := int64(1)
	if w := s.headWaiter(d, src); w != nil {
		cost = w.cost
	}
	why, at := t.rateReason(cost, s.t)
	switch {
	case t.paused() || d.lane.paused, src == fromEntries && !d.serves(): // all of paused groups
		return heldSeat(Paused), never
	case why == Blocked || why == Exhausted:
		return heldSeat(why), never
	case src != fromRateWaiters && d.capReason() != ReasonNone:
		return heldSeat(d.capReason()), never
	case why != ReasonNone:
		return heldSeat(why), at
	}
	if before := s.shortBefore(d, src); before != nil {
		why, at = t.rateReason(before.cost, s.t)
		return heldSeat(why), at
	}
	return seatOf(d.kind()), never
}

// rateReason returns the first reason for which the tenant's own buckets refuse
// a cost, and the instant from which none does for that reason.
func (t *tenant) rateReason(cost int64, now Instant) (Reason, Instant) {
	why, at := ReasonNone, now
	for i, spec := range t.share.buckets {
		b := t.bucket(i, now)
		r := b.refusal(spec, spec.charge(cost), 0, TenantRate, now)
		if r == ReasonNone {
			continue
		}
		if why == ReasonNone || r < why {
			why, at = r, now
		}
		if r == why {
			at = max(at, b.readyAt(spec, spec.charge(cost), 0))
		}
	}
	return why, at
}

// refusal returns why the settled bucket would not give n tokens above leave;
// rate is the word for too few of them.
func (b *bucketState) refusal(spec *bucketSpec, n, leave int64, rate Reason, now Instant) Reason {
	short := spec.capacity-b.used-leave < n
	switch {
	case spec.blocked:
		return Blocked
	case short && spec.oneShot:
		return Exhausted
	case short && rate < ProviderPaused:
		return rate
	case b.paused(now):
		return ProviderPaused
	case short:
		return rate
	}
	return ReasonNone
}
