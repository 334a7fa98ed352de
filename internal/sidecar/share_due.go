package sidecar

import "time"

// due gives back what is held in vain: by accounts that are idle, and what ends. wait is
// the time until it is to be called again.
func (b *shareBook) due() (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for a, any := b.agenda.tree.Min(); any; a, any = b.agenda.tree.Min() {
		if wait = a.dueAt.Sub(now); wait > 0 {
			return wait
		}
		b.endOver(a, now)
		if now.Sub(a.lastAsked) >= a.idleAfter() {
			b.giveBackAll(a, "idle")
			a.rest(now)
		}
		b.schedule(a)
	}
	return time.Hour
}

// schedule has an account looked at when its first share ends, or it would be idle. A
// request in between moves nothing: it is found when that time has come.
func (b *shareBook) schedule(a *account) {
	if len(a.held) == 0 {
		b.agenda.set(a, time.Time{})
		return
	}
	at := a.lastAsked.Add(a.idleAfter())
	for _, s := range a.held {
		if s.end.Before(at) {
			at = s.end
		}
	}
	b.agenda.set(a, at)
}

// endOver gives back the shares of an account that have come to their end.
func (b *shareBook) endOver(a *account, now time.Time) {
	for _, s := range a.held {
		if !now.Before(s.end) {
			b.giveBack(a.drop(func(s *share) bool { return now.Before(s.end) }), "ending")
			return
		}
	}
}

// giveBackAll gives back all that an account holds.
func (b *shareBook) giveBackAll(a *account, cause string) {
	b.giveBack(a.drop(func(*share) bool { return false }), cause)
}

// giveBack has shares given back that are in no account any more.
func (b *shareBook) giveBack(shares []*share, cause string) {
	if len(shares) == 0 {
		return
	}
	for _, s := range shares {
		s.cause = cause
	}
	b.ended = append(b.ended, shares...)
	b.agenda.nudge()
}

// toReturn takes shares to give back, most at a time. Those that the cluster takes as
// spent by now are forgotten.
func (b *shareBook) toReturn(most int) []*share {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	var batch []*share
	n := 0
	for _, s := range b.ended {
		if n++; now.Before(s.lost) {
			batch = append(batch, s)
		} else {
			b.metrics.shareReturns.WithLabelValues(s.cause, "expired").Inc()
		}
		if len(batch) == most {
			break
		}
	}
	b.ended = append([]*share(nil), b.ended[n:]...)
	return batch
}

// notReturned takes shares back that could not be given back, to try again.
func (b *shareBook) notReturned(batch []*share) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = append(b.ended, batch...)
}

// close has all that is held given back, and nothing leased any more.
func (b *shareBook) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for at := b.recent.Front(); at != nil; at = at.Next() {
		a := at.Value.(*account)
		b.giveBackAll(a, "stopping")
		b.schedule(a)
	}
}
