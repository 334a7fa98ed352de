package sidecar

import (
	"container/list"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	admitv1 "github.com/admitd/admit/proto/admit/v1"
	admitv1alpha1 "github.com/admitd/admit/proto/admit/v1alpha1"
)

const (
	// refusedFor is how long it is remembered that the cluster lends nothing.
	refusedFor = 30 * time.Second
	// failedFor is the pause after a lease that failed; that after one that was shed is as
	// long as the cluster says, from leastShed to mostShed.
	failedFor = 500 * time.Millisecond
	leastShed = 10 * time.Millisecond
	mostShed  = 5 * time.Second
	// expiryMargin is the part of a share's time by which clocks may differ in speed.
	expiryMargin = 50
)

// shareBook has the shares that are held, and what is known of those who ask. Whoever
// takes of it holds its lock for a moment, and waits for nothing else.
type shareBook struct {
	most    int
	now     func() time.Time
	jitter  func(time.Duration) time.Duration
	metrics *metrics
	// toLease has room for all accounts, each of which is in it once at most.
	toLease chan *account

	// mu guards what follows, and all accounts.
	mu       sync.Mutex
	accounts map[shareKey]*list.Element
	recent   *list.List // of accounts, those asked for last first
	// agenda wakes who waits for it for what is to be given back, too.
	agenda   agenda[*account]
	ended    []*share // to be given back
	revision int64
	closed   bool
}

func newShareBook(most int, now func() time.Time, jitter func(time.Duration) time.Duration, m *metrics) *shareBook {
	return &shareBook{
		most: most, now: now, jitter: jitter, metrics: m,
		toLease:  make(chan *account, most),
		accounts: make(map[shareKey]*list.Element), recent: list.New(),
		agenda: newAgenda(func(a *account) *time.Time { return &a.dueAt }, func(a, b *account) int { return a.key.compare(b.key) }),
	}
}

// taken is what became of a request for tokens.
type taken struct {
	granted bool
	lane    string
	onLoss  admitv1.TokenShare_OnLoss
}

// take spends tokens of what is held for a key, if there are so many, and has more leased
// where these run out.
func (b *shareBook) take(key shareKey, cost int64) taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	a := b.account(key)
	if a == nil {
		return taken{}
	}
	a.note(cost, now)
	b.endOver(a, now)
	granted := a.left >= cost
	if granted {
		b.giveBack(a.spend(cost), "spent")
	}
	if !granted || a.left <= a.low || !now.Before(a.again) {
		b.lease(a, now)
	}
	return taken{granted, a.lane, a.onLoss}
}

// pass says whether a request passes while no node decides.
func (b *shareBook) pass(key shareKey, cost int64) (lane string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.accounts[key]
	if at == nil {
		return "", false
	}
	a := at.Value.(*account)
	return a.lane, a.letPass(cost, b.now())
}

// account returns that of a key, a new one where there is room: the one asked for least
// lately goes for it, if nothing is being leased for it. nil is none.
func (b *shareBook) account(key shareKey) *account {
	if at := b.accounts[key]; at != nil {
		b.recent.MoveToFront(at)
		return at.Value.(*account)
	}
	if b.closed || b.most == 0 {
		return nil
	}
	if len(b.accounts) >= b.most {
		last := b.recent.Back().Value.(*account)
		if last.leasing || b.now().Sub(last.lastAsked) < last.idleAfter() && len(last.held) > 0 {
			b.metrics.refused.WithLabelValues("shares").Inc()
			return nil
		}
		b.giveBackAll(last, "crowded")
		b.schedule(last)
		delete(b.accounts, last.key)
		b.recent.Remove(b.recent.Back())
	}
	a := &account{key: key}
	b.accounts[key] = b.recent.PushFront(a)
	return a
}

// lease has tokens leased for an account, if that is not under way, nor in vain.
func (b *shareBook) lease(a *account, now time.Time) {
	if a.leasing || b.closed || now.Before(a.notBefore) || len(a.held) >= maxHeld || len(b.ended) >= b.most {
		return
	}
	a.leasing = true
	b.toLease <- a // there is room
}

// wanted is what to lease for an account.
func (b *shareBook) wanted(a *account) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return a.next(b.now())
}

// leased takes in what a lease came to that was asked for at a time, and says it in a word.
func (b *shareBook) leased(a *account, asked time.Time, resp *admitv1alpha1.LeaseShareResponse, err error) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	a.leasing = false
	if err != nil {
		return b.leaseFailed(a, now, err)
	}
	b.learn(resp.GetPolicyRevision())
	a.refused = false
	s := resp.GetShare()
	if s == nil {
		wait := resp.GetShed().GetRetryAfter()
		if wait == nil {
			wait = resp.GetShed().GetPollAfter()
		}
		a.notBefore = now.Add(b.jitter(min(max(wait.AsDuration(), leastShed), mostShed)))
		return "shed"
	}
	a.lane, a.idle = s.GetLane(), s.GetIdleReturn().AsDuration()
	a.onLoss, a.safe, a.safePeriod = max(s.GetOnLoss(), admitv1.TokenShare_CLOSED), s.GetSafe(), s.GetSafePeriod().AsDuration()
	a.given = true
	in := s.GetExpiresIn().AsDuration()
	got := &share{
		token: s.GetToken(), tokens: s.GetTokens(), revision: resp.GetPolicyRevision(),
		end: asked.Add(in - in/expiryMargin), lost: asked.Add(in),
	}
	switch {
	case b.closed:
		b.giveBack([]*share{got}, "stopping")
	case got.revision < b.revision:
		b.giveBack([]*share{got}, "policy")
	default:
		a.add(got, now)
		b.schedule(a)
	}
	return "share"
}

// leaseFailed notes when to try again: soon where that may help, else when the policy may
// have become another.
func (b *shareBook) leaseFailed(a *account, now time.Time, err error) string {
	switch status.Code(err) {
	case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled, codes.Aborted:
		a.notBefore = now.Add(b.jitter(failedFor))
		return "failed"
	}
	a.refused, a.onLoss = true, admitv1.TokenShare_ON_LOSS_UNSPECIFIED
	a.notBefore = now.Add(b.jitter(refusedFor))
	if reasonOf(err) == reasonNotShared {
		return "not_shared"
	}
	return "refused"
}

// learn notes a policy that was not known: what was leased by another is given back, and
// who was refused may ask again.
func (b *shareBook) learn(revision int64) {
	if revision <= b.revision {
		return
	}
	b.revision = revision
	for at := b.recent.Front(); at != nil; at = at.Next() {
		a := at.Value.(*account)
		b.giveBack(a.drop(func(s *share) bool { return s.revision >= revision }), "policy")
		b.schedule(a)
		if a.refused {
			a.refused, a.notBefore = false, time.Time{}
		}
	}
}

// size is how many keys are known, and what is held for them.
func (b *shareBook) size() (keys, shares int, tokens int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.agenda.tree.Scan(func(a *account) bool { // which has all that hold something
		shares, tokens = shares+len(a.held), tokens+a.left
		return true
	})
	return len(b.accounts), shares, tokens
}
