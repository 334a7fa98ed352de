package admission

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/tidwall/btree"
)

// An Explanation says why something waits, and what it waits for. It comes from the
// same examination as every refusal, only that here what lets it pass is told as
// well.
type Explanation struct {
	At       Instant
	Index    uint64
	Revision int64
	Pool     string
	Tenant   string
	Lane     string
	// Shed is why it would not be admitted now, nil if it would.
	Shed *Shed
	// Limits are all that were consulted.
	Limits []Consulted
	Share  ShareState
	Line   LineState
	// Reserved is who reserves the pool's tokens, or nil.
	Reserved *Reservation
	// Entry is set where an entry was asked about, Permit where a permit was or where
	// the entry is claimed under one.
	Entry  *EntryState
	Permit *PermitInfo
}

// Consulted is a limit that was consulted. Reason is none where it lets the request
// pass.
type Consulted struct {
	Limit
	Reason Reason
}

// ShareState is what its tenant may have, and has.
type ShareState struct {
	Entitled  bool
	Weight    int64
	Preferred int64
	// Counted are the live permits that count against Preferred: those of this lane
	// and the lanes above. Active are all of the tenant's.
	Counted int64
	Active  int64
	// MaxActive 0 means no cap.
	MaxActive int64
	Paused    bool
}

// LineState is what stands before it in its lane.
type LineState struct {
	// Tag is where it stands in the order of its class, Floor the order's virtual time.
	Tag, Floor int64
	// Own are the tenant's own waiters that came before.
	Own int64
	// Waiting and Due count the others before it: tenants whose requests wait, and
	// tenants whose entries are due.
	Waiting, Due int64
	// First are the first few of them.
	First []Ahead
}

// Ahead is a tenant that goes before.
type Ahead struct {
	Tenant   string
	Entitled bool
	// Due are its entries, Waiting its requests in line.
	Due, Waiting int64
}

// Reservation is a request that lacks nothing but the pool's tokens.
type Reservation struct {
	Tenant, Lane string
	Cost         int64
	// TokensIn is the time until it has them, if nothing takes any, or Absent.
	TokensIn time.Duration
	// Before says that it goes before what was asked about.
	Before bool
}

// ExplainQuery names what to explain: a request, or else an entry or a permit.
type ExplainQuery struct {
	// Request is asked as a dry run. With the RequestID of one that waits, that one
	// is explained where it stands.
	Request Acquire
	// Key is an entry's of the request's tenant, or empty.
	Key string
	// Permit is a permit's token, or zero.
	Permit Token
}

// Explain says why something waits. It changes nothing.
func (s *State) Explain(at Instant, w Wall, q *ExplainQuery) (*Explanation, *Error) {
	at = max(at, s.t)
	e := &Explanation{At: at, Index: s.index, Revision: s.revision}
	switch {
	case q.Permit != Token{}:
		return e, s.explainPermit(e, q.Permit)
	case q.Key != "":
		return e, s.explainEntry(e, w, q)
	}
	return e, s.explainRequest(e, &q.Request)
}

func (s *State) explainRequest(e *Explanation, op *Acquire) *Error {
	p := s.pools.byName(op.Pool)
	if p == nil {
		return poolNotFound(op.Pool)
	}
	if w := s.waitersByID.get(requestKey{p.num, op.Tenant, op.RequestID}); w != nil && op.RequestID != "" {
		s.explainNeed(e, w.demand, w.need(), w.source())
		return nil
	}
	lane, err := p.tenant(op.Tenant).laneFor(op.Category)
	if err != nil {
		return err
	}
	fresh := *op // whatever its id was granted before
	fresh.RequestID = ""
	op = &fresh
	a := &ask{op: op, demand: p.tenant(op.Tenant).demand(lane)}
	x := s.wholeExamination(e, a.demand, op.need(), sourceCount)
	x.consider(a)
	e.conclude(x)
	if d := s.Decide(e.At, op); d.Decision.Shed == nil && !p.shadow {
		e.Shed = nil // an entry of this moment would first make room
	}
	return nil
}

// explainNeed examines what a demand needs that stands where one of its sources
// does.
func (s *State) explainNeed(e *Explanation, d *demand, n need, src source) {
	x := s.wholeExamination(e, d, n, src)
	x.run()
	e.conclude(x)
}

// wholeExamination begins an examination that tells what passes, too, and
// describes the demand.
func (s *State) wholeExamination(e *Explanation, d *demand, n need, src source) *examination {
	x := s.newExamination(d, n, e.At)
	x.whole = true
	if holder, ok := s.reservation(x.pool, e.At); ok {
		before := d.passed(holder) && (src == sourceCount || holder.demand != d)
		if before {
			x.holder = &holder
		}
		cost := s.costOf(holder)
		e.Reserved = &Reservation{
			Tenant: holder.demand.tenant.id, Lane: holder.demand.lane.name, Cost: cost, Before: before,
			TokensIn: untilMillis(e.At, holder.demand.lane.tokensAt(cost, e.At)),
		}
	}
	e.describe(d)
	e.Line = s.lineOf(d, d.seqOf(src))
	if d.row != nil && src != fromEntries {
		e.Line.Own = s.ownAhead(d, n.seq)
	}
	return x
}

func (e *Explanation) conclude(x *examination) {
	e.Limits = x.consulted
	if x.reason != ReasonNone {
		e.Shed = x.shed()
	}
}

func (e *Explanation) describe(d *demand) {
	t := d.tenant
	e.Pool, e.Tenant, e.Lane = t.pool.name, t.id, d.lane.name
	e.Share = ShareState{
		Entitled: d.kind() == entitled, Weight: t.share.weight, Preferred: t.share.preferred,
		Counted: t.activeUpTo(d.lane.rank), Active: t.active, MaxActive: t.share.maxActive, Paused: t.paused(),
	}
}

// aheadShown bounds those named that stand ahead.
const aheadShown = 5

// seqOf returns where the source stands among equal tags: last if it stands
// nowhere.
func (d *demand) seqOf(src source) uint64 {
	if src < orderedSources && d.row != nil && d.row.seats[src].seat.ordered() {
		return d.row.seats[src].seq
	}
	return math.MaxUint64
}

// lineOf tells who stands before the demand in its lane, if it stands in that
// place among equal tags.
func (s *State) lineOf(d *demand, seq uint64) LineState {
	k := d.kind()
	at := LineState{Tag: d.tagIn(k), Floor: d.lane.classes[k].floor}
	for of := entitled; of <= k; of++ {
		c := &d.lane.classes[of]
		first := []position(nil)
		for src := range orderedSources {
			shift := int64(0)
			if src == fromEntries {
				shift = c.shift
			}
			end := position{tag: at.Tag - shift, seq: seq}
			before := int64(c.orders[src].Len())
			if of == k {
				before = rank(c.orders[src], end, positionLess)
			}
			first = append(first, firstOfOrder(c.orders[src], before, shift, d)...)
			if of == k && d.row != nil && d.row.seats[src].seat == seatOf(k) && positionLess(d.position(src), end) {
				before-- // its own
			}
			if src == fromEntries {
				at.Due += before
			} else {
				at.Waiting += before
			}
		}
		slices.SortFunc(first, func(a, b position) int {
			return cmp.Or(cmp.Compare(a.tag, b.tag), cmp.Compare(a.seq, b.seq))
		})
		at.name(first, of)
	}
	return at
}

// firstOfOrder returns the first of the n that stand before, the demand itself
// aside, with tags that are shifted.
func firstOfOrder(order *btree.BTreeG[position], n, shift int64, own *demand) (first []position) {
	order.Scan(func(p position) bool {
		if n--; n < 0 {
			return false
		}
		if p.demand != own {
			p.tag += shift
			first = append(first, p)
		}
		return len(first) < aheadShown
	})
	return first
}

// name adds the tenants at the positions to the first few.
func (l *LineState) name(first []position, k classKind) {
	for _, p := range first {
		if len(l.First) == aheadShown {
			return
		}
		d := p.demand
		l.First = append(l.First, Ahead{
			Tenant: d.tenant.id, Entitled: k == entitled, Due: d.due, Waiting: d.queued[0] + d.queued[1] + d.locked,
		})
	}
}

// ownAhead counts the tenant's own waiters in the lane's queues before a place in
// line.
func (s *State) ownAhead(d *demand, seq uint64) int64 {
	n := int64(0)
	for src := fromWaiters; src <= fromRateWaiters; src++ {
		n += rank(s.queues, queueSpot{demand: d.num, source: src, seq: seq}, queueSpotLess) -
			rank(s.queues, queueSpot{demand: d.num, source: src}, queueSpotLess)
	}
	return n
}

// rank counts the items of a tree that are less than one.
func rank[T any](tree *btree.BTreeG[T], item T, less func(a, b T) bool) int64 {
	return int64(sort.Search(tree.Len(), func(i int) bool {
		at, _ := tree.GetAt(i)
		return !less(at, item)
	}))
}
