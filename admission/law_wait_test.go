package admission

import (
	"cmp"
	"slices"
	"time"
)

// wait is an Acquire in line, as its caller knows it.
type wait struct {
	op    *Acquire
	until Instant // on the lease clock
	// left says that its caller was gone at some time.
	left bool
}

// follow notes what the entry granted and who waits since.
func (h *history) follow(e Entry, results []Result) {
	if h.waits == nil {
		h.waits = map[WaiterKey]*wait{}
	}
	h.grants = nil
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *Acquire:
			h.followAcquire(op, results[i].(*AcquireResult))
		case *NextDue:
			batch := int32(0)
			for _, c := range results[i].(*NextDueResult).Claims {
				if !results[i].(*NextDueResult).Replayed {
					shared := c.Batch != 0 && c.Batch == batch
					h.grants = append(h.grants, given{Permit: c.Permit, op: op, cost: 1, key: c.Key, shared: shared})
				}
				batch = c.Batch
			}
		case *LeaseShare:
			if r := results[i].(*LeaseShareResult); r.Err == nil && r.Shed == nil {
				h.grants = append(h.grants, given{Permit: r.Permit, op: op, cost: r.Tokens})
			}
		case Detach:
			if w := h.waits[op.Waiter]; w != nil {
				w.left = true
			}
		case TermStart:
			for _, w := range h.waits {
				w.left = true
			}
		}
	}
	h.ends = map[WaiterKey]*wait{}
	for _, end := range h.Ended() {
		w := h.waits[end.Waiter]
		if w == nil {
			h.Fatalf("a wait ended that nobody knew of: %+v", end)
		}
		delete(h.waits, end.Waiter)
		h.ends[end.Waiter] = w
		if end.Result.Decision.Granted() {
			h.grants = append(h.grants, given{Permit: end.Result.Decision.Permit, op: w.op, cost: w.op.Cost})
		}
	}
	slices.SortFunc(h.grants, func(a, b given) int { return cmp.Compare(a.Fence, b.Fence) })
}

func (h *history) followAcquire(op *Acquire, r *AcquireResult) {
	d := r.Decision
	switch {
	case r.Err != nil || d.Replayed || d.Shed != nil:
	case d.Waiter != WaiterKey{}:
		until := h.lease().Add(op.MaxWait)
		if w := h.waits[d.Waiter]; w != nil {
			w.until = max(w.until, until)
		} else {
			h.waits[d.Waiter] = &wait{op: op, until: until}
		}
	default:
		h.grants = append(h.grants, given{Permit: d.Permit, op: op, cost: op.Cost, free: d.WouldShed != nil})
	}
}

// lasting says whether a grant made a permit that can be given back.
func (g *given) lasting() bool { return g.State != PermitSpent }

// takesSlot says whether a grant counts in caps.
func (g *given) takesSlot() bool {
	if g.turnless() {
		return false
	}
	a, ok := g.op.(*Acquire)
	return !ok || !a.RateOnly
}

// turnless says whether a grant took no turn: that of a pool that only watches, or a share.
func (g *given) turnless() bool {
	_, share := g.op.(*LeaseShare)
	return share || g.free
}

// waits is the law of waiting: each wait ends once; until then it is in line; and
// it ends without a permit only when its time is over, its caller left, or waiting
// can't help any more.
type waits struct{}

func (waits) see(h *history, _ Entry, _ []Result) {
	h.waiters.Scan(func(row *waiterRow) bool {
		want(h, "who waits was told so", h.waits[row.key] != nil, true)
		return true
	})
	want(h, "waiters", h.waiters.Len(), len(h.waits))
	for _, end := range h.Ended() {
		d, w := end.Result.Decision, h.ends[end.Waiter]
		want(h, "the end of a wait is no wait", d.Waiter, WaiterKey{})
		if d.Shed != nil && !w.left && h.lease() < w.until && waitingHelps(d.Shed) {
			h.Errorf("%+v waited until %d and was shed at %d: %+v", w.op, w.until, h.lease(), d.Shed)
		}
		if d.Shed != nil && !w.left && d.Shed.Reason == ReasonNone {
			h.Errorf("%+v waited in vain and is not told what for: %+v", w.op, d.Shed)
		}
	}
}

// waitingHelps says whether waiting may help against all that holds a request. A pause is
// told before what else holds it.
func waitingHelps(s *Shed) bool {
	return !s.Reason.final() &&
		(s.Reason != Paused || !slices.ContainsFunc(s.Blocking, func(l Limit) bool { return l.Name != "paused" }))
}

// exclusive is the law of locks and jobs: at every grant no lock is held by more
// permits than may, and no job is begun that runs or is done [I4].
type exclusive struct {
	jobs map[[3]string]Token
	done map[[3]string]Instant
	// retention is each pool's before this entry: a longer one brings no job back.
	retention map[string]time.Duration
}

func (k *exclusive) see(h *history, e Entry, results []Result) {
	if k.jobs == nil {
		k.jobs, k.done = map[[3]string]Token{}, map[[3]string]Instant{}
	}
	k.ends(h, e, results)
	locks := map[[3]string]int64{}
	h.permits.Scan(func(i permitItem) bool {
		t := i.row.demand.tenant
		locks[[3]string{t.pool.name, t.id, i.row.lock}]++
		return true
	})
	for _, g := range h.grants {
		a, ok := g.op.(*Acquire)
		if !ok || g.free || !g.lasting() {
			continue
		}
		p := h.poolPolicy(g.Pool)
		if n := locks[[3]string{g.Pool, g.Tenant, a.LockKey}]; a.LockKey != "" && n > max(p.LockMaxActive, 1) {
			h.Errorf("%d permits of %s hold lock %s", n, g.Tenant, a.LockKey)
		}
		job := [3]string{g.Pool, g.Tenant, a.DedupeKey}
		if a.DedupeKey == "" {
			continue
		}
		if token, runs := k.jobs[job]; runs && h.holder(token).permit != nil {
			h.Errorf("job %v was begun while it runs", job)
		}
		if at, done := k.done[job]; done && h.t.Sub(at) < firstOf(p.DoneRetention, defaultDoneRetention) {
			h.Errorf("job %v was begun %s after it was done", job, h.t.Sub(at))
		}
		k.jobs[job] = g.Token
	}
}

// ends notes the jobs that were done. What a pool has no room to remember, or lost
// with its policy, may be begun again.
func (k *exclusive) ends(h *history, e Entry, results []Result) {
	for job, token := range k.jobs {
		for i, op := range e.Ops {
			rel, ok := op.(*Release)
			if ok && rel.Token == token && rel.Outcome == OutcomeDone && results[i].(*ReleaseResult).Result == LeaseReleased {
				k.done[job] = h.t
			}
		}
		if h.holder(token).permit == nil {
			delete(k.jobs, job)
		}
	}
	retention := map[string]time.Duration{}
	for job, at := range k.done {
		p := h.poolPolicy(job[0])
		if p == nil || h.t.Sub(at) >= firstOf(k.retention[job[0]], defaultDoneRetention) {
			delete(k.done, job)
			continue
		}
		retention[job[0]] = p.DoneRetention
	}
	k.retention = retention
}
