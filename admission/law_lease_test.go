package admission

import "time"

// leases is the law of holders: a permit lives as long as its holder was told,
// gaps without a leader apart, and not an entry longer; a Renew or Release does
// what the permit's life so far says, and what is over stays over [I6].
type leases struct {
	offset time.Duration
	held   map[Token]*leaseHistory
}

type leaseHistory struct {
	*term
	ended     LeaseResult // 0 while it lives
	cancelled bool
	share     bool // never renewed
}

// term is what the parts of a batch have in common.
type term struct {
	until Instant // on the lease clock
	ttl   time.Duration
}

func (l *leases) see(h *history, e Entry, results []Result) {
	if l.held == nil {
		l.held = map[Token]*leaseHistory{}
	}
	for _, op := range e.Ops {
		if start, ok := op.(TermStart); ok {
			l.offset += max(start.Gap, 0)
		}
	}
	now := h.t.Add(-l.offset)
	for i, op := range e.Ops {
		switch op := op.(type) {
		case *Renew:
			for k, token := range op.Tokens {
				l.renew(h, now, token, op.TTL, results[i].(*RenewResult).Renewals[k])
			}
		case *Release:
			l.release(h, op, results[i].(*ReleaseResult))
		}
	}
	l.expire(h, now)
	var last *term
	for _, g := range h.grants {
		if !g.lasting() {
			continue
		}
		if !g.shared {
			last = &term{until: now.Add(g.ExpiresIn), ttl: g.ExpiresIn}
		}
		_, share := g.op.(*LeaseShare)
		l.held[g.Token] = &leaseHistory{term: last, share: share}
	}
}

func (l *leases) renew(h *history, now Instant, token Token, ttl time.Duration, got Renewal) {
	p := l.held[token]
	switch {
	case p == nil || p.ended == 0 && p.until <= now:
		want(h, "renewing a lost permit", got, Renewal{Result: LeaseLost})
	case p.ended != 0:
		l.checkOver(h, "renewing", token, p, got.Result)
	case p.cancelled || p.share:
		want(h, "renewing a cancelled permit, or a share", got, Renewal{Result: LeaseCancelled})
	default:
		if p.until = max(p.until, now.Add(firstOf(ttl, p.ttl))); got != (Renewal{LeaseRenewed, p.until.Sub(now)}) {
			h.Errorf("renewing a live permit: %+v, want it renewed for %s", got, p.until.Sub(now))
		}
	}
}

// release counts even if the time was up in this very entry.
func (l *leases) release(h *history, op *Release, got *ReleaseResult) {
	p := l.held[op.Token]
	switch {
	case got.Err != nil:
		want(h, "only a live permit can name a wrong bucket", p != nil && p.ended == 0, true)
	case p == nil:
		want(h, "releasing what was never granted", got.Result, LeaseLost)
	case p.ended != 0:
		l.checkOver(h, "releasing", op.Token, p, got.Result)
	default:
		wanted := LeaseReleased
		if p.cancelled {
			wanted = LeaseCancelled
		}
		want(h, "releasing a live permit", got.Result, wanted)
		p.ended = LeaseReleased
	}
}

// checkOver checks the answer about a permit that ended. Released ones are
// remembered for a while.
func (l *leases) checkOver(h *history, what string, token Token, p *leaseHistory, got LeaseResult) {
	wanted := LeaseLost
	if p.ended == LeaseReleased && h.remembered(token, got) {
		wanted = LeaseAlreadyReleased
	}
	want(h, what+" a permit that is over", got, wanted)
}

// remembered says whether a released permit's record is there. Before the
// entry's end it may have been there and be gone now.
func (h *history) remembered(t Token, got LeaseResult) bool {
	return h.released(t) != nil || got == LeaseAlreadyReleased
}

// expire checks that every permit lives exactly until its time.
func (l *leases) expire(h *history, now Instant) {
	for token, p := range l.held {
		held := h.holder(token)
		row := held.permit
		if p.ended == 0 && p.until <= now {
			p.ended = LeaseLost
		}
		if p.ended != 0 {
			want(h, "a permit that is over lives", row != nil, false)
			continue
		}
		if row == nil {
			h.Fatalf("permit %v is gone at %d, its holder was told %d", token, now, p.until)
		}
		want(h, "a permit's time", row.expires, p.until)
		p.cancelled = held.cancelled()
	}
}
