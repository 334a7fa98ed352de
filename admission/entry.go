package admission

import (
	"hash/fnv"
	"time"
)

// entryState is where an entry is; in exactly one of these.
type entryState uint8

const (
	entryQueued entryState = iota + 1
	entryClaimed
	entryDead
)

// entryRow is an entry of the due-work index, keyed by tenant and key. While it
// is queued it also stands in line or delayed.
type entryRow struct {
	version  uint32
	state    entryState
	delayed  bool
	relative bool
	// unstarted counts how often it was given back unstarted.
	unstarted uint8
	// letter tells an occurrence that died from its recurring entry; 0 for every
	// other entry.
	letter uint64
	// attempts counts those begun.
	attempts    int32
	maxAttempts int32
	// givenAttempts and given are max_attempts and the due time or delay as
	// given, by which a repeated Schedule is known.
	givenAttempts int32
	given         int64
	// queue is the one it stands in, or stood in when it was claimed.
	queue *queue
	retry *RetryPolicy
	// recur is how it comes back, nil if it does not.
	recur    *recurrence
	key      string
	category string
	// due is when it may be claimed next. first and seq are its place in line:
	// when it first came due, then the order of arrival. Of a dead one seq is its
	// place among the dead.
	due, first Wall
	seq        uint64
	claim      permitKey
	// past is what failed attempts left, nil while none has failed.
	past *past
}

// entryItem keys an entry in State.entries.
type entryItem struct {
	tenant uint64
	key    string
	letter uint64
	row    *entryRow
}

func entryLess(a, b entryItem) bool {
	if a.tenant != b.tenant {
		return a.tenant < b.tenant
	}
	if a.key != b.key {
		return a.key < b.key
	}
	return a.letter < b.letter
}

func (e *entryRow) item() entryItem { return entryItem{e.demand().tenant.num, e.key, e.letter, e} }

func (e *entryRow) place() place    { return place{e.first, e.seq} }
func (e *entryRow) demand() *demand { return e.queue.route.demand }

// entry returns the tenant's entry of that key, or nil.
func (s *State) entry(t *tenant, key string) *entryRow { return s.occurrence(t, key, 0) }

// occurrence returns the entry, or with a letter one that died of its
// occurrences, or nil.
func (s *State) occurrence(t *tenant, key string, letter uint64) *entryRow {
	if !t.known() {
		return nil
	}
	found, _ := s.entries.Get(entryItem{tenant: t.num, key: key, letter: letter})
	return found.row
}

// writeEntry returns the entry for writing. While it is queued its keys must not
// change.
func (s *State) writeEntry(e *entryRow) *entryRow {
	if e.version == s.version {
		return e
	}
	row := *e
	row.version = s.version
	s.entries.Set(row.item())
	return &row
}

// insertEntry adds a row that is not in the index.
func (s *State) insertEntry(e *entryRow) {
	s.entries.Set(e.item())
	d := e.demand()
	p := d.tenant.pool
	p.entries++
	p.mostEntries.move(d.tenant.entries, d.tenant.entries+1)
	d.tenant.entries++
	d.lane.entries++
	p.categoryUse[e.category]++
	if e.state == entryDead {
		p.graves.Set(grave{e.seq, e})
	}
}

// removeEntry drops a row that is in no queue.
func (s *State) removeEntry(e *entryRow) {
	s.entries.Delete(e.item())
	d := e.demand()
	p := d.tenant.pool
	p.entries--
	p.mostEntries.move(d.tenant.entries, d.tenant.entries-1)
	d.tenant.entries--
	d.lane.entries--
	if p.categoryUse[e.category]--; p.categoryUse[e.category] == 0 {
		delete(p.categoryUse, e.category)
	}
	if e.state == entryDead {
		p.graves.Delete(grave{seq: e.seq})
	}
	s.noteIdle(d.tenant)
}

// finish ends a claim on an entry as its worker, or its absence, says. at is
// when the attempt ended.
func (s *State) finish(h holding, outcome Outcome, hit bool, at Wall) {
	e := s.claimed(h)
	if outcome == OutcomeDone && e.recur == nil {
		s.removeEntry(e)
		return
	}
	e = s.writeEntry(e)
	e.claim = permitKey{}
	if outcome == OutcomeNotStarted {
		if e.unstarted < freeReturns {
			e.unstarted++
			e.attempts--
			s.requeue(e, e.due)
			return
		}
		outcome = OutcomeFailed
	}
	switch {
	case outcome == OutcomeDone:
		s.recur(e, hit, at)
	case outcome == OutcomeThrottled:
		e.attempts--
		s.requeue(e, e.due)
	default:
		e.noteFailure(Attempt{Number: e.attempts, Outcome: outcome, EndedAt: at, WorkerID: h.permit.worker})
		s.retry(e, outcome, at)
	}
}

// retry queues an entry whose attempt failed at that time, or buries it.
func (s *State) retry(e *entryRow, outcome Outcome, at Wall) {
	if outcome == OutcomeDead || e.attempts >= e.maxAttempts {
		s.bury(e, at)
		return
	}
	s.requeue(e, at.Add(backoff(e.retry, e.key, e.attempts)))
}

// freeReturns is how often an entry may be given back unstarted.
const freeReturns = 3

func (s *State) requeue(e *entryRow, due Wall) {
	e.state, e.due = entryQueued, due
	s.enqueue(e)
}

// recur queues the next occurrence of a recurring entry whose claim ended at that
// time.
func (s *State) recur(e *entryRow, hit bool, at Wall) {
	next, due := e.recur.following(e.first, hit, at)
	e.recur = &next
	s.seq++
	e.seq = s.seq
	e.attempts, e.unstarted, e.past = 0, 0, nil
	e.first = due
	s.requeue(e, due)
}

// backoff is how long an entry waits after its n-th attempt failed: base·2^(n-1),
// at most max, half of it fixed and half by a hash ("equal jitter"), so that
// what failed together does not return together.
func backoff(r *RetryPolicy, key string, n int32) time.Duration {
	d := r.Max
	if shift := n - 1; shift < 40 && r.Base<<shift>>shift == r.Base {
		d = min(r.Base<<shift, r.Max)
	}
	h := fnv.New64a()
	h.Write([]byte(key))
	h.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)})
	spread := uint64(d - d/2)
	return d/2 + time.Duration(h.Sum64()%(spread+1))
}
