package admission

import (
	"cmp"
	"container/heap"
)

// ask is an Acquire that is being decided: demand of this very entry.
type ask struct {
	op     *Acquire
	demand *demand
	result AcquireResult
	// arrival is its place in the entry.
	arrival int
	// next is the next ask of its line; line is the line that it leads, if any.
	next *ask
	line askLine
}

// askLine is the asks of one tenant in one lane, in the order of the entry. It
// stands among its lane's lines as the demand would stand in the order.
type askLine struct {
	demand      *demand
	first, last *ask
	// arrived is the last place given out before all that it asks for.
	arrived uint64
	// at is its index in the heap, place where it stands there: it may have risen since,
	// for where nobody polls, its tenant's entries take its tag with them.
	at    int
	place askPlace
}

// askPlace is a line's place among those of its lane. It only rises, but by a grant of
// its tenant.
type askPlace struct {
	class classKind
	tag   int64
	seq   uint64
}

// rise puts the line's place right, and says whether it was another.
func (line *askLine) rise() bool {
	was, k := line.place, line.demand.kind()
	line.place = askPlace{k, line.demand.tagIn(k), line.seq()}
	return line.place != was
}

// lineKey finds an askLine. It goes by name: a new tenant has no identity before
// its first grant.
type lineKey struct {
	tenant string
	lane   *lane
}

// askLines is a heap of a lane's lines in fair order.
type askLines []*askLine

// lineUp groups the asks of a pool, which come after that place, by lane and
// tenant into pool.lines.
func (p *pool) lineUp(asks []*ask, arrived uint64) {
	for len(p.lines) < len(p.lanes) {
		p.lines = append(p.lines, nil)
	}
	var found map[lineKey]*askLine
	if len(asks) > 1 {
		found = make(map[lineKey]*askLine, len(asks))
	}
	for i, a := range asks {
		a.arrival = i
		key := lineKey{a.demand.tenant.id, a.demand.lane}
		if line := found[key]; line != nil {
			line.last.next, line.last = a, a
			continue
		}
		a.line = askLine{demand: a.demand, first: a, last: a, arrived: arrived}
		if found != nil {
			found[key] = &a.line
		}
		a.demand.asking = &a.line
		p.lines[a.demand.lane.rank].Push(&a.line)
	}
}

// order makes the lines a heap. A tenant that was new when it asked may have
// become known through a higher lane meanwhile.
func (q *askLines) order() {
	for _, line := range *q {
		if d := line.demand; d.row == nil {
			line.demand = d.tenant.pool.tenant(d.tenant.id).demand(d.lane)
			line.demand.asking = line
		}
		line.rise()
	}
	if q.Len() > 1 {
		heap.Init(q)
	}
}

// first returns the line to be served next, if it is of that class.
func (q *askLines) first(k classKind) *askLine {
	for len(*q) > 0 && (*q)[0].rise() {
		heap.Fix(q, 0)
	}
	if len(*q) == 0 || (*q)[0].place.class != k {
		return nil
	}
	return (*q)[0]
}

// moved puts a line where its tag and class are after a grant of its tenant.
func (q *askLines) moved(line *askLine) {
	line.rise()
	heap.Fix(q, line.at)
}

// advance takes the first ask off the first line, after it was answered.
func (q *askLines) advance() {
	line := (*q)[0]
	if line.first = line.first.next; line.first != nil {
		q.moved(line)
		return
	}
	line.demand.asking = nil
	heap.Pop(q)
}

// before says whether the line goes before a demand of its class that waits in
// the order. On equal tags whoever waited before this entry comes first.
func (line *askLine) before(p position) bool {
	return line.place.tag < p.tag || line.place.tag == p.tag && p.seq > line.place.seq
}

// seq is the place after which the line comes on equal tags. It passes no waiter
// of its own demand.
func (line *askLine) seq() uint64 {
	last := line.arrived
	if line.demand.row == nil {
		return last
	}
	for _, own := range line.demand.row.seats[fromWaiters:orderedSources] {
		if own.seat == seatOf(line.demand.kind()) {
			last = max(last, own.seq)
		}
	}
	return last
}

func (q askLines) Len() int { return len(q) }

func (q askLines) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(
		cmp.Compare(a.place.class, b.place.class),
		cmp.Compare(a.place.tag, b.place.tag),
		cmp.Compare(a.place.seq, b.place.seq),
		cmp.Compare(a.first.arrival, b.first.arrival),
	) < 0
}

func (q askLines) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

func (q *askLines) Push(x any) {
	line := x.(*askLine)
	line.at = len(*q)
	*q = append(*q, line)
}

func (q *askLines) Pop() any {
	old := *q
	line := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return line
}
