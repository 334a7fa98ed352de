package sidecar

import (
	"math/rand/v2"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

// toRenew takes from a batch what is not renewed any more, and returns the tokens of the
// others and the shortest time to live among them.
func (t *table) toRenew(batch *[]*hold) (tokens []string, shortest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	shortest = time.Hour
	kept := (*batch)[:0]
	for _, h := range *batch {
		switch {
		case t.holds[h.token] != h: // released since
		case t.aged(h):
			t.lapse(h)
		default:
			kept, tokens = append(kept, h), append(tokens, h.token)
			shortest = min(shortest, h.ttl)
		}
	}
	*batch = kept
	return tokens, shortest
}

// settle takes in what became of one permit that was to be renewed, nil where that is
// not known, and says so in a word.
func (t *table) settle(h *hold, r *admitv1.RenewResult, asked time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.holds[h.token] != h:
		return "released" // meanwhile
	case r == nil:
		if h.renewAt.IsZero() { // its worker has not done it meanwhile
			pause := h.ttl / 20
			t.renewals.set(h, time.Now().Add(pause/2+rand.N(pause/2+1)))
		}
		return "failed"
	}
	switch r.GetResult() {
	case admitv1.LeaseResult_LEASE_RESULT_RENEWED:
		t.extend(h, r.GetExpiresIn().AsDuration(), asked)
		return "renewed"
	case admitv1.LeaseResult_LEASE_RESULT_CANCELLED:
		t.lapse(h)
		return "cancelled"
	}
	t.drop(h)
	return "lost"
}

// toGiveBack returns those of a batch that are to be given back, and forgets the others.
func (t *table) toGiveBack(batch []*hold) (left []*hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range batch {
		switch {
		case t.holds[h.token] != h:
		case h.orphaned:
			t.renewals.set(h, time.Time{})
			left = append(left, h)
		default:
			t.drop(h)
		}
	}
	return left
}

// orphans takes some of what workers hold that have gone. What a worker may still ask for
// again by its request_id is left to it.
func (t *table) orphans(most int) (left []*hold) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends.tree.Scan(func(h *hold) bool {
		if h.orphaned && !(h.undelivered && h.endAt.After(time.Now())) {
			left = append(left, h)
		}
		return len(left) < most
	})
	for _, h := range left {
		t.ends.set(h, time.Time{})
	}
	return left
}

// releases is how permits are given back whose workers have gone.
func (t *table) releases(left []*hold) *admitv1.BatchReleaseRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	req := &admitv1.BatchReleaseRequest{}
	for _, h := range left {
		r := &admitv1.ReleaseRequest{Token: h.token, Outcome: admitv1.Outcome_OUTCOME_FAILED}
		if h.undelivered {
			// Nobody knew of it, so nothing was done under it.
			r.Outcome, r.ActualCost = admitv1.Outcome_OUTCOME_NOT_STARTED, new(int64)
		}
		req.Requests = append(req.Requests, r)
	}
	return req
}

// returned takes in that a hold was given back, or not.
func (t *table) returned(h *hold, done bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.holds[h.token] != h:
	case done:
		t.drop(h)
	case h.orphaned: // its worker has not come back meanwhile
		t.ends.set(h, time.Now().Add(giveBackAgain))
	}
}
