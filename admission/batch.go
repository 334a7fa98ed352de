package admission

// A batch is one permit for several entries of one tenant: one slot, one call of
// the provider. Each entry has its part of it, with a token and an outcome of its
// own. The parts stand in State.parts, those of one permit side by side; the slot
// is free when the last is gone.

// partRow is one entry's part of a batch's permit.
type partRow struct {
	version   uint32
	cancelled bool
	token     Token
	fence     int64
	permit    permitKey
	// entry is the key of the claimed entry, and letter which of its occurrences.
	entry  string
	letter uint64
}

// partItem keys a part in State.parts.
type partItem struct {
	permitKey
	row *partRow
}

func partLess(a, b partItem) bool { return a.less(b.permitKey) }

// part returns the live part, or nil.
func (s *State) part(k permitKey) *partRow {
	found, _ := s.parts.Get(partItem{permitKey: k})
	return found.row
}

// firstPart returns the first part of a batch's permit, or nil if none is left.
func (s *State) firstPart(p *permitRow) (first *partRow) {
	key := p.token.key()
	s.parts.Ascend(partItem{permitKey: key}, func(i partItem) bool {
		if i.row.permit == key {
			first = i.row
		}
		return false
	})
	return first
}

// holding is what a token names: a permit, or a part of a batch's.
type holding struct {
	permit *permitRow // nil if it names nothing that lives
	part   *partRow   // nil if it names the whole
}

// holder returns what the token names. Nobody is given the token of a batch's
// permit: it names nothing.
func (s *State) holder(t Token) holding {
	if p := s.permit(t.key()); p != nil && p.token == t && !p.batch {
		return holding{permit: p}
	}
	if part := s.part(t.key()); part != nil && part.token == t {
		return holding{s.permit(part.permit), part}
	}
	return holding{}
}

func (h holding) token() Token {
	if h.part != nil {
		return h.part.token
	}
	return h.permit.token
}

func (h holding) entry() string {
	if h.part != nil {
		return h.part.entry
	}
	return h.permit.entry
}

func (h holding) letter() uint64 {
	if h.part != nil {
		return h.part.letter
	}
	return h.permit.letter
}

// claimed returns the entry that is claimed by what is held and not cancelled.
func (s *State) claimed(h holding) *entryRow {
	return s.occurrence(h.permit.demand.tenant, h.entry(), h.letter())
}

func (h holding) cancelled() bool {
	if h.part != nil {
		return h.part.cancelled
	}
	return h.permit.cancelled
}

// cancel marks a claim whose entry is gone. It keeps its slot.
func (s *State) cancel(claim permitKey) {
	if p := s.permit(claim); p != nil {
		s.writePermit(p).cancelled = true
		return
	}
	if part := s.part(claim); part != nil {
		row := *part
		row.version, row.cancelled = s.version, true
		s.parts.Set(partItem{claim, &row})
	}
}

// batches says whether the poll is given batches of the demand.
func (q *poll) batches(d *demand) bool { return q.op.Batch && d.lane.batch.Size > 0 }

// roomIn returns how many of the demand's entries may go into one permit of the
// poll: no more than there are tokens for.
func (d *dispatch) roomIn(q *poll, dm *demand) int64 {
	if !q.batches(dm) {
		return 1
	}
	n := min(dm.lane.batch.Size, int64(q.op.MaxItems-len(q.result.Claims)))
	t := dm.tenant
	for i := range t.pool.buckets {
		b := &t.pool.buckets[i]
		n = min(n, b.settled(b.bucketSpec, d.t).left(b.bucketSpec, dm.lane.leaveTokens[i]))
	}
	for i, spec := range t.share.buckets {
		n = min(n, t.bucket(i, d.t).left(spec, 0))
	}
	return n
}

// left returns how many entries the settled bucket has tokens for, above leave.
func (b bucketState) left(spec *bucketSpec, leave int64) int64 {
	if spec.perPermit {
		return MaxItems
	}
	return spec.capacity - b.used - leave
}

// claimBatch grants one permit for all the entries to the poll.
func (d *dispatch) claimBatch(q *poll, dm *demand, entries []*entryRow) {
	p := d.grant(dm, order{cost: int64(len(entries)), ttl: q.op.TTL, worker: q.op.WorkerID, node: q.op.Node.ID})
	p.batch, p.cost = true, 1 // what each part cost
	q.count(dm)
	q.lastBatch++
	for _, e := range entries {
		d.grants++
		d.positions++
		part := &partRow{
			version: d.version,
			token:   Token{Epoch: d.epoch, Index: d.index, Position: d.positions, Nonce: claimNonce(q.op.Nonce, len(q.tokens))},
			fence:   int64(d.epoch)<<fenceBits | d.grants,
			permit:  p.token.key(), entry: e.key, letter: e.letter,
		}
		d.parts.Set(partItem{part.token.key(), part})
		e.claim = part.token.key()
		c := d.claimOf(holding{p, part}, e)
		c.Batch = q.lastBatch
		q.take(c)
	}
}

// letGo ends what was held, with its job done or not. The permit ends with its
// last part.
func (s *State) letGo(h holding, done bool) {
	if h.part != nil {
		s.parts.Delete(partItem{permitKey: h.part.token.key()})
		if s.firstPart(h.permit) != nil {
			s.unsettleTenant(h.permit.demand.tenant) // what was told may have moved its buckets
			return
		}
	}
	s.drop(h.permit, done)
}

// end ends a permit by itself, with all its parts, and returns how many entries
// it held.
func (s *State) end(p *permitRow) int {
	ended := s.w.Add(-s.lease().Sub(p.expires))
	p.demand.tenant.pool.expired++
	s.lapse(p)
	n := 0
	for h := (holding{permit: p}); ; n++ {
		if p.batch {
			h.part = s.firstPart(p)
		}
		if !h.cancelled() && h.entry() != "" {
			s.finish(h, OutcomeExpired, false, ended)
		}
		s.letGo(h, false)
		if s.permit(p.token.key()) == nil {
			return n + 1
		}
	}
}
