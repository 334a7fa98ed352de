package admission

import (
	"cmp"
	"container/heap"
)

// ask is an Acquire that is being decided: demand of this very entry.
type ask struct {
	op     *Acquire
	demand *demand
	result *AcquireResult
}

// askLine is the asks of one tenant in one lane, in the order of the entry. It
// stands among its lane's lines as the demand would stand in the order.
type askLine struct {
	demand *demand
	asks   []*ask
	// arrival is the place of its first ask in the entry.
	arrival int
}

// lineKey finds an askLine. It goes by name: a new tenant has no identity before
// its first grant.
type lineKey struct {
	tenant string
	lane   *lane
}

// askLines is a heap of a lane's lines in fair order.
type askLines []*askLine

// lineUp groups a pool's asks by lane and tenant.
func lineUp(p *pool, asks []*ask) []askLines {
	lines := make([]askLines, len(p.lanes))
	found := make(map[lineKey]*askLine, len(asks))
	for i, a := range asks {
		l := a.demand.lane
		key := lineKey{a.demand.tenant.id, l}
		if line := found[key]; line != nil {
			line.asks = append(line.asks, a)
			continue
		}
		line := &askLine{demand: a.demand, asks: []*ask{a}, arrival: i}
		found[key] = line
		lines[l.rank] = append(lines[l.rank], line)
	}
	return lines
}

// first returns the line to be served next, if it is of that class.
func (q askLines) first(k classKind) *askLine {
	if len(q) == 0 || q[0].demand.kind() != k {
		return nil
	}
	return q[0]
}

// advance takes the first ask off the first line, after it was answered.
func (q *askLines) advance() {
	line := (*q)[0]
	if line.asks = line.asks[1:]; len(line.asks) == 0 {
		heap.Pop(q)
		return
	}
	heap.Fix(q, 0)
}

// before says whether the line goes before a demand of its class that waits in
// the order. On equal tags whoever waited before this entry comes first.
func (line *askLine) before(p position, arrived uint64) bool {
	tag := line.demand.tagIn(line.demand.kind())
	return tag < p.tag || tag == p.tag && p.seq > arrived
}

func (q askLines) Len() int { return len(q) }

func (q askLines) Less(i, j int) bool {
	a, b := q[i], q[j]
	ka, kb := a.demand.kind(), b.demand.kind()
	return cmp.Or(
		cmp.Compare(ka, kb),
		cmp.Compare(a.demand.tagIn(ka), b.demand.tagIn(kb)),
		cmp.Compare(a.arrival, b.arrival),
	) < 0
}

func (q askLines) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *askLines) Push(x any) { *q = append(*q, x.(*askLine)) }

func (q *askLines) Pop() any {
	old := *q
	line := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return line
}
