package admission

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"
)

// memoryWindow is how long request ids and released permits are remembered, in
// cluster time. Both are bounded in number too.
const memoryWindow = 10 * time.Minute

// forgetBatch bounds what one log entry forgets of each kind.
const forgetBatch = 2000

// endedRow is a released permit, remembered so that a late call learns of it.
type endedRow struct {
	token  Token
	pool   *pool
	tenant string
	at     Instant
	seq    uint64
}

// endedItem keys a released permit in State.ended.
type endedItem struct {
	permitKey
	row *endedRow
}

func endedLess(a, b endedItem) bool { return a.less(b.permitKey) }

// remember keeps what was just released.
func (s *State) remember(h holding) {
	s.seq++
	t := h.permit.demand.tenant
	pool := t.pool
	s.adoptEnded(&endedRow{token: h.token(), pool: pool, tenant: t.id, at: s.t, seq: s.seq})
	for int64(pool.ended.len()) > pool.limits.EndedPermits {
		s.forgetEnded(pool)
	}
}

func (s *State) adoptEnded(e *endedRow) {
	s.ended.Set(endedItem{e.token.key(), e})
	e.pool.ended.push(e)
}

func (s *State) forgetEnded(p *pool) {
	s.ended.Delete(endedItem{permitKey: p.ended.pop().token.key()})
}

// released returns the released permit that the token names, or nil.
func (s *State) released(t Token) *endedRow {
	found, _ := s.ended.Get(endedItem{permitKey: t.key()})
	if found.row == nil || found.row.token != t {
		return nil
	}
	return found.row
}

// requestRow is a request id together with what it was granted.
type requestRow struct {
	pool   *pool
	tenant string // empty for NextDue
	id     string
	digest uint64
	tokens []Token
	fence  int64 // of an Acquire
	at     Instant
	seq    uint64
}

// requestItem keys a request in State.requests.
type requestItem struct {
	pool   uint32
	tenant string
	id     string
	row    *requestRow
}

func requestLess(a, b requestItem) bool {
	if a.pool != b.pool {
		return a.pool < b.pool
	}
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	return a.id < b.id
}

func (r *requestRow) item() requestItem { return requestItem{r.pool.num, r.tenant, r.id, r} }

// request returns what was granted to the id within the window before now, or
// nil. Another request under the same id is an error.
func (s *State) request(p *pool, tenant, id string, digest uint64, now Instant) (*requestRow, *Error) {
	if id == "" {
		return nil, nil
	}
	found, ok := s.requests.Get(requestItem{pool: p.num, tenant: tenant, id: id})
	if !ok || now.Sub(found.row.at) >= memoryWindow {
		return nil, nil
	}
	if found.row.digest != digest {
		return nil, requestMismatch()
	}
	return found.row, nil
}

// noteRequest remembers what was granted to an id.
func (s *State) noteRequest(r *requestRow) {
	s.seq++
	r.at, r.seq = s.t, s.seq
	s.adoptRequest(r)
}

func (s *State) adoptRequest(r *requestRow) {
	s.requests.Set(r.item())
	r.pool.requests.push(r)
}

// requestsFreeAt returns when the pool can remember one more id for the lane: when
// the window has passed enough of them.
func (p *pool) requestsFreeAt(l *lane) Instant {
	over := p.requests.len() - int(l.partOf(p.limits.RequestIDs))
	if over < 0 {
		return 0
	}
	return p.requests.at(over).at.Add(memoryWindow)
}

// forgetOld drops what the window has passed.
func (s *State) forgetOld(p *pool) {
	past := s.t.Add(-memoryWindow)
	for n := 0; n < forgetBatch && p.ended.len() > 0 && p.ended.front().at <= past; n++ {
		s.forgetEnded(p)
	}
	for n := 0; n < forgetBatch && p.requests.len() > 0 && p.requests.front().at <= past; n++ {
		r := p.requests.pop()
		if found, ok := s.requests.Get(r.item()); ok && found.row == r {
			s.requests.Delete(r.item())
		}
	}
}

// digest names what is asked, so that one id can't stand for two requests. A
// request without an id has none.
func (a *Acquire) digest() uint64 {
	if a.RequestID == "" {
		return 0
	}
	return digestOf(
		a.Pool, a.Category, strconv.FormatInt(a.Cost, 10), a.TTL.String(), a.WorkerID, a.LockKey, a.DedupeKey,
		strconv.FormatBool(a.RateOnly), strconv.FormatBool(a.Settle),
	)
}

func (n *NextDue) digest() uint64 {
	fields := []string{
		strconv.Itoa(n.MaxItems), n.TTL.String(), n.WorkerID, n.Tenant,
		n.Node.ID, strconv.FormatInt(n.Node.Owned, 10), strconv.FormatInt(n.Node.Total, 10),
		strconv.FormatBool(n.Batch), strconv.Itoa(len(n.LaneLimits)),
	}
	for _, lane := range sortedKeys(n.LaneLimits) {
		fields = append(fields, lane, strconv.FormatInt(n.LaneLimits[lane], 10))
	}
	return digestOf(append(fields, n.Lanes...)...)
}

func digestOf(fields ...string) uint64 {
	text := make([]byte, 0, 256) // room for what is usual
	for _, f := range fields {
		text = strconv.AppendInt(text, int64(len(f)), 10)
		text = append(text, ':')
		text = append(text, f...)
	}
	h := fnv.New64a()
	h.Write(text)
	return h.Sum64()
}

// fifo is a queue.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) len() int   { return len(q.items) - q.head }
func (q *fifo[T]) front() T   { return q.items[q.head] }
func (q *fifo[T]) at(i int) T { return q.items[q.head+i] }
func (q *fifo[T]) push(v T)   { q.items = append(q.items, v) }
func (q *fifo[T]) pop() T {
	var zero T
	v := q.items[q.head]
	q.items[q.head] = zero
	if q.head++; q.head <= len(q.items)/2 {
		return v
	}
	left := q.items[q.head:]
	if q.head = 0; cap(q.items) > 8*(len(left)+1) { // give back what it needs no more
		q.items = slices.Clone(left)
		return v
	}
	n := copy(q.items, left)
	clear(q.items[n:])
	q.items = q.items[:n]
	return v
}
