package sidecar

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// table knows the permits that workers hold, and what is to be done about them.
//
// A hold is in renewals while it is renewed, and in ends while something else is to happen
// to it: that it is given back, or forgotten. What is being done about a hold is in neither.
type table struct {
	opts    Options
	metrics *metrics

	// mu guards what follows, all holds and all workers.
	mu       sync.Mutex
	holds    map[string]*hold // by token
	renewals agenda[*hold]
	ends     agenda[*hold]
	// reserved are places for what calls under way may be granted.
	reserved int
	// frozen says that connections end because the sidecar does.
	frozen bool
	lastID uint64
}

// worker is who is behind a connection.
type worker struct {
	holds map[*hold]struct{}
	gone  bool
}

// hold is a permit that a worker holds.
type hold struct {
	id     uint64
	token  string
	worker *worker
	// ttl is what the permit was last given, born when it was first known here.
	ttl  time.Duration
	born time.Time
	// until is when it has expired, if it is not renewed.
	until time.Time
	// renewAt and endAt are its places in renewals and in ends; zero where it has none.
	renewAt, endAt time.Time
	// undelivered says that its worker was never told of it.
	undelivered bool
	// aged says that it is not renewed any more.
	aged bool
	// orphaned says that its worker has gone, or never came for it: it is given back at
	// endAt.
	orphaned bool
}

func newTable(opts Options, m *metrics) *table {
	return &table{
		opts: opts, metrics: m, holds: make(map[string]*hold),
		renewals: newAgenda(func(h *hold) *time.Time { return &h.renewAt }, compareHolds),
		ends:     newAgenda(func(h *hold) *time.Time { return &h.endAt }, compareHolds),
	}
}

// places are those that a call has reserved in the table.
type places struct {
	table *table
	left  int
}

// reserve keeps places for what a call may be granted.
func (t *table) reserve(n int) (*places, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.holds)+t.reserved+n > t.opts.MaxPermits {
		t.metrics.refused.WithLabelValues("permits").Inc()
		return nil, errManyPermits
	}
	t.reserved += n
	return &places{t, n}, nil
}

// leave gives back the places that were not needed.
func (p *places) leave() {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	p.table.reserved -= p.left
}

// take notes a permit that a call was granted, if there is one to hold. Its time counts
// from asked; own says that the worker can ask for it again by the request_id.
func (p *places) take(ctx context.Context, permit *admitv1.Permit, asked time.Time, own bool) {
	if permit.GetToken() == "" || permit.GetState() != admitv1.PermitState_PERMIT_STATE_LIVE {
		return
	}
	t, now := p.table, time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.left > 0 { // a node gives no more than it is asked for
		p.left--
		t.reserved--
	}
	w, known := workerOf(ctx), t.holds[permit.GetToken()] != nil
	there := ctx.Err() == nil && !w.gone
	h := t.hold(permit.GetToken(), w)
	switch {
	case there:
		t.bind(h, w)
		h.undelivered = false
	case known: // it is still whose it was
	case own: // it may ask again, on another connection
		h.undelivered = true
		t.orphan(h, now.Add(t.opts.Grace))
	default:
		h.undelivered = true
		t.orphan(h, now)
	}
	t.extend(h, permit.GetExpiresIn().AsDuration(), asked)
}

// renewed takes in what a worker's Renew came to. A permit that was not known is from
// then on, if there is room.
func (t *table) renewed(ctx context.Context, tokens []string, results []*admitv1.RenewResult, asked time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := workerOf(ctx)
	for i, r := range results[:min(len(results), len(tokens))] {
		known := t.holds[tokens[i]]
		switch r.GetResult() {
		case admitv1.LeaseResult_LEASE_RESULT_RENEWED:
			if known == nil && len(t.holds)+t.reserved >= t.opts.MaxPermits {
				t.metrics.refused.WithLabelValues("permits").Inc()
				continue
			}
			h := t.hold(tokens[i], w)
			switch {
			case !w.gone:
				t.bind(h, w)
			case known == nil:
				t.orphan(h, time.Now().Add(t.opts.Grace))
			}
			t.extend(h, r.GetExpiresIn().AsDuration(), asked)
		case admitv1.LeaseResult_LEASE_RESULT_CANCELLED:
			if known != nil {
				t.lapse(known)
			}
		default:
			t.drop(known)
		}
	}
}

// forget notes that a permit was released, or has ended.
func (t *table) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(t.holds[token])
}

// hold returns the hold on a permit; one that is new is the worker's.
func (t *table) hold(token string, w *worker) *hold {
	h := t.holds[token]
	if h == nil {
		t.lastID++
		h = &hold{id: t.lastID, token: token, worker: w, born: time.Now()}
		t.holds[token], w.holds[h] = h, struct{}{}
	}
	return h
}

// bind makes a hold that of a worker, who is there.
func (t *table) bind(h *hold, w *worker) {
	delete(h.worker.holds, h)
	h.worker, w.holds[h] = w, struct{}{}
	if h.orphaned {
		h.orphaned = false
		t.metrics.orphans.Dec()
		t.ends.set(h, time.Time{})
	}
}

// extend gives a hold a time to live. It is renewed after half of it: a worker that renews
// by itself, at a third as it should, goes before.
func (t *table) extend(h *hold, ttl time.Duration, asked time.Time) {
	h.ttl, h.until = ttl, time.Now().Add(ttl)
	if t.aged(h) {
		t.lapse(h)
		return
	}
	if !h.orphaned {
		t.ends.set(h, time.Time{})
	}
	t.renewals.set(h, asked.Add(ttl/2-rand.N(ttl/10+1)))
}

// aged says whether a hold has been renewed for as long as it may be.
func (t *table) aged(h *hold) bool {
	if t.opts.MaxLifetime == 0 || time.Since(h.born) < t.opts.MaxLifetime {
		return false
	}
	if !h.aged {
		h.aged = true
		t.metrics.lapsed.Inc()
	}
	return true
}

// lapse ends the renewing of a hold.
func (t *table) lapse(h *hold) {
	t.renewals.set(h, time.Time{})
	if !h.orphaned {
		t.ends.set(h, h.until)
	}
}

// orphan has a hold given back at a time.
func (t *table) orphan(h *hold, at time.Time) {
	if !h.orphaned {
		h.orphaned = true
		t.metrics.orphans.Inc()
	}
	t.ends.set(h, at)
}

// drop forgets a hold; nil is none.
func (t *table) drop(h *hold) {
	if h == nil || t.holds[h.token] != h {
		return
	}
	if h.orphaned {
		t.metrics.orphans.Dec()
	}
	t.renewals.set(h, time.Time{})
	t.ends.set(h, time.Time{})
	delete(h.worker.holds, h)
	delete(t.holds, h.token)
}

// leave notes that a connection has ended: what its worker holds is given back after the
// grace time, but not where the sidecar itself ends its connections.
func (t *table) leave(w *worker) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.frozen {
		return
	}
	w.gone = true
	at := time.Now().Add(t.opts.Grace)
	for h := range w.holds {
		if !h.orphaned {
			t.orphan(h, at)
		}
	}
}

// freeze says that connections that end from now on tell nothing of their workers.
func (t *table) freeze() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frozen = true
}

// size is how many places of the table are taken.
func (t *table) size() (held, reserved int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.holds), t.reserved
}
