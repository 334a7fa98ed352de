package admission

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
)

// Restore builds a state from an image's header and rows, in the order of
// Image.Rows. Rows that do not fit together are an error.
func Restore(h Header, rows iter.Seq2[Row, error]) (*State, error) {
	r := &restorer{
		State:   New(),
		tenants: map[uint64]*tenant{},
		retries: map[RetryPolicy]*RetryPolicy{}, cadences: map[CadencePolicy]*CadencePolicy{},
		poolOf: map[string]PoolRow{}, names: map[queueKey]*queue{},
	}
	r.index, r.t, r.w, r.leaseOffset, r.epoch = h.Index, h.T, h.W, h.LeaseOffset, h.Epoch
	r.grants, r.seq, r.revision, r.appliedAt = h.Grants, h.Seq, h.Revision, h.AppliedAt
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if err := r.add(row); err != nil {
			return nil, fmt.Errorf("restore %T: %w", row, err)
		}
	}
	if err := r.buildPools(); err != nil {
		return nil, err
	}
	if err := r.buildIndexes(); err != nil {
		return nil, err
	}
	r.pools.nums = h.Pools
	return r.State, nil
}

// restorer builds a state row by row.
type restorer struct {
	*State
	built   bool
	poolOf  map[string]PoolRow
	tenants map[uint64]*tenant
	seated  []*demand
	ready   []*queueRow
	ended   []*endedRow
	request []*requestRow
	dones   []*doneRow
	retries map[RetryPolicy]*RetryPolicy
	// cadences are shared like retries.
	cadences map[CadencePolicy]*CadencePolicy
	// names stand for the queues of entries that are in none.
	names map[queueKey]*queue
}

func (r *restorer) add(row Row) error {
	switch row := row.(type) {
	case PolicyRow:
		r.policy, r.draining = row.Policy, row.Draining
		return nil
	case RevisionRow:
		r.past = append(r.past, row)
		return nil
	case PoolRow:
		r.poolOf[row.Name] = row
		return nil
	}
	if err := r.buildPools(); err != nil {
		return err
	}
	switch row := row.(type) {
	case PutRow:
		return r.addPut(row)
	case TenantRow:
		return r.addTenant(row)
	case DemandRow:
		return r.addDemand(row)
	case PausedGroupRow:
		return r.addPausedGroup(row)
	case QueueRow:
		return r.addQueue(row)
	case EntryRow:
		return r.addEntry(row)
	case PermitRow:
		return r.addPermit(row)
	case PartRow:
		return r.addPart(row)
	case WaiterRow:
		return r.addWaiter(row)
	case EndedRow:
		return r.addEnded(row)
	case RequestRow:
		return r.addRequest(row)
	case DoneRow:
		return r.addDone(row)
	}
	return fmt.Errorf("unknown row")
}

// buildPools makes the pools once the policy and every PoolRow are known.
func (r *restorer) buildPools() error {
	if r.built {
		return nil
	}
	r.built = true
	if bad := r.policy.Validate(); len(bad) > 0 {
		return fmt.Errorf("policy: %s: %s", bad[0].Field, bad[0].Message)
	}
	for _, name := range r.poolNames() {
		row, ok := r.poolOf[name]
		if !ok {
			return fmt.Errorf("no row for pool %q", name)
		}
		p := newPool(name, row.Num)
		r.addPool(p)
		r.configurePool(p)
		if err := p.restore(r.present(p), row); err != nil {
			return fmt.Errorf("pool %q: %w", name, err)
		}
	}
	return nil
}

// restore fills a pool that was configured with what it had.
func (p *pool) restore(cfg *PoolPolicy, row PoolRow) error {
	if len(row.Lanes) != len(p.lanes) || len(row.Buckets) != len(p.buckets) || len(row.Fair) != len(p.fairUse) {
		return fmt.Errorf("lanes or buckets are not those of the policy")
	}
	p.bucketIDs, p.skipped, p.swept, p.expired = row.BucketIDs, row.Skipped, row.Swept, row.Expired
	for i, lr := range row.Lanes {
		l := p.lanes[i]
		l.paused, l.yielding = lr.Paused, lr.Yielding
		for k := range l.classes {
			l.classes[k].floor, l.classes[k].top, l.classes[k].shift = lr.Floors[k], lr.Tops[k], lr.Shifts[k]
		}
	}
	for i, br := range row.Buckets {
		p.buckets[i].bucketState = br.state()
		p.buckets[i].charging = br.Charge.charging()
	}
	for i, charge := range row.Fair {
		p.fairUse[i].charging = charge.charging()
	}
	p.newTenants = row.NewTenants.state()
	p.configureShares(cfg) // overrides carry the charging
	return nil
}

func (r *restorer) pool(name string) (*pool, error) {
	if p := r.pools.byName(name); p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("unknown pool %q", name)
}

func (r *restorer) addPut(row PutRow) error {
	p, err := r.pool(row.Pool)
	if err == nil {
		r.adoptPut(&putRow{p, row.Tenant})
	}
	return err
}

func (r *restorer) addTenant(row TenantRow) error {
	p, err := r.pool(row.Pool)
	if err != nil {
		return err
	}
	if len(row.Buckets) != len(p.fairUse) {
		return fmt.Errorf("tenant %q: %d buckets, the policy has %d", row.ID, len(row.Buckets), len(p.fairUse))
	}
	t := p.tenant(row.ID)
	own := &tenantRow{tenant: t, paused: row.Paused, idleAt: row.IdleAt, spare: row.Spare}
	for _, b := range row.Buckets {
		own.buckets = append(own.buckets, b.state())
	}
	r.adopt(t, own, row.Num)
	t.indexIdle()
	r.tenants[row.Num] = t
	return nil
}

func (r *restorer) demand(tenant uint64, lane string) (*demand, error) {
	t := r.tenants[tenant]
	if t == nil {
		return nil, fmt.Errorf("unknown tenant %d", tenant)
	}
	l := t.pool.lane(lane)
	if l == nil {
		return nil, fmt.Errorf("unknown lane %q", lane)
	}
	return t.demand(l), nil
}

// known is demand for rows that come after the demands.
func (r *restorer) known(tenant uint64, lane string) (*demand, error) {
	d, err := r.demand(tenant, lane)
	if err == nil && d.row == nil {
		err = fmt.Errorf("tenant %d has no demand in lane %q", tenant, lane)
	}
	return d, err
}

func (r *restorer) addDemand(row DemandRow) error {
	d, err := r.demand(row.Tenant, row.Lane)
	if err != nil {
		return err
	}
	own := &demandRow{
		demand: d, tags: row.Tags, rems: row.Rems, weight: max(row.Weight, 1), backlog: row.Backlog, reported: row.Reported,
		lingers: row.Lingers,
	}
	for src, at := range row.Seats {
		own.seats[src] = seating{seat(at.Seat), at.Key, at.Seq, at.WakeAt}
		if seat(at.Seat).reason() >= reasonCount {
			return fmt.Errorf("unknown seat %d", at.Seat)
		}
	}
	r.adoptDemand(d, own)
	if own.reported != 0 {
		d.tenant.pool.reports.Set(reportEnd{own.reported, d})
		d.tenant.reports++
	}
	if own.lingers != 0 {
		d.tenant.pool.lingering.Set(lingerEnd{own.lingers, d})
	}
	r.seated = append(r.seated, d)
	return nil
}

func (r *restorer) addPausedGroup(row PausedGroupRow) error {
	t := r.tenants[row.Tenant]
	if t == nil || row.Group == "" {
		return fmt.Errorf("group %q of tenant %d, which is unknown or has no such", row.Group, row.Tenant)
	}
	r.adoptPausedGroup(pausedGroup{t, row.Group})
	return nil
}

func (r *restorer) addQueue(row QueueRow) error {
	d, err := r.known(row.Tenant, row.Lane)
	if err != nil {
		return err
	}
	q := r.queueOf(queueKey{d, row.Route, row.Group})
	q.row = &queueRow{queue: q, turn: row.Turn, ripe: place{row.RipeFirst, row.RipeSeq}}
	r.dueQueues.Set(q.row.item())
	r.ready = append(r.ready, q.row)
	return nil
}

func (r *restorer) addEntry(row EntryRow) error {
	d, err := r.known(row.Tenant, row.Lane)
	if err != nil {
		return err
	}
	e := &entryRow{
		state: entryState(row.State), delayed: row.Delayed, relative: row.Relative, unstarted: row.Unstarted,
		attempts: row.Attempts, maxAttempts: row.Retry.MaxAttempts,
		givenAttempts: row.GivenAttempts, given: row.Given,
		key: row.Key, category: row.Category,
		due: row.Due, first: row.First, seq: row.Seq,
		claim: permitKey{row.ClaimIndex, row.ClaimPosition},
	}
	e.letter, e.recur = row.Letter, r.recurrence(row)
	if len(row.History) > 0 {
		e.past = &past{row.History, row.DiedAt, row.BuriedAt, row.Redriven, row.CameDue}
	} else if e.state == entryDead {
		return fmt.Errorf("entry %q is dead without a failed attempt", row.Key)
	}
	e.retry = r.retry(row.Retry)
	key := queueKey{d, row.Route, row.Group}
	if e.state != entryQueued {
		e.queue = r.named(key)
		r.insertEntry(e)
		return nil
	}
	e.queue = r.queueOf(key)
	r.insertEntry(e)
	r.link(e)
	return nil
}

// named returns one shared queue, which is not there, for all entries that only
// name it.
func (r *restorer) named(key queueKey) *queue {
	if r.names[key] == nil {
		r.names[key] = &queue{route: &route{demand: key.demand, name: key.route}, group: key.group}
	}
	return r.names[key]
}

// recurrence returns how the entry comes back.
func (r *restorer) recurrence(row EntryRow) *recurrence {
	if row.Every == 0 && row.Cadence.Name == "" {
		return nil
	}
	rec := &recurrence{every: row.Every, behind: row.Behind, resume: row.Resume, misses: row.Misses}
	if row.Cadence.Name != "" {
		if r.cadences[row.Cadence] == nil {
			r.cadences[row.Cadence] = &row.Cadence
		}
		rec.cadence = r.cadences[row.Cadence]
	}
	return rec
}

// retry returns one shared policy for all entries with equal ones.
func (r *restorer) retry(p RetryPolicy) *RetryPolicy {
	p.MaxAttempts = 0 // each entry has its own
	if r.retries[p] == nil {
		r.retries[p] = &p
	}
	return r.retries[p]
}

func (r *restorer) addPermit(row PermitRow) error {
	d, err := r.known(row.Tenant, row.Lane)
	if err != nil {
		return err
	}
	p := &permitRow{
		cancelled: row.Cancelled, buckets: row.BucketIDs, token: row.Token, fence: row.Fence, demand: d,
		granted: row.Granted, expires: row.Expires, ttl: row.TTL, cost: row.Cost, entry: row.Entry, letter: row.Letter, worker: row.Worker, node: row.Node,
		lock: row.LockKey, job: row.DedupeKey, uncounted: row.Uncounted, borrowed: row.Borrowed, batch: row.Batch,
		wanted: row.Wanted,
	}
	if p.entry != "" && !p.cancelled && r.claimed(holding{permit: p}) == nil {
		return fmt.Errorf("claims unknown entry %q", p.entry)
	}
	r.hold(p)
	return nil
}

func (r *restorer) addPart(row PartRow) error {
	part := &partRow{
		cancelled: row.Cancelled, token: row.Token, fence: row.Fence, entry: row.Entry, letter: row.Letter,
		permit: permitKey{row.Token.Index, row.Permit},
	}
	p := r.permit(part.permit)
	if p == nil || !p.batch {
		return fmt.Errorf("no batch at position %d", row.Permit)
	}
	if !part.cancelled && r.claimed(holding{p, part}) == nil {
		return fmt.Errorf("claims unknown entry %q", part.entry)
	}
	r.parts.Set(partItem{part.token.key(), part})
	return nil
}

func (r *restorer) addWaiter(row WaiterRow) error {
	d, err := r.known(row.Tenant, row.Lane)
	if err != nil {
		return err
	}
	w := &waiter{
		key: row.Key, seq: row.Seq, demand: d, cost: row.Cost, ttl: row.TTL, settle: row.Settle, slotless: row.RateOnly,
		requestID: row.RequestID, digest: row.Digest, worker: row.Worker, nonce: row.Nonce, askedAt: row.AskedAt,
		lock: r.lockFor(d.tenant, row.LockKey), job: r.jobFor(d.tenant, row.DedupeKey), jobKey: row.DedupeKey,
	}
	r.adoptWaiter(w, &waiterRow{waiter: w, until: row.Until, detached: row.DetachedUntil})
	return nil
}

func (r *restorer) addDone(row DoneRow) error {
	p, err := r.pool(row.Pool)
	r.dones = append(r.dones, &doneRow{pool: p, name: jobName{row.Tenant, row.Key}, at: row.At, seq: row.Seq})
	return err
}

func (r *restorer) addEnded(row EndedRow) error {
	p, err := r.pool(row.Pool)
	r.ended = append(r.ended, &endedRow{token: row.Token, pool: p, tenant: row.Tenant, at: row.At, seq: row.Seq})
	return err
}

func (r *restorer) addRequest(row RequestRow) error {
	p, err := r.pool(row.Pool)
	r.request = append(r.request, &requestRow{
		pool: p, tenant: row.Tenant, id: row.ID, digest: row.Digest, tokens: row.Tokens,
		fence: row.Fence, at: row.At, seq: row.Seq,
	})
	return err
}

// buildIndexes makes what follows from the rows.
func (r *restorer) buildIndexes() error {
	// Those that keep no turn last: their routes are in a ring then.
	slices.SortFunc(r.ready, func(a, b *queueRow) int { return cmp.Compare(a.turn-1, b.turn-1) })
	for _, row := range r.ready {
		first, any := row.firstIn(r.line)
		if !any {
			return fmt.Errorf("ready queue %q/%q has no entry in line", row.route.name, row.group)
		}
		row.headed = first.at
		r.offer(row.queue)
	}
	//unordered: each queue is placed by itself
	for _, q := range r.queuesByName.rows {
		r.place(q)
	}
	r.unsettled = nil
	for _, d := range r.seated {
		d.unsettled = false
		r.reseatAs(d)
	}
	slices.SortFunc(r.ended, func(a, b *endedRow) int { return cmp.Compare(a.seq, b.seq) })
	for _, e := range r.ended {
		r.adoptEnded(e)
	}
	slices.SortFunc(r.dones, func(a, b *doneRow) int { return cmp.Compare(a.seq, b.seq) })
	for _, d := range r.dones {
		r.adoptDone(d)
	}
	slices.SortFunc(r.request, func(a, b *requestRow) int { return cmp.Compare(a.seq, b.seq) })
	for _, q := range r.request {
		r.adoptRequest(q)
	}
	return nil
}

// reseatAs gives a demand the seats and places that its row says.
func (s *State) reseatAs(d *demand) {
	for src, own := range d.row.seats {
		if own.seat.ordered() && source(src) < orderedSources {
			s.enterOrder(d, source(src))
		}
		if own.wakeAt != 0 {
			d.tenant.pool.wakeups(source(src)).Set(wakeup{own.wakeAt, d, source(src)})
		}
	}
	s.stand(d)
}
