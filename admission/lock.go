package admission

import "github.com/tidwall/btree"

// A lock is a key of a tenant that only so many permits may hold. Of the waiters
// that need it the first so many as there is room for stand in their demands'
// queues; the others wait for the lock and hold up nothing else.
type lock struct {
	name   lockName
	active int64
	// waiters counts all that need it, listened for or not.
	waiters int64
	// open are those in their queues, held those that wait for the lock, by place
	// in line.
	open, held *btree.BTreeG[*waiter]
	permits    *btree.BTreeG[expiry] // that hold it, by expiry
}

type lockName struct {
	tenant *tenant
	key    string
}

func seqLess(a, b *waiter) bool { return a.seq < b.seq }

// lockFor returns the tenant's lock of that key, made on first use and dropped
// when nothing needs it, or nil where there is no key.
func (s *State) lockFor(t *tenant, key string) *lock {
	if key == "" {
		return nil
	}
	name := lockName{t, key}
	l := t.pool.locks.get(name)
	if l == nil {
		l = &lock{name: name, open: newTree(seqLess), held: newTree(seqLess), permits: newTree(expiryLess)}
		t.pool.locks.set(name, l)
	}
	return l
}

// relock lets in as many waiters as there is room for, first come first served.
func (s *State) relock(l *lock) {
	room := int(max(l.name.tenant.pool.lockMax-l.active, 0))
	for l.open.Len() > room {
		s.lockOut(l)
	}
	for l.held.Len() > 0 && l.open.Len() < room {
		s.letIn(l)
	}
	for {
		last, any := l.open.Max()
		first, waits := l.held.Min()
		if !any || !waits || last.seq < first.seq {
			return
		}
		s.lockOut(l)
		s.letIn(l)
	}
}

func (s *State) letIn(l *lock) {
	w, _ := l.held.PopMin()
	w.demand.locked--
	l.open.Set(w)
	s.queueUp(w)
}

func (s *State) lockOut(l *lock) {
	w, _ := l.open.PopMax()
	s.unqueue(w)
	w.demand.locked++
	l.held.Set(w)
}

// takeLock counts a permit that holds the key.
func (s *State) takeLock(t *tenant, key string) {
	if l := s.lockFor(t, key); l != nil {
		l.active++
		s.relock(l)
	}
}

// freeLock counts a permit that held the key out.
func (s *State) freeLock(t *tenant, key string) {
	if l := s.lockFor(t, key); l != nil {
		l.active--
		s.relock(l)
		s.dropLock(l)
	}
}

func (s *State) leaveLock(w *waiter) {
	if w.lock != nil {
		w.lock.waiters--
		s.dropLock(w.lock)
	}
}

func (s *State) dropLock(l *lock) {
	if l.active == 0 && l.waiters == 0 {
		l.name.tenant.pool.locks.drop(l.name)
	}
}

// lockBusy says whether somebody holds the tenant's key, or waits for it and came
// before the place in line.
func (t *tenant) lockBusy(key string, seq uint64) bool {
	if key == "" {
		return false
	}
	l := t.pool.locks.get(lockName{t, key})
	if l == nil {
		return false
	}
	ahead := int64(0)
	for _, waiting := range []*btree.BTreeG[*waiter]{l.open, l.held} {
		waiting.Scan(func(w *waiter) bool {
			if w.seq >= seq {
				return false
			}
			ahead++
			return l.active+ahead < t.pool.lockMax
		})
	}
	return l.active+ahead >= t.pool.lockMax
}

// lockHolders counts the live permits that hold the tenant's key.
func (t *tenant) lockHolders(key string) int64 {
	if l := t.pool.locks.get(lockName{t, key}); l != nil {
		return l.active
	}
	return 0
}
