package sidecar

import (
	"cmp"
	"time"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
)

const (
	// maxShareTokens is how many tokens a request can name.
	maxShareTokens = 1 << 53
	// maxHeld is how many shares of a key are held at most.
	maxHeld = 4
	// shareLasts is for how long a share should last: with less there are many leases,
	// with more the tokens are missing elsewhere.
	shareLasts = 500 * time.Millisecond
	// firstIdle is after how long a key that never had a share counts as idle.
	firstIdle = 2 * time.Second
)

// shareKey is what requests have in common that one share is for.
type shareKey struct{ pool, tenant, category string }

func (k shareKey) compare(o shareKey) int {
	return cmp.Or(cmp.Compare(k.pool, o.pool), cmp.Compare(k.tenant, o.tenant), cmp.Compare(k.category, o.category))
}

// share is tokens that the cluster gave, to grant from. 0 <= spent <= tokens.
type share struct {
	token         string
	tokens, spent int64
	revision      int64
	// end is when nothing is granted from it any more, lost when the cluster takes it
	// as spent, so that there is nothing to give back.
	end, lost time.Time
	// cause is why it is given back.
	cause string
}

// account is what is known of a key: the shares that are held, first those to be spent
// first, how much is asked for, and what the policy said when a share was last leased.
type account struct {
	key  shareKey
	held []*share
	// left is what is unspent of them.
	left int64
	// low and again are how few tokens are left, and when, that more are leased.
	low   int64
	again time.Time
	// leasing says that a lease is under way or about to be. None begins before
	// notBefore.
	leasing   bool
	notBefore time.Time
	// refused says that the cluster lends nothing here.
	refused bool

	// lastAsked is when there last was a request, since when demand is counted: asked
	// tokens, largest in one request. want is what was leased last, given that it came.
	lastAsked, since time.Time
	asked, largest   int64
	want             int64
	given            bool

	// idle, lane and onLoss are of the last share, kept when it has ended.
	idle       time.Duration
	lane       string
	onLoss     admitv1.TokenShare_OnLoss
	safe       int64
	safePeriod time.Duration
	// letThrough is what was let through by SAFE since safeSince.
	letThrough int64
	safeSince  time.Time

	// dueAt is when it is looked at without a request, its place in the agenda.
	dueAt time.Time
}

// note counts a request.
func (a *account) note(cost int64, now time.Time) {
	a.lastAsked = now
	a.asked = min(a.asked+cost, maxShareTokens)
	a.largest = max(a.largest, cost)
}

// spend takes tokens of the shares, of which there are enough, and returns those that are
// used up.
func (a *account) spend(cost int64) (used []*share) {
	a.left -= cost
	for cost > 0 {
		s := a.held[0]
		n := min(cost, s.tokens-s.spent)
		s.spent += n
		cost -= n
		if s.spent == s.tokens {
			used = append(used, s)
			a.held = a.held[1:]
		}
	}
	return used
}

// add holds a share that has come. More is leased at a fifth of what there is, or of its
// time.
func (a *account) add(s *share, now time.Time) {
	a.held = append(a.held, s)
	a.left += s.tokens
	a.low = a.left / 5
	a.again = s.end.Add(-s.end.Sub(now) / 5)
}

// drop takes those shares out that do not stay, and returns them.
func (a *account) drop(stays func(*share) bool) (out []*share) {
	var kept []*share
	for _, s := range a.held {
		if stays(s) {
			kept = append(kept, s)
			continue
		}
		out = append(out, s)
		a.left -= s.tokens - s.spent
	}
	a.held = kept
	return out
}

// next is how many tokens to lease now: twice as many as before where these ran out
// early, else what is asked for in the time that a share should last, and not less than
// half of what it was.
func (a *account) next(now time.Time) int64 {
	elapsed := now.Sub(a.since)
	if a.given && elapsed < shareLasts/2 {
		a.want = max(2*a.want, a.asked)
	} else {
		rate := float64(a.asked) * min(float64(shareLasts)/float64(max(elapsed, 1)), 1)
		a.want = max(int64(rate), a.want/2)
	}
	a.want = min(max(a.want, a.largest, 1), maxShareTokens)
	a.since, a.asked, a.largest, a.given = now, 0, 0, false
	return a.want
}

// rest notes that nothing is asked for.
func (a *account) rest(now time.Time) {
	a.want /= 2
	a.since, a.asked, a.largest, a.given = now, 0, 0, false
}

// idleAfter is after how long without a request its tokens are given back.
func (a *account) idleAfter() time.Duration {
	if a.idle > 0 {
		return a.idle
	}
	return firstIdle
}

// letPass says whether a request passes while no node decides.
func (a *account) letPass(cost int64, now time.Time) bool {
	switch a.onLoss {
	case admitv1.TokenShare_OPEN:
		return true
	case admitv1.TokenShare_SAFE:
		if now.Sub(a.safeSince) >= a.safePeriod {
			a.safeSince, a.letThrough = now, 0
		}
		if cost > a.safe-a.letThrough {
			return false
		}
		a.letThrough += cost
		return true
	}
	return false
}
