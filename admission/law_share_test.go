package admission

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// loans is the part of the law of rates that is about shares: sidecars spend what they
// hold whenever they like while they hold it, and may all spend all of it now; still no
// span sees more spent than the bucket's capacity and what is refilled in it. What no
// sidecar holds is spent when it is granted.
//
// Where a capacity is lowered sidecars may hold more than it: a history that begins
// there has that in its place.
type loans struct {
	spent    []bucketEvent // by time
	held     int64
	heldThen int64
	since    Instant
}

// spend books what was spent at a time, maybe long ago.
func (b *loans) spend(at Instant, tokens int64) {
	if at < b.since || tokens == 0 {
		return
	}
	i := len(b.spent)
	for i > 0 && b.spent[i-1].at > at {
		i--
	}
	b.spent = slices.Insert(b.spent, i, bucketEvent{at, tokens})
}

// checkSpent adds up every span.
func (b *bucketHistory) checkSpent(h *history, name string) {
	capacity := max(b.spec.Capacity, b.heldThen)
	if b.held == 0 && b.heldThen == 0 {
		capacity = b.spec.Capacity
	}
	add := func(events []bucketEvent, sum int64, end Instant) {
		for _, from := range slices.Backward(events) {
			sum += from.tokens
			if span := end.Sub(from.at); from.tokens > 0 && b.exceeds(capacity, sum, span) {
				h.Fatalf("bucket %s %+v: %d tokens spent within %s, %d of them may be now", name, b.spec, sum, span, b.held)
			}
		}
	}
	for i, e := range b.spent {
		if e.tokens > 0 {
			add(b.spent[:i+1], 0, e.at)
		}
	}
	add(b.spent, b.held, h.t)
}

// lend books a share, of which no sidecars hold more than the policy says, nor this one
// more than its part.
func (r *rates) lend(h *history, op *LeaseShare, p paid, name string, b *bucketHistory) {
	b.held += p.cost
	p.lent[name] = b
	policy := h.poolPolicy(op.Pool)
	most := policy.Buckets[slices.IndexFunc(policy.Buckets, func(c BucketPolicy) bool { return c.Name == b.spec.Name })].Share.Max
	if b.held > most || b.held > b.spec.Capacity {
		h.Errorf("sidecars hold %d tokens of %s, and may %d", b.held, name, most)
	}
	own := int64(0)
	for _, other := range r.permits {
		if s, ok := other.op.(*LeaseShare); ok && s.Node.ID == op.Node.ID && other.lent[name] == b {
			own += other.cost
		}
	}
	if (own-1)*op.Node.Total >= most*op.Node.Owned {
		h.Errorf("%+v holds %d tokens of %s, of %d for all", op.Node, own, name, most)
	}
}

// endShares books what was spent of the shares that the entry ended.
func (r *rates) endShares(h *history, e Entry, results []Result) {
	for i, op := range e.Ops {
		if op, ok := op.(*Release); ok && results[i].(*ReleaseResult).Result == LeaseReleased {
			if p, known := r.permits[op.Token]; known && len(p.lent) > 0 {
				spent := p.cost
				if op.ActualCost != Absent {
					spent = min(op.ActualCost, p.cost)
				}
				r.endShare(h, p, spent)
			}
		}
	}
	for token, p := range r.permits {
		if len(p.lent) > 0 && h.permit(token.key()) == nil {
			r.endShare(h, p, p.cost)
		}
	}
}

// endShare spends so many tokens of a share while it lived: all at once or bit by bit.
func (r *rates) endShare(h *history, p paid, tokens int64) {
	end := min(p.at.Add(p.ExpiresIn), h.t)
	for name, b := range p.lent {
		b.held -= p.cost
		for i := range tokens {
			at := p.at
			switch p.Token.Nonce % 3 {
			case 0:
				at = end
			case 1:
				at += (end - p.at) / Instant(tokens) * Instant(i)
			}
			if r.buckets[name] == b {
				b.spend(at, 1)
			}
		}
	}
	clear(p.lent)
}

// checkShare checks that the answer to a LeaseShare makes sense by itself.
func (h *history) checkShare(op *LeaseShare, r *LeaseShareResult) {
	switch {
	case r.Err != nil:
		want(h, "an error stands alone", r.Tokens == 0 && r.Shed == nil, true)
	case r.Shed != nil:
		want(h, "what is refused is no share", r.Tokens, 0)
		want(h, "a refusal has a reason", r.Shed.Reason != ReasonNone, true)
		if len(r.Shed.Blocking) > 0 {
			h.checkShed(r.Shed)
		}
		want(h, "who waits for others is told when one ends", len(r.Shed.Blocking) > 0 || r.Shed.EarliestExpiry != Absent, true)
	default:
		h.checkGranted(r.Permit)
		want(h, "a share is some of what was asked for", r.Tokens >= 1 && r.Tokens <= op.Tokens, true)
		want(h, "a share is the tenant's", r.Permit.Tenant, op.Tenant)
		want(h, "a share goes back before it ends", r.IdleReturn > 0 && r.IdleReturn <= r.Permit.ExpiresIn, true)
		want(h, "only who is to be safe is told how many are", r.OnLoss == OnLossSafe, r.Safe > 0 && r.SafePeriod > 0)
	}
}

// A LeaseShare that is decided without an entry says what an entry with it alone would,
// and what stands changes nothing. A told retry_after comes true, and a millisecond
// earlier would have been too early [I12].
func TestSharesAreForetold(t *testing.T) {
	probe(t, func(t *rapid.T, h *history) {
		op := h.drawLease(t)
		h.apply(h.later(0)) // nothing is left for the entry to free
		p := h.pools.byName(op.Pool)
		if p != nil && p.yieldStale(h.w) {
			return
		}
		decided, stands := h.DecideLease(h.t, op)
		told, results := h.whatIf(t, 0, op)
		applied := *results[0].(*LeaseShareResult)
		shed := applied.Shed
		want(t, "what stands is no share", stands && applied.Err == nil && shed == nil, false)
		applied.Permit = Permit{}
		if !reflect.DeepEqual(decided, &applied) {
			t.Fatalf("%+v\ndecided: %+v\napplied: %+v", op, decided, applied)
		}
		if shed == nil || shed.RetryAfter == Absent || !p.quiet() {
			return
		}
		next := *h
		next.State = told
		_, results = next.whatIf(t, shed.RetryAfter, op)
		if again := results[0].(*LeaseShareResult).Shed; again != nil && len(again.Blocking) > 0 {
			t.Fatalf("%+v was told to retry after %s and then refused: %+v", op, shed.RetryAfter, again)
		}
		_, results = next.whatIf(t, shed.RetryAfter-time.Millisecond, op)
		if results[0].(*LeaseShareResult).Shed == nil {
			t.Fatalf("%+v was told to retry after %s and could have a millisecond before", op, shed.RetryAfter)
		}
	})
}
